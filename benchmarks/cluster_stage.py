"""What the figures about many machines share: PostgreSQL, nodes and workers on loopback, each a process of its own."""

import json
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
from msgspec import Struct
from tests.cluster.processes import Processes, Started
from tests.cluster.serving import ServingNode, start_node

from benchmarks.agents_stage import own_folder
from bullpen.cluster.schema import prepare
from bullpen.testing.postgres import PostgresServer

WAIT_SECONDS = 60.0
KEPT_SECONDS = 2.0
POOL, EMPTY_POOL = "bench", "nobody"
# As a server is set up: what is acknowledged is on disk.
SETTINGS = ("shared_buffers=128MB", "max_connections=200")
NO_OP = ("/bin/sh", "-c", "cat > /dev/null; echo Done.")
NODES = ("a", "b")
WORKERS = ("one", "two")


class Asker:
    """Somebody who asks a node with a connection that is kept, as browsers and programs do."""

    def __init__(self, node: ServingNode) -> None:
        self._node = node
        self._connection = HTTPConnection(node.url.removeprefix("http://"), timeout=WAIT_SECONDS)
        self._asked_at = time.monotonic()

    def ask(self, path: str, given: object = None) -> Any:
        """Return what the API answers: to a POST, if something is given."""
        answer = self.answer(path, given)
        text = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"{path} was answered with {answer.status}: {text.decode()}")
        return json.loads(text)

    def answer(self, path: str, given: object = None) -> HTTPResponse:
        """Return the beginning of the answer."""
        if time.monotonic() - self._asked_at > KEPT_SECONDS:
            # The node may be closing it. The next request opens a new one.
            self._connection.close()
        self._asked_at = time.monotonic()
        body = None if given is None else json.dumps(given).encode()
        method = "GET" if given is None else "POST"
        headers = {**self._node.headers, "Content-Type": "application/json"}
        self._connection.request(method, f"/api/conversations{path}", body, headers)
        return self._connection.getresponse()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def begin(self) -> str:
        """Begin a conversation, and return its id."""
        return str(self.ask("", {})["id"])

    def say(self, conversation: str, text: str = "Hi.") -> None:
        """Say something, and return when it is acknowledged. It has an id, as from a page: nodes may ask twice."""
        self.ask(f"/{conversation}/messages", {"text": text, "id": uuid4().hex})

    def until_said(self, conversation: str, messages: int) -> None:
        """Wait until a conversation has this many messages."""
        until = time.monotonic() + WAIT_SECONDS
        while len(self.ask(f"/{conversation}/messages")) < messages:
            if time.monotonic() > until:
                raise TimeoutError(f"{conversation} has no {messages} messages after {WAIT_SECONDS:.0f} s")
            time.sleep(0.02)


class Worker:
    """A worker, and when it said that turns began and ended."""

    def __init__(self, process: Started, changed: threading.Condition) -> None:
        self.process = process
        self.began: dict[str, list[float]] = {}
        """When turns began, by conversation."""
        self.ended = 0
        self._changed = changed
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while line := self.process.line():
            at = time.perf_counter()
            words = line.split()
            with self._changed:
                if " begins in " in line:
                    self.began.setdefault(words[words.index("in") + 1], []).append(at)
                elif " after " in line:
                    self.ended += 1
                self._changed.notify_all()


class Used(Struct, frozen=True, kw_only=True):
    """Processor time, in seconds; that of workers with the small programs that guard their agents."""

    nodes: Mapping[str, float]
    workers: Mapping[str, float]
    database: float
    agents: float

    @property
    def ours(self) -> float:
        """All that is not the agents' own."""
        return sum(self.parts.values())

    @property
    def parts(self) -> dict[str, float]:
        """The same, by what used it."""
        return {"nodes": sum(self.nodes.values()), "workers": sum(self.workers.values()), "database": self.database}

    def since(self, before: "Used") -> "Used":
        """Return what was used after an earlier look."""
        return Used(
            nodes={name: seconds - before.nodes[name] for name, seconds in self.nodes.items()},
            workers={name: seconds - before.workers[name] for name, seconds in self.workers.items()},
            database=self.database - before.database,
            agents=self.agents - before.agents,
        )


