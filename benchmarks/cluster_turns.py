"""Figure: how many turns two workers run in a second, and what a turn takes of the processor."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import local

import psycopg
from msgspec import Struct

from benchmarks.cluster_stage import NODES, Cluster, Used, cluster
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration
from bullpen.cluster.outcomes import CHANNEL

GOAL_TURNS, GOAL_PROCESSOR = 60, 0.020
SIZES, QUICK_SIZES = (10, 100, 1_000), (4, 8)
TURNS, QUICK_TURNS = 1_000, 16
"""In all conversations together."""
ASKERS = 4
LONGEST_SECONDS = 60.0
"""Without any turn that ends."""
STORED_SECONDS = 0.3
"""After which the last replies are stored, too."""


class Taken(Struct, frozen=True, kw_only=True):
    """What some turns took."""

    turns: int
    seconds: float
    used: Used

    @property
    def rate(self) -> float:
        """Turns in a second."""
        return self.turns / self.seconds

    @property
    def processor(self) -> float:
        """Processor time of a turn, without that of its agent."""
        return self.used.ours / self.turns


def measure(*, quick: bool) -> Figure:
    """Let more and more conversations have turns at the same time."""
    sizes, turns = (QUICK_SIZES, QUICK_TURNS) if quick else (SIZES, TURNS)
    found: dict[int, Taken] = {}
    with cluster() as stage:
        conversations: dict[str, str] = {}
        askers = {name: stage.asker(name) for name in NODES}
        for size in sizes:
            for number in range(len(conversations), size):
                node = NODES[number % len(NODES)]
                conversations[askers[node].begin()] = node
            _run(stage, conversations, size)
            found[size] = _run(stage, conversations, max(turns, size))
    slowest = min((taken for size, taken in found.items() if size >= sizes[1]), key=lambda taken: taken.rate)
    processor = max(taken.processor for taken in found.values())
    return Figure(
        title="Turns on two workers",
        goal=f"at least {GOAL_TURNS} turns a second at 100 and at 1,000 conversations, and at most "
        f"{duration(GOAL_PROCESSOR)} of processor time for each, in nodes, workers and database together",
        met=slowest.rate >= GOAL_TURNS and processor <= GOAL_PROCESSOR,
        measured=f"{slowest.rate:.0f} turns a second, {duration(processor)} of processor time",
        reason=f"two cores run all of it here, and a turn takes {duration(processor)} of them besides the "
        f"{duration(slowest.used.agents / slowest.turns)} of its agent and what the disk takes.",
        columns=(
            "conversations",
            "turns a second",
            "processor time",
            "nodes",
            "workers",
            "database",
            "the agent itself",
        ),
        rows=[_row(size, taken) for size, taken in found.items()],
        meaning=f"{turns:,} turns in all conversations together, half of them on each of two nodes. Each message is "
        "said when the turn before it has ended, so every conversation has a turn that runs or waits. The agent is "
        "two lines of sh, and each worker runs 4 at once, as by default. Storing the message and the reply is part "
        "of it, and so are the programs that say the messages: everything shares the cores of this machine.",
        plots=_plots(found),
    )


class Sayers:
    """People who say something in conversations, some at a time, each at the node that has the conversation."""

    def __init__(self, stage: Cluster, conversations: Mapping[str, str]) -> None:
        self._stage = stage
        self._conversations = conversations
        self._threads = ThreadPoolExecutor(ASKERS)
        self._own = local()
        self._said: list[Future[None]] = []

    def say(self, conversation: str) -> None:
        """Say something soon."""
        self._said.append(self._threads.submit(self._say, conversation))

    def _say(self, conversation: str) -> None:
        if not hasattr(self._own, "askers"):
            self._own.askers = {name: self._stage.asker(name) for name in NODES}
        self._own.askers[self._conversations[conversation]].say(conversation)

    def finish(self) -> None:
        """Raise what went wrong."""
        self._threads.shutdown()
        for said in self._said:
            said.result()


def _run(stage: Cluster, conversations: Mapping[str, str], turns: int) -> Taken:
    """Let the conversations have this many turns, each its share."""
    share, rest = divmod(turns, len(conversations))
    left = Counter({one: share + (number < rest) for number, one in enumerate(conversations)})
    sayers = Sayers(stage, conversations)
    with _ends(stage) as ends:
        used, start = stage.used(), time.perf_counter()
        for one in conversations:
            sayers.say(one)
        for _ in range(turns):
            one = next(ends)
            left[one] -= 1
            if left[one] > 0:
                sayers.say(one)
        seconds = time.perf_counter() - start
    sayers.finish()
    time.sleep(STORED_SECONDS)
    return Taken(turns=turns, seconds=seconds, used=stage.used().since(used))


@contextmanager
def _ends(stage: Cluster) -> Iterator[Iterator[str]]:
    """Yield the conversations whose turns end, as they end: the database tells."""
    with psycopg.connect(stage.server.url(), autocommit=True) as connection:
        connection.execute(f"LISTEN {CHANNEL}".encode())
        yield _told(connection)


def _told(connection: psycopg.Connection) -> Iterator[str]:
    # Those that came at the same time are given as well.
    while told := list(connection.notifies(timeout=LONGEST_SECONDS, stop_after=1)):
        yield from (one.payload.partition(" ")[0] for one in told)
    raise TimeoutError(f"no turn has ended for {LONGEST_SECONDS:.0f} s")


def _row(size: int, taken: Taken) -> tuple[str, ...]:
    parts = (taken.used.ours, *taken.used.parts.values(), taken.used.agents)
    return (f"{size:,}", f"{taken.rate:.1f}", *(duration(seconds / taken.turns) for seconds in parts))


def _plots(found: Mapping[int, Taken]) -> tuple[Plot, ...]:
    across = "conversations"
    processor = {
        what: [(size, taken.used.parts[what] / taken.turns) for size, taken in found.items()]
        for what in ("nodes", "workers", "database")
    }
    return (
        Plot(
            name="cluster-turns",
            title="Turns on two workers",
            across=across,
            up="turns a second, higher is better",
            unit="plain",
            series={"turns a second": [(size, taken.rate) for size, taken in found.items()]},
        ),
        Plot(
            name="cluster-processor",
            title="What a turn on a worker takes",
            across=across,
            up="processor time, lower is better",
            unit="seconds",
            series=processor,
        ),
    )
