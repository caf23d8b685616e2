"""A stage whose agents remember: each has sessions as its CLI keeps them, and a log of what its model got."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.conversation.stage import Script, Stage

from bullpen.memory import Memory, SessionUse
from bullpen.store.base import TurnRecord
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.stage import AGENT

HOMES = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}
PATTERNS = {"claude": "projects/*/*.jsonl", "codex": "sessions/*/*/*/*.jsonl"}


class RememberingStage(Stage):
    """Members whose memory is their own. Without a script each says its name and the number of its turn: a:1."""

    def environment(self) -> dict[str, str]:
        """Return what tells the CLIs where their homes are."""
        return {variable: str(self.folder / "homes" / cli) for cli, variable in HOMES.items()}

    def remembering(self, name: str, *turns: str | Script, cli: str = "claude", **keys: Any) -> None:
        """Add an agent that plays these turns, and then says its name."""
        folder = self._folder(name, turns)
        (folder / "script").unlink(missing_ok=True)
        command = [*AGENT, "--as", cli, "--turns", str(folder)]
        self.members[name] = {"name": name, "agent": cli, "command": command, "memory": "own", **keys}

    def script(self, name: str, turn: str | Script, number: int) -> None:
        """Say what an agent does in its Nth turn."""
        steps = turn if isinstance(turn, list) else [{"say": turn}]
        (self.folder / "agents" / name / f"script-{number}").write_text(json.dumps(steps), encoding="utf-8")

    async def until_turn(self, name: str, number: int) -> None:
        """Wait until an agent's program has begun its Nth turn and has read its prompt."""
        while not (self.folder / "agents" / name / f"prompt-{number}").exists():
            await asyncio.sleep(0.01)

    def sessions(self, cli: str = "claude") -> list[Path]:
        """Return the files of all sessions, oldest first."""
        found = (self.folder / "homes" / cli).glob(PATTERNS[cli])
        return sorted(found, key=lambda file: file.stat().st_mtime_ns)

    def asked(self, cli: str = "claude") -> list[list[str]]:
        """Return what a model got in every turn of every session: the texts of all messages."""
        lines = [line for file in self.sessions(cli) for line in asked_lines(file)]
        return [[message["text"] for message in json.loads(line)["messages"]] for line in lines]

    def records(self, name: str) -> list[TurnRecord]:
        """Return the records of an agent's turns."""
        with SqliteStore(self.db) as store:
            (conversation,) = store.conversations()
            turns = [turn for turn in store.turns(conversation.id) if turn.member == name]
            found = [store.record(conversation.id, turn.id) for turn in turns]
        return [record for record in found if record is not None]

    def uses(self, name: str) -> list[SessionUse]:
        """Return how each of an agent's turns got its session."""
        return [record.report.session for record in self.records(name) if record.report.session is not None]

    def origins(self, name: str) -> list[str]:
        """Return the same in a word, with the reason if there is one."""
        return [f"{use.origin}: {use.reason}" if use.reason else use.origin for use in self.uses(name)]

    def prompt_texts(self, name: str) -> list[str]:
        """Return what was sent to an agent in each of its turns."""
        return [record.prompt for record in self.records(name)]

    def memory(self, name: str) -> Memory:
        """Return what an agent's last turn left."""
        with SqliteStore(self.db) as store:
            (conversation,) = store.conversations()
            left = store.memory(conversation.id, name)
        assert left is not None
        return left.memory


def asked_lines(file: Path) -> list[str]:
    """Return the lines of the log next to a session's file."""
    log = file.with_suffix(".asked")
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []
