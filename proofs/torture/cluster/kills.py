"""Kills, freezes, stops, lost packets: `python -m proofs.torture.cluster.kills KILLS DROP STUCK SEED MISTAKE FOLDER`.

DROP is for how many seconds packets are dropped, and STUCK how many a conversation may take to continue. Prints what it
found as JSON.
"""

import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
from proofs.torture.cluster import own_network
from proofs.torture.cluster.checks import problems_in
from proofs.torture.cluster.claims import claim_at_once
from proofs.torture.cluster.field import Actor, Field
from proofs.torture.cluster.mistakes import MISTAKES

KILLS_PER_STOP = 50
KILLS_PER_STOP_OF_NODE = 2
KILLS_PER_DROP = 100
KILLS_PER_CALM = 10
CLAIMS_PER_KILL = 2
MOST_FROZEN = 2
RECOVERY_SECONDS = 8.0
"""Longer than after which a silent process is given up: nobody may be, though all are late."""
FROZEN_SECONDS = 7.0
"""Longer than after which a silent process is given up."""
AGAIN = "UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL WHERE status = 'doing'"
MOST_TRIES = 12
"""With a mistake."""


class Torture:
    """Does one thing after the other to a field."""

    def __init__(self, field: Field, *, seed: int, drop_seconds: float, stuck_seconds: float) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._field = field
        self._chance = random.Random(seed)
        self._drop_seconds, self._stuck_seconds = drop_seconds, stuck_seconds
        self.mishaps: dict[str, Callable[[], None]] = {
            "kill a node": lambda: self._kill("node"),
            "kill a worker": lambda: self._kill("worker"),
            "stop a node": self._stop_node,
            "freeze a node": lambda: self._freeze("node"),
            "freeze a worker": lambda: self._freeze("worker"),
            "freeze a node for long": lambda: self._freeze("node", FROZEN_SECONDS),
            "stop the database": self._stop,
            "drop packets": self._drop,
            "deliver twice": self._deliver_twice,
            "claim": lambda: self._claim(CLAIMS_PER_KILL),
        }

    def run(self, kills: int) -> None:
        """Kill so often, and do everything else in between."""
        # A conversation in which nothing was said does not outlive who stops.
        self._go_on(calm=True)
        for number in range(1, kills + 1):
            self._go_on(calm=number % KILLS_PER_CALM == 0)
            self._do(self._chance.choice(["kill a node", "kill a worker"]))
            if self._chance.random() < 0.4:
                self._do(self._chance.choice(["freeze a node", "freeze a worker", "deliver twice"]))
            if number % KILLS_PER_STOP_OF_NODE == 0:
                self._do("stop a node")
            if self._chance.random() < 0.4:
                self._field.wake()
            if number % KILLS_PER_STOP == min(kills, KILLS_PER_STOP) // 2:
                self._do("stop the database")
            if number % KILLS_PER_DROP == min(kills, KILLS_PER_DROP) // 3:
                self._do("drop packets")
            if self.problems:
                break
        else:
            self._claim(CLAIMS_PER_KILL * kills)
        self._finish()

    def run_until_seen(self, mishaps: tuple[str, ...]) -> None:
        """Do some things again and again, until a promise is broken."""
        self._go_on(calm=True)
        for _ in range(MOST_TRIES):
            for mishap in mishaps:
                self._go_on(calm=False)
                self._do(mishap)
                time.sleep(self._chance.uniform(0, 2))
                self.problems.extend(self._field.while_nothing_moves(problems_in))
            if self.problems:
                break

    def _do(self, mishap: str) -> None:
        self.problems.extend(self._field.ended_by_itself())
        self.mishaps[mishap]()

    def _go_on(self, *, calm: bool) -> None:
        """Let the conversations go on; if it is calm, each of them must."""
        began = time.monotonic()
        each, more = (2, 2 * len(self._field.ids)) if calm else (0, 3)
        self.problems.extend(self._field.wait(more=more, each=each, seconds=self._stuck_seconds))
        if calm:
            waited = round(1000 * (time.monotonic() - began))
            key = "longest until every conversation had gone on, in milliseconds"
            self.counts[key] = max(self.counts[key], waited)

    def _kill(self, kind: str) -> None:
        self.counts[f"kills of a {kind}"] += 1
        self._field.kill(self._field.take(kind, self._chance))

    def _freeze(self, kind: str, seconds: float = 0) -> None:
        if len(self._field.frozen) >= MOST_FROZEN:
            self._field.wake()
        self.counts[f"a {kind} frozen and woken"] += 1
        self._field.freeze(self._field.take(kind, self._chance))
        if seconds:
            time.sleep(seconds)
            self._field.wake()

    def _stop_node(self) -> None:
        self.counts["stops of a node with SIGTERM"] += 1
        self._field.stop(self._field.take("node", self._chance))

    def _stop(self) -> None:
        """Stop the database as in a crash; every other time, its recovery takes long."""
        self.counts["immediate stops of PostgreSQL"] += 1
        if self.counts["immediate stops of PostgreSQL"] % 2:
            self._recover_slowly()
            return
        self._field.server.stop(signal.SIGQUIT)
        time.sleep(self._chance.uniform(0, 4))
        self._field.server.start()

    def _recover_slowly(self) -> None:
        """Note who is given up after that, though nobody did anything to it."""
        self.counts["recoveries of PostgreSQL that took longer than a silent process has"] += 1
        while self._field.frozen:
            self._field.wake()
        living = self._field.living()
        self._field.server.stop(signal.SIGQUIT)
        self._field.server.start(recovers_for=RECOVERY_SECONDS)
        back, deadline = self._field.now(), time.monotonic() + self._stuck_seconds
        while True:
            lost, heard = self._field.given_up(living, back)
            if len(lost) + len(heard) >= len(living) or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.problems.extend(f"living: {one} was given up after a crash of the server" for one in lost)

    def _drop(self) -> None:
        """Drop what a node, or now and then a worker, and the database say to each other."""
        if not self._drop_seconds:
            return
        actor: Actor = self._chance.choice(
            [*self._field.of("node"), *self._field.of("node"), *self._field.of("worker")]
        )
        self.counts[f"seconds in which all packets between a {actor.kind} and PostgreSQL were dropped"] += round(
            self._drop_seconds
        )
        own_network.drop(actor.host)
        time.sleep(self._drop_seconds)
        own_network.heal()

    def _deliver_twice(self) -> None:
        """Hand out again what workers run, as soon as they run something."""
        url, again = self._field.server.url(), 0
        with psycopg.connect(url, autocommit=True, options="-c search_path=bullpen_cluster") as connection:
            deadline = time.monotonic() + self._stuck_seconds
            while not again and time.monotonic() < deadline:
                again = connection.execute(AGAIN).rowcount
        self.counts["orders delivered twice"] += again

    def _claim(self, rounds: int) -> None:
        self.counts["rounds in which 16 processes claimed one conversation"] += rounds
        self.problems.extend(claim_at_once(self._field, rounds))

    def _finish(self) -> None:
        """Let everything come to rest, look at it, and count what there is."""
        while self._field.frozen:
            self._field.wake()
        self._go_on(calm=True)
        self.problems.extend(self._field.ended_by_itself())
        self._field.processes.end()
        self.problems.extend(problems_in(self._field))
        turns = Counter(turn.state for one in self._field.ids for turn in self._field.store.turns(one))
        self.counts.update({f"turns {state}": number for state, number in turns.items() if state != "running"})
        self.counts["agents started"] = self._field.starts.read_text().count("start ")
        self.counts["messages acknowledged"] = self._field.notes.read_text().count("\n")
        log = (self._field.folder / "log").read_text(errors="replace")
        self.counts["late ends of workers refused"] = log.count("accepted=False")


def tortured(kills: int, drop: float, stuck: float, seed: int, mistake: str, folder: Path) -> dict[str, Any]:
    """Return what was found; with a mistake, as soon as it was."""
    why_not = own_network.enter()
    field = Field(folder, mistake)
    torture = Torture(field, seed=seed, drop_seconds=0 if why_not else drop, stuck_seconds=stuck)
    try:
        if mistake:
            torture.run_until_seen(MISTAKES[mistake].mishaps)
        else:
            torture.run(kills)
    finally:
        field.close()
    log = (folder / "log").read_text(errors="replace")
    trace = log[log.rfind("Traceback") :][:3000] if "Traceback" in log else ""
    return {"counts": torture.counts, "problems": torture.problems, "trace": trace, "no drops": why_not}


if __name__ == "__main__":
    kills_, drop_, stuck_, seed_, mistake_, folder_ = sys.argv[1:]
    found = tortured(int(kills_), float(drop_), float(stuck_), int(seed_), mistake_, Path(folder_))
    print(json.dumps(found))
