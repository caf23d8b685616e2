"""Figure: the time from an agent's question to the inbox, compared with any other event of the agent."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import monotonic_ns

from benchmarks.agents_stage import own_folder, python
from benchmarks.report import Figure, duration, times
from bullpen.app import open_team
from bullpen.approvals import Answer
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Asked, Said, TurnEvent
from bullpen.turn_events import TextDelta

GOAL = 2.0
QUESTIONS, QUICK_QUESTIONS = 300, 60
IGNORED = 10

# Says the time, asks with the time, and waits for the answer: again and again. All processes have the same clock.
PROGRAM = """
import json, sys, time
def say(**record):
    print(json.dumps({{"jsonrpc": "2.0", **record}}), flush=True)
for result in ({{"protocolVersion": 1}}, {{"sessionId": "s"}}):
    say(id=json.loads(sys.stdin.readline())["id"], result=result)
prompt = json.loads(sys.stdin.readline())["id"]
options = [{{"optionId": "y", "kind": "allow_once"}}, {{"optionId": "n", "kind": "reject_once"}}]
def update(**told):
    say(method="session/update", params={{"sessionId": "s", "update": told}})
for number in range({count}):
    time.sleep(0.004)
    text = f"{{time.monotonic_ns()}} "
    update(sessionUpdate="agent_message_chunk", content={{"type": "text", "text": text}})
    time.sleep(0.004)
    call = {{"toolCallId": f"c{{number}}", "kind": "execute", "rawInput": {{"command": str(time.monotonic_ns())}}}}
    say(id=1000 + number, method="session/request_permission", params={{"sessionId": "s", "toolCall": call, "options": options}})
    sys.stdin.readline()
say(id=prompt, result={{"stopReason": "end_turn"}})
sys.stdin.read()
"""  # noqa: E501


def measure(*, quick: bool) -> Figure:
    """Let an agent speak and ask in turn, and compare when a viewer hears of each."""
    count = QUICK_QUESTIONS if quick else QUESTIONS
    with own_folder() as folder:
        said, asked, noted = asyncio.run(_delays(folder, count))
    ratio, unstored = median(asked) / median(noted), median(asked) / median(said)
    return Figure(
        title="From an agent's question to the inbox",
        goal=f"at most {GOAL:g} times what an event takes that is stored before anybody sees it, in the median",
        met=ratio <= GOAL,
        measured=f"{times(ratio)} times; {times(unstored)} times what a piece of an answer takes, which is not stored",
        columns=("what happens", "until a viewer of the conversation has it, median"),
        rows=[
            ("an agent writes a piece of its answer", duration(median(said))),
            ("a person writes a note", duration(median(noted))),
            ("an agent asks a question", duration(median(asked))),
        ],
        meaning=f"Wall-clock times over {count} of each. A question comes from a program, as an answer does, "
        "and is stored with its hash before anybody is asked, as a note is. That is a commit, which the disk decides.",
    )


async def _delays(folder: Path, count: int) -> tuple[list[float], list[float], list[float]]:
    """Return how long it took until pieces of answers, questions, and notes were heard, in seconds."""
    said: list[float] = []
    asked: list[float] = []
    noted: list[float] = []
    async with open_team(_team(folder, count), db=folder / "c.db") as conversation:
        watching = asyncio.create_task(_watch(conversation, said.append, asked.append, noted.append))
        await asyncio.sleep(0)
        await conversation.say("Go. [NEXT: max]", sender="kim")
        await conversation.until_quiet()
        for _ in range(count):
            await asyncio.sleep(0.004)
            await conversation.note(str(monotonic_ns()), sender="kim")
        await asyncio.sleep(0.1)
        watching.cancel()
    return said[IGNORED:], asked[IGNORED:], noted[IGNORED:]


Heard = Callable[[float], None]


async def _watch(conversation: Conversation, said: Heard, asked: Heard, noted: Heard) -> None:
    async for event in conversation.watch():
        now = monotonic_ns()
        match event:
            case TurnEvent(event=TextDelta(text=text)):
                said((now - int(text)) / 1e9)
            case Said(message=message) if message.content.isdigit():
                noted((now - int(message.content)) / 1e9)
            case Asked(question=question):
                asked((now - int(question.command)) / 1e9)
                await conversation.answer(event.turn_id, question.id, Answer(verdict="yes"), by="kim")


def _team(folder: Path, count: int) -> Path:
    file = folder / "asker.py"
    file.write_text(PROGRAM.format(count=count))
    command = [*python("")[:-2], str(file)]
    team = folder / "team.toml"
    team.write_text(
        f'[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "acp"\ncommand = {command}\npermissions = "ask"\n'
    )
    return team
