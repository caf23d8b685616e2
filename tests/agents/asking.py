"""An agent that asks, and the driver for it: the smallest protocol that has questions, answers and words.

The program does what its script says, one step for each list: ["ask", id, command], ["edit", id, path], ["back", id],
["write", file],
["say", text], ["end", text], ["wait", id] until that question is answered, ["hear"] until it is told something,
["stay"] for ever. What it is told goes to the file `heard` in its folder.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bullpen.agents import AgentSpec, command_agent
from bullpen.agents.driver import Opening
from bullpen.approvals import Answer
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event, Finished, TextDelta

PROGRAM = """
import json, pathlib, sys, time
script, heard = json.loads(sys.argv[1]), pathlib.Path("heard")
def say(**record):
    print(json.dumps(record), flush=True)
def next_record():
    line = sys.stdin.readline()
    if not line:
        sys.exit(3)
    record = json.loads(line)
    with heard.open("a") as file:
        file.write(line)
    return record
next_record()
for step, *given in script:
    if step == "ask":
        say(ask=given[0], command=given[1])
    elif step == "edit":
        say(ask=given[0], path=given[1])
    elif step == "back":
        say(back=given[0])
    elif step == "write":
        pathlib.Path(given[0]).write_text("done")
    elif step == "say":
        say(text=given[0])
    elif step == "wait":
        while next_record().get("to") != given[0]:
            pass
    elif step == "hear":
        while "tell" not in next_record():
            pass
    elif step == "end":
        say(end=given[0])
    elif step == "stay":
        time.sleep(600)
while next_record():
    pass
"""


class AskingDriver:
    """Speaks with that program."""

    def __init__(self, opening: Opening) -> None:
        self.outgoing: list[Any] = [{"prompt": opening.prompt}]
        self._folder = opening.folder
        self._open: set[str] = set()
        self._has_ended = False

    def parse(self, record: Any) -> Iterator[Event]:
        match record:
            case {"ask": str(question), "command": str(command)}:
                self._open.add(question)
                folder = self._folder
                yield ApprovalAsked(id=question, kind="command", tool="sh", command=command, folder=folder)
            case {"ask": str(question), "path": str(path)}:
                self._open.add(question)
                folder = self._folder
                yield ApprovalAsked(id=question, kind="edit", tool="w", paths=(path,), diff="+x\n", folder=folder)
            case {"back": str(question)}:
                self._open.discard(question)
                yield ApprovalOver(id=question, is_answered=False)
            case {"text": str(text)}:
                yield TextDelta(text)
            case {"end": str(text)}:
                self._has_ended = True
                yield Finished(text)

    def answer(self, question: str, answer: Answer) -> None:
        if question in self._open:
            self._open.discard(question)
            self.outgoing.append({"to": question, "verdict": answer.verdict, "reason": answer.reason})

    def tell(self, text: str) -> bool:
        self.outgoing.append({"tell": text})
        return not self._has_ended

    def interrupt(self) -> None:
        self.outgoing += [{"to": question, "verdict": "cancelled"} for question in sorted(self._open)]
        self._open.clear()


def asking_spec(*steps: list[str]) -> AgentSpec:
    """Return an agent with that script."""
    spec = command_agent([sys.executable, "-c", PROGRAM, json.dumps(steps)], name="asker")
    asking = replace(spec, driver=AskingDriver, stream="json", permissions={"ask": ()}, ends_by_itself=False)
    return replace(spec, asking=asking)


def heard_in(folder: Path) -> list[dict[str, Any]]:
    """Return what the program was told, without its prompt."""
    return [json.loads(line) for line in (folder / "heard").read_text().splitlines()[1:]]