class Cluster:
    """All of it. Its nodes serve a team whose agents are in one pool."""

    def __init__(self, folder: Path, server: PostgresServer, commands: Mapping[str, Sequence[str]]) -> None:
        self.folder = folder
        self.server = server
        self.changed = threading.Condition()
        self.workers: list[Worker] = []
        self._processes = Processes(folder)
        self._askers: list[Asker] = []
        self._write(commands)
        self.nodes = {name: self.start_node(name) for name in NODES}

    def _write(self, commands: Mapping[str, Sequence[str]]) -> None:
        members = ['name = "bench"\nhand_over_note = false\n[[member]]\nname = "kim"\n']
        for name, command in {**commands, "zoe": NO_OP}.items():
            pool = EMPTY_POOL if name == "zoe" else POOL
            members.append(f'[[member]]\nname = "{name}"\npool = "{pool}"\ncommand = {json.dumps(list(command))}\n')
        (self.folder / "team.toml").write_text("\n".join(members), encoding="utf-8")
        for name in WORKERS:
            place = self.folder / f"work-{name}"
            place.mkdir()
            allowed = json.dumps([list(command) for command in commands.values()])
            text = f'name = "{name}"\ncommands = {allowed}\n[folders]\nwork = {json.dumps(str(place))}\n'
            (self.folder / f"{name}.toml").write_text(text, encoding="utf-8")

    def start_node(self, name: str) -> ServingNode:
        """Start a node, and wait until it serves."""
        return start_node(self._processes, self.server.url(), name, str(self.folder / "team.toml"))

    def start_workers(self) -> None:
        """Start the workers, and wait until they have joined."""
        for name in WORKERS:
            homes = {key: str(self.folder / f"home-{name}") for key in ("BULLPEN_HOME", "XDG_STATE_HOME")}
            file, url = str(self.folder / f"{name}.toml"), self.server.url()
            process = self._processes.start("bullpen", "worker", "--pool", POOL, file, BULLPEN_CLUSTER=url, **homes)
            while "Joined" not in (line := process.line()):
                if not line and not process.is_running:
                    raise RuntimeError((self.folder / "log").read_text()[-2000:])
            self.workers.append(Worker(process, self.changed))

    def asker(self, name: str) -> Asker:
        """Return somebody who asks a node."""
        asker = Asker(self.nodes[name])
        self._askers.append(asker)
        return asker

    def until_begun(self, conversation: str, turns: int) -> float:
        """Return when a worker said that the last of this many turns of a conversation had begun."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.turns_begun(conversation) >= turns, WAIT_SECONDS):
                raise TimeoutError(f"the turn {turns} of {conversation} did not begin")
            return max(at for worker in self.workers for at in worker.began.get(conversation, []))

    def until_ended(self, turns: int) -> None:
        """Wait until this many turns have ended on the workers."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.turns_ended() >= turns, WAIT_SECONDS):
                raise TimeoutError(f"{turns} turns have not ended")

    def turns_begun(self, conversation: str) -> int:
        """Return how many turns of a conversation have begun."""
        return sum(len(worker.began.get(conversation, [])) for worker in self.workers)

    def turns_ended(self) -> int:
        """Return how many turns have ended on the workers."""
        return sum(worker.ended for worker in self.workers)

    def used(self) -> Used:
        """Return the processor time that everything has used until now."""
        nodes = {name: _own(psutil.Process(node.process.pid)) for name, node in self.nodes.items()}
        workers, agents = {}, 0.0
        for name, worker in zip(WORKERS, self.workers, strict=True):
            process = psutil.Process(worker.process.pid)
            guardians = process.children()
            workers[name] = sum(map(_own, [process, *guardians]))
            agents += sum(map(_ended_children, guardians))
        server = psutil.Process(self.server.pid)
        database = sum(map(_own, [server, *server.children(recursive=True)])) + _ended_children(server)
        return Used(nodes=nodes, workers=workers, database=database, agents=agents)

    def close(self) -> None:
        """End everything that was started."""
        for asker in self._askers:
            asker.close()
        self._processes.end()


@contextmanager
def cluster(*, workers: bool = True, **commands: Sequence[str]) -> Iterator[Cluster]:
    """Start all of it; without other commands the team has one agent, max, that does nothing."""
    with own_folder() as folder, PostgresServer(*SETTINGS) as server:
        prepare(server.url())
        started = Cluster(folder, server, commands or {"max": NO_OP})
        try:
            if workers:
                started.start_workers()
            yield started
        finally:
            started.close()


def python_file(path: Path, program: str) -> tuple[str, ...]:
    """Write a small program, and return its command."""
    path.write_text(program, encoding="utf-8")
    return sys.executable, "-I", "-S", str(path)


def _own(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _ended_children(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.children_user + times.children_system)
