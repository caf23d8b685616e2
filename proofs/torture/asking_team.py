"""A team whose agents ask, for torture: its file, the driver for asker.py, and the logs that are the evidence."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from proofs.torture.teams import TURN, tell_agents_their_turns
from tests.agents.asking import AskingDriver
from tests.conversation.stage import Stage

from bullpen.agents.registry import spec_for
from bullpen.agents.spec import AgentSpec
from bullpen.approvals import Answer
from bullpen.conversation import member_agent
from bullpen.conversation.conversation import Conversation
from bullpen.team import trust
from bullpen.turn_events import ApprovalAsked, Event

PROGRAM = Path(__file__).with_name("asker.py")
CONVERSATION = "TORTURE_CONVERSATION"
ALLOWED, DENIED, APPROVED = "pytest", "git push", "make 1"
"""What the team file allows and denies, and what is allowed where nobody can be asked."""
IMPATIENT = "b"
"""The member for whose questions there is little time."""
ASK_SECONDS = 0.06


class NumberedDriver(AskingDriver):
    """Keeps the number of a question in what it is for, and passes on another command."""

    def parse(self, record: Any) -> Iterator[Event]:
        for event in super().parse(record):
            if isinstance(event, ApprovalAsked):
                event = replace(event, why=str(record["number"]), can_change=True)
            yield event

    def answer(self, question: str, answer: Answer) -> None:
        before = len(self.outgoing)
        super().answer(question, answer)
        for record in self.outgoing[before:]:
            record["command"] = answer.command


class AskingTeam:
    """Three agents that ask, and two people."""

    def __init__(self, folder: Path, seed: int) -> None:
        folder.mkdir(parents=True)
        self.agents_log, self.people_log = folder / "agents.log", folder / "people.log"
        self._stage = Stage(folder)
        self._stage.limits.update({"identical_replies": 1000, "turns_per_message": 1000})
        for name in ("kim", "lee"):
            self._stage.person(name)
        for name in ("a", IMPATIENT, "c"):
            self._stage.members[name] = {
                "name": name,
                "command": [sys.executable, "-S", "-E", str(PROGRAM), str(self.agents_log), f"{seed}{name}"],
                "permissions": "ask",
                "env": [TURN, CONVERSATION],
                "allow": [ALLOWED],
                "deny": [DENIED],
                "ask_timeout": ASK_SECONDS if name == IMPATIENT else 600,
            }
        self.db = self._stage.db

    def open(self, resume: str | None = None) -> AbstractAsyncContextManager[Conversation]:
        return self._stage.open(resume)

    def note(self, *what: object) -> None:
        """Write down what a person is about to do, or was told."""
        log = os.open(self.people_log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, json.dumps(what).encode() + b"\n")
        os.close(log)

    def noted(self, log: Path) -> list[list[Any]]:
        """Return what agents or people have written down."""
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] if log.exists() else []


def let_commands_ask() -> None:
    """Let members that are programs ask, in the protocol of asker.py, and know their turns."""

    def spec(agent: str, command: tuple[str, ...] = (), *, name: str = "") -> AgentSpec:
        found = spec_for(agent, command, name=name)
        asking = replace(found, driver=NumberedDriver, stream="json", permissions={"ask": ()}, ends_by_itself=False)
        return replace(found, asking=asking)

    for module in (member_agent, trust):
        setattr(module, "spec_for", spec)  # noqa: B010
    tell_agents_their_turns()
