"""A worker's machine on which scripted agents run, and orders for it."""

import asyncio
import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import psutil
import psycopg
from tests.cluster.processes import Processes, Started

from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database, connect
from bullpen.cluster.lines import Hearing
from bullpen.cluster.orders import Order, Work, new_token
from bullpen.cluster.outcomes import Outcome, outcome_of
from bullpen.cluster.turn_log import Line
from bullpen.store.postgres import order_rows

WORKER = "tests.cluster.worker_process"
POOL = "gpu-box"
SILENT = """
UPDATE processes SET beat_at = clock_timestamp() - interval '1 hour'
WHERE %s IN (name, url) AND ended_at IS NULL RETURNING id
"""
REAP = "SELECT reap(0, interval '1 minute', interval '1 minute', interval '0')"
Script = Sequence[dict[str, Any]]


async def place(database: Database, order: Order, owner: int = 0) -> str:
    """Place an order by itself, and return its token."""
    token = new_token()
    where = {"pool": order.pool, "worker": "", "node": owner}
    values = {"turn": order.turn, "work": order.packed, "notes": b"", "token": token, **where}

    def insert() -> None:
        with psycopg.connect(database.url) as connection:
            connection.execute(order_rows.PLACE, {"id": order.conversation, **values})

    await asyncio.to_thread(insert)
    return token


def give_up(url: str, name: str = "box") -> None:
    """Let an hour pass in which nothing was heard of a process, and give it up as every node does.

    It is dead or frozen: one that lives would say so in the meantime. A node is also known by where people find it.
    """
    with connect(url) as connection:
        while connection.execute(SILENT, [name]).fetchall():
            connection.execute(REAP)


async def ended(process: psutil.Process) -> None:
    """Wait until a process has ended, also if its parent is frozen."""
    with suppress(psutil.NoSuchProcess):
        while process.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)


class WorkerStage:
    """A machine with a folder, and a program that notes each of its starts in a file before it plays a script."""

    def __init__(self, folder: Path, url: str, processes: Processes) -> None:
        self.url = url
        self.folder = folder / "project"
        self.folder.mkdir()
        self.starts = folder / "starts"
        self.starts.touch()
        self.file = folder / "worker.toml"
        self.go = folder / "go"
        self.waits: dict[str, Any] = {"wait_for": str(self.go)}
        """A step of a script: until the test makes this file."""
        self.program = folder / "agent.py"
        self.program.write_text(
            f"import os, sys\nopen({str(self.starts)!r}, 'a').write(sys.argv[1] + '\\n')\n"
            "os.execv(sys.executable, [sys.executable, '-m', 'bullpen.testing.agent', *sys.argv[2:]])\n"
        )
        self._processes = processes
        self.commands: list[list[str]] = []

    def command(self, turn: str, script: Script) -> tuple[str, ...]:
        """Return a command that the worker's file will allow."""
        command = [sys.executable, str(self.program), turn, "--as", "text", "--script", json.dumps(script)]
        self.commands.append(command)
        return tuple(command)

    def write_file(self, **others: object) -> None:
        """Write the worker's file; begin with a key, then the folders."""
        values = {"name": "box", "commands": self.commands, **others}
        lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
        self.file.write_text("\n".join([*lines, "[folders]", f"project = {json.dumps(str(self.folder))}"]))

    def write_team(self, head: str = "", /, **members: Script) -> Path:
        """Write a team of kim and agents in the pool that play scripts."""
        parts = [f'name = "stage"\n{head}\n[[member]]\nname = "kim"\n']
        for name, script in members.items():
            command = json.dumps(self.command(name, script))
            parts.append(f'[[member]]\nname = "{name}"\npool = "{POOL}"\ncwd = "project"\ncommand = {command}\n')
        path = self.file.with_name("team.toml")
        path.write_text("\n".join(parts), encoding="utf-8")
        return path

    def start_worker(self, **environment: str) -> Started:
        return self._processes.start(WORKER, self.url, POOL, str(self.file), **environment)

    async def agent_of(self, worker: Started) -> psutil.Process:
        """Wait until a worker has started its agent, and return that."""
        while not self.started():
            await asyncio.sleep(0.01)
        # Its guardian is between them.
        return psutil.Process(worker.pid).children(recursive=True)[-1]

    def lose(self, worker: Started) -> None:
        """Kill a worker, and let the nodes give it up."""
        worker.kill()
        give_up(self.url)

    def order(self, turn: str, script: Script = ({"say": "Done."},), **others: Any) -> Order:
        work: dict[str, Any] = {
            "member": "max",
            "prompt": "Hello.",
            "command": self.command(turn, script),
            "idle_timeout": 600.0,
            "total_timeout": 3600.0,
        }
        packed = msgspec.msgpack.encode(Work(**(work | others)))
        return Order(conversation="calm-oak", turn=turn, pool=POOL, packed=packed)

    def started(self) -> list[str]:
        """Return the turns whose agent was started, once for each start."""
        return self.starts.read_text().split()


def two_workers(stage: WorkerStage, processes: Processes) -> tuple[Path, WorkerStage]:
    """Start two workers, each with a pool, and return a team of kim, max on the one and lea on the other, and that one.

    Max says half of a sentence, waits for `stage.go`, says the other half, and hands over to lea.
    """
    folder = stage.file.with_name("other")
    folder.mkdir()
    other = WorkerStage(folder, stage.url, processes)
    members: list[tuple[str, str, WorkerStage, Script]] = [
        ("max", "first", stage, [{"say": "Hello "}, stage.waits, {"say": "lea. [NEXT: lea]"}]),
        ("lea", "second", other, [{"say": "Hello max, hello kim."}]),
    ]
    parts = ['name = "stage"\n[[member]]\nname = "kim"\n']
    for name, pool, at, script in members:
        command = json.dumps(at.command(name, script))
        parts.append(f'[[member]]\nname = "{name}"\npool = "{pool}"\ncwd = "project"\ncommand = {command}\n')
        at.write_file(name=f"worker-of-{name}")
        processes.start(WORKER, stage.url, pool, str(at.file))
    team = stage.file.with_name("team.toml")
    team.write_text("\n".join(parts), encoding="utf-8")
    return team, other


class Node:
    """The node's side of orders, as far as a test needs it."""

    def __init__(self, database: Database, bell: Bell, owner: int = 0) -> None:
        self.database = database
        self.bell = bell
        self.owner = owner
        self.lines: list[Line] = []

    async def place(self, order: Order) -> Hearing:
        token = await place(self.database, order, self.owner)
        return Hearing(token, self.lines.append)

    async def outcome(self, order: Order) -> Outcome:
        return await outcome_of(self.database, self.bell, order.key)

    async def until_it_runs(self, order: Order) -> None:
        query = "SELECT FROM runs WHERE conversation = %s AND turn = %s"
        while not await self.database.do(query, *order.key):
            await asyncio.sleep(0.01)
