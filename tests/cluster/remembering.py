"""A pool whose members remember: each worker is a machine with sessions of its own, and a log of what models got."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.cluster.processes import Processes, Started
from tests.cluster.stage import POOL, WORKER
from tests.conversation.remembering import HOMES, PATTERNS
from tests.conversation.what_models_got import problems, what_was_asked

from bullpen.conversation.conversation import Conversation
from bullpen.memory import Memory, SessionUse
from bullpen.store.base import Store, Turn, TurnRecord
from bullpen.store.postgres.store import PostgresStore
from bullpen.testing.stage import AGENT

Script = list[dict[str, Any]]


class RememberingPool:
    """Kim, and agents in a pool. Without a script each says its name and the number of its turn: a:1."""

    def __init__(self, folder: Path, url: str, processes: Processes) -> None:
        self.folder = folder
        self.url = url
        self.homes = folder / "homes"
        self.project = folder / "project"
        self.project.mkdir()
        self.go = folder / "go"
        self.waits: dict[str, Any] = {"wait_for": str(self.go)}
        """A step of a script: until the test makes this file."""
        self._processes = processes
        self._members: dict[str, dict[str, Any]] = {}

    def member(self, name: str, *turns: Script, cli: str = "claude") -> Path:
        """Add an agent that plays these turns and then says its name, and return the team file."""
        folder = self.folder / "agents" / name
        folder.mkdir(parents=True)
        for number, script in enumerate(turns, start=1):
            (folder / f"script-{number}").write_text(json.dumps(script), encoding="utf-8")
        command = [*AGENT, "--as", cli, "--turns", str(folder)]
        about = {"name": name, "agent": cli, "command": command, "memory": "own", "pool": POOL, "cwd": "project"}
        self._members[name] = about
        entries: Sequence[dict[str, Any]] = [{"name": "kim"}, *self._members.values()]
        lines = ['name = "stage"', "[limits]", "identical_replies = 100", "back_and_forth = 100"]
        for entry in entries:
            lines += ["[[member]]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items())]
        team = self.folder / "team.toml"
        team.write_text("\n".join(lines), encoding="utf-8")
        return team

    def worker(self, name: str = "box", at_once: int = 4) -> Started:
        """Start a worker: a machine with a home of its own."""
        file = self.folder / f"{name}.toml"
        commands = json.dumps([member["command"] for member in self._members.values()])
        lines = [
            f'name = "{name}"',
            f"at_once = {at_once}\ncommands = {commands}",
            "[folders]",
            f"project = {json.dumps(str(self.project))}",
        ]
        file.write_text("\n".join(lines), encoding="utf-8")
        homes = {variable: str(self.homes / name / cli) for cli, variable in HOMES.items()}
        state = str(self.folder / "states" / name)
        return self._processes.start(WORKER, self.url, POOL, str(file), XDG_STATE_HOME=state, **homes)

    async def until_turn(self, name: str, number: int) -> None:
        """Wait until an agent's program has begun its Nth turn."""
        while not (self.folder / "agents" / name / f"prompt-{number}").exists():
            await asyncio.sleep(0.01)

    def sessions(self, worker: str = "box", cli: str = "claude") -> list[Path]:
        """Return the files of all sessions on a worker, oldest first."""
        return sorted((self.homes / worker / cli).glob(PATTERNS[cli]), key=lambda file: file.stat().st_mtime_ns)


class Told:
    """What is stored of a member's turns."""

    def __init__(self, pool: RememberingPool, conversation: Conversation | str, name: str = "a") -> None:
        self._pool = pool
        self._id = conversation if isinstance(conversation, str) else conversation.id
        self._name = name

    @property
    def turns(self) -> list[Turn]:
        with self._store() as store:
            return [turn for turn in store.turns(self._id) if turn.member == self._name]

    @property
    def records(self) -> list[TurnRecord]:
        with self._store() as store:
            found = [store.record(self._id, turn.id) for turn in self.turns]
        return [record for record in found if record is not None]

    @property
    def uses(self) -> list[SessionUse]:
        return [record.report.session for record in self.records if record.report.session is not None]

    @property
    def origins(self) -> list[str]:
        """How each turn got its session, with the reason if there is one."""
        return [f"{use.origin}: {use.reason}" if use.reason else use.origin for use in self.uses]

    @property
    def memory(self) -> Memory:
        with self._store() as store:
            left = store.memory(self._id, self._name)
        assert left is not None
        return left.memory

    @property
    def wrong(self) -> list[str]:
        """What a model missed or got twice, or what is wrong with what is stored."""
        with self._store() as store:
            found = [finding.text for finding in store.fsck(self._id)]
            return [*problems(store, self._id, what_was_asked(self._pool.homes)), *found]

    def _store(self) -> Store:
        return PostgresStore(self._pool.url)
