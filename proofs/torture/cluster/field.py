"""The field of a kill test: two nodes and two workers or more, their conversations, and a database of their own."""

import random
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import psycopg
from proofs.torture.cluster import witness
from proofs.torture.cluster.mistakes import plant_in_database
from tests.cluster.processes import Processes, Started
from tests.cluster.stage import POOL, WORKER

from bullpen.cluster.schema import prepare
from bullpen.store.postgres.store import PostgresStore
from bullpen.team.file import load_team
from bullpen.testing.postgres import SETTINGS, PostgresServer

TALKING = "tests.cluster.talking_process"
PROCESS = "proofs.torture.cluster.process"
CONVERSATIONS = 4
FIRST_ADDRESS, ADDRESSES = 2, 12
AT_LEAST = 2
AGENT = """
import random, re, sys, time
prompt = sys.stdin.read()
word = re.findall(r"word-\\d+-of-[a-z0-9-]+-end", prompt)[-1]
with open(sys.argv[1], "a") as file:
    file.write(f"start {word} {time.monotonic()}\\n")
time.sleep(random.choice([0.02, 0.1, 0.4, 2]))
with open(sys.argv[1], "a") as file:
    file.write(f"end {word} {time.monotonic()}\\n")
# Without the word: the next turn is told what this one had begun to say.
print("done with " + word.split("-")[1])
"""


SITUATION = """
    SELECT o.turn, o.owner, age(clock_timestamp(), o.placed_at)::text, j.status::text, r.worker, c.kind
    FROM orders o LEFT JOIN procrastinate_jobs j ON j.id = o.job LEFT JOIN runs r USING (conversation, turn)
        LEFT JOIN outcomes c USING (conversation, turn)
    WHERE o.conversation = %s ORDER BY o.placed_at DESC LIMIT 3
"""
"""The last orders of a conversation: who placed them, when, and what became of them."""


LIVING = "SELECT id FROM processes p WHERE ended_at IS NULL AND NOT is_stale(p, interval '2 seconds', interval '0')"
GIVEN_UP = "SELECT id FROM processes WHERE id = ANY(%s) AND ended_at IS NOT NULL"
HEARD = "SELECT id FROM processes WHERE id = ANY(%s) AND beat_at > %s::timestamptz"


class Actor:
    """A node or a worker, and the address at which it alone reaches the database."""

    def __init__(self, kind: str, process: Started, address: int) -> None:
        self.kind = kind
        self.process = process
        self.address = address

    @property
    def host(self) -> str:
        """Where it reaches the database."""
        return f"127.0.0.{self.address}"


class Field:
    """Everything that is on the machine. What it starts may have a mistake.

    Its server is stopped in the middle of writing a page, which only a whole page in its log can mend.
    """

    def __init__(self, folder: Path, mistake: str = "") -> None:
        hosts = ",".join(f"127.0.0.{number}" for number in range(1, FIRST_ADDRESS + ADDRESSES))
        self.server = PostgresServer(*SETTINGS, "full_page_writes=on", f"listen_addresses={hosts}")
        self.folder, self.mistake = folder, mistake
        self.processes = Processes(folder)
        self.starts, self.notes = folder / "starts", folder / "notes"
        self.starts.touch()
        self.notes.touch()
        self._write_files()
        self.ids = [f"calm-oak-{number:06}" for number in range(CONVERSATIONS)]
        self.actors: list[Actor] = []
        """Those that run, as far as we know."""
        self.frozen: list[Actor] = []
        self._free = list(range(FIRST_ADDRESS, FIRST_ADDRESS + ADDRESSES))
        prepare(self.server.url())
        self.store = self._prepared_store()
        for kind in ("node", "worker"):
            self.complete(kind)

    def _write_files(self) -> None:
        agent = self.folder / "agent.py"
        agent.write_text(AGENT)
        command = f'["{sys.executable}", "{agent}", "{self.starts}"]'
        self.team = self.folder / "team.toml"
        self._worker_file = f'commands = [{command}]\n[folders]\nproject = "{self.folder}"\n'
        self.team.write_text(
            f'name = "kills"\nhand_over_note = false\n[limits]\nidentical_replies = 100000\nback_and_forth = 100000\n'
            f'[[member]]\nname = "kim"\n[[member]]\nname = "max"\npool = "{POOL}"\nwindow = 0\ncommand = {command}\n'
        )

    def _prepared_store(self) -> PostgresStore:
        store = PostgresStore(self.server.url())
        witness.install(self.server.url())
        plant_in_database(self.mistake, self.server.url())
        loaded = load_team(self.team)
        for one in self.ids:
            store.create(one, team="kills", team_file=loaded.text, team_path=str(loaded.path), started_at=0)
        return store

    def close(self) -> None:
        """End everything."""
        self.processes.end()
        self.store.close()
        self.server.close()

    def of(self, kind: str) -> list[Actor]:
        """Return the nodes or the workers that run."""
        return [actor for actor in self.actors if actor.kind == kind]

    def complete(self, kind: str) -> None:
        """Start as many as there must be."""
        while len(self.of(kind)) < AT_LEAST:
            address = self._free.pop(0)
            url = self.server.url(host=f"127.0.0.{address}")
            given = [TALKING, url, str(self.team), str(self.notes), *self.ids]
            if kind == "worker":
                file = self.folder / f"worker-{address}.toml"
                file.write_text(f'name = "worker-{address}"\n{self._worker_file}')
                given = [WORKER, url, POOL, str(file)]
            process = self.processes.start(PROCESS, self.mistake, *given)
            self.actors.append(Actor(kind, process, address))

    def take(self, kind: str, chance: random.Random) -> Actor:
        """Take one of a kind out of those that run."""
        actor = chance.choice(self.of(kind))
        self.actors.remove(actor)
        return actor

    def kill(self, actor: Actor) -> None:
        """Kill one that was taken out, and start another."""
        actor.process.kill()
        self._free.append(actor.address)
        self.complete(actor.kind)

    def stop(self, actor: Actor) -> None:
        """Stop one that was taken out with SIGTERM, and start another."""
        actor.process.stop()
        self._free.append(actor.address)
        self.complete(actor.kind)

    def living(self) -> list[int]:
        """Return the processes that say that they live, and hold their locks."""
        return self._ask(LIVING)

    def given_up(self, processes: list[int], since: str) -> tuple[list[int], list[int]]:
        """Return which of some were given up, and which have said since a moment that they live."""
        return self._ask(GIVEN_UP, processes), self._ask(HEARD, processes, since)

    def now(self) -> str:
        """Return the server's time."""
        return str(self._ask("SELECT clock_timestamp()::text")[0])

    def _ask(self, query: str, *given: object) -> list[Any]:
        with psycopg.connect(self.server.url(), options="-c search_path=bullpen_cluster") as connection:
            return [one for (one,) in connection.execute(query.encode(), given)]

    def freeze(self, actor: Actor) -> None:
        """Freeze one that was taken out, and start another."""
        actor.process.freeze()
        self.frozen.append(actor)
        self.complete(actor.kind)

    def wake(self) -> None:
        """Wake the one that has been frozen for longest, if any is."""
        if self.frozen:
            actor = self.frozen.pop(0)
            actor.process.wake()
            self.actors.append(actor)

    def while_nothing_moves(self, look: Callable[["Field"], Iterable[str]]) -> list[str]:
        """Return what one sees while everybody is frozen."""
        for actor in self.actors:
            actor.process.freeze()
        try:
            return list(look(self))
        finally:
            for actor in self.actors:
                actor.process.wake()

    def ended_by_itself(self) -> list[str]:
        """Return who has ended though nobody did anything to it.

        A node that cannot reach the database when it starts says so and ends, and its service starts it again.
        """
        ended = [actor for actor in self.actors if not actor.process.is_running]
        for actor in ended:
            self.actors.remove(actor)
            self._free.append(actor.address)
            self.complete(actor.kind)
        return [
            f"ended: a {actor.kind}" for actor in ended if actor.kind == "worker" or actor.process.line() == "ready"
        ]

    def count(self) -> dict[str, int]:
        """Return how many messages each conversation has."""
        return {one: self.store.conversation(one).messages for one in self.ids}

    def _situation(self, one: str) -> str:
        """Return who has a conversation, and what became of its last orders."""
        turns = [f"{turn.id} {turn.state}" for turn in self.store.turns(one)[-3:]]
        with psycopg.connect(self.server.url(), options="-c search_path=bullpen_cluster") as connection:
            orders = connection.execute(SITUATION, [one]).fetchall()
            living = connection.execute("SELECT id, kind, now() - beat_at FROM processes WHERE ended_at IS NULL")
            processes = [f"{kind} {number} beat {beat} ago" for number, kind, beat in living.fetchall()]
        return f"owner {self.store.conversation(one).owner}, turns {turns}, orders {orders}, processes {processes}"

    def wait(self, *, more: int, each: int, seconds: float) -> list[str]:
        """Wait until so many more messages are stored, in all and in each conversation; return which is stuck."""
        before, deadline = self.count(), time.monotonic() + seconds
        while True:
            grown = {one: number - before[one] for one, number in self.count().items()}
            behind = [one for one, number in grown.items() if number < each]
            if not behind and sum(grown.values()) >= more:
                return []
            # A node that found no server when it started is started again, as its service would do.
            if problems := self.ended_by_itself():
                return problems
            if time.monotonic() > deadline:
                stuck = behind or self.ids
                return [
                    f"stuck: {one} had {grown[one]} new messages in {seconds:.0f} s; {self._situation(one)}"
                    for one in stuck
                ]
            time.sleep(0.05)
