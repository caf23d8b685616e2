"""Figure: how soon a message is acknowledged on many machines, and how soon its turn begins."""

import time
from collections.abc import Sequence

from msgspec import Struct

from benchmarks.cluster_stage import Cluster, cluster
from benchmarks.measure import part
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration

OWNER, OTHER, BEGINS = "acknowledged by the owner", "acknowledged through another node", "turn begins on a worker"
WAYS = {OWNER: "a", OTHER: "b"}
GOALS = {OWNER: (0.006, 0.012), OTHER: (0.008, 0.020), BEGINS: (0.016, 0.030)}
OPEN, QUICK_OPEN = (10, 100, 1_000), (2, 4)
SAMPLES, QUICK_SAMPLES = 150, 5
WARM_UP = 10
PAUSE_SECONDS = 0.02
"""After each turn: what it leaves to be stored does not delay the next message."""


class Times(Struct, frozen=True):
    """The median, and what 99 of 100 do not exceed."""

    median: float
    most: float


def measure(*, quick: bool) -> Figure:
    """Say something at both nodes in turn, while more and more conversations are open."""
    sizes, samples = (QUICK_OPEN, QUICK_SAMPLES) if quick else (OPEN, SAMPLES)
    found: dict[int, dict[str, Times]] = {}
    with cluster() as stage:
        asker = stage.asker("a")
        conversations: list[str] = []
        for size in sizes:
            conversations += [asker.begin() for _ in range(size - len(conversations))]
            used = stage.used()
            found[size] = _times(stage, conversations, samples)
            used = stage.used().since(used)
    # The last size has the most that runs beside them.
    spent = {what: duration(seconds / (samples + WARM_UP) / len(WAYS)) for what, seconds in used.parts.items()}
    worst = {
        what: Times(
            max(times[what].median for times in found.values()), max(times[what].most for times in found.values())
        )
        for what in GOALS
    }
    return Figure(
        title="A message on many machines, until it is acknowledged and its turn begins",
        goal="; ".join(f"{what}: {_pair(Times(*goal))}" for what, goal in GOALS.items()) + " (median / 99 of 100)",
        met=all(_is_met(worst[what], *goal) for what, goal in GOALS.items()),
        measured="; ".join(f"{what}: {_pair(times)}" for what, times in worst.items()),
        reason=f"a message and its turn take {spent['nodes']} of processor time in the nodes, {spent['database']} in "
        f"the database and {spent['workers']} in the workers, and all of them share two cores with the program that "
        "asks. Of what the nodes take, a third is the driver of PostgreSQL, a fifth the event loop, and a sixth HTTP "
        "(py-spy, at full load). Until a turn begins, three transactions wait for the disk, one after the other, and "
        "what the prompt is made of is read in between. What one message in a hundred waits for was not singled out: "
        "everything else wants the cores as well.",
        columns=("conversations open on the node", *GOALS),
        rows=[(f"{size:,}", *(_pair(times[what]) for what in GOALS)) for size, times in found.items()],
        meaning=f"Wall-clock time from before the request, on loopback: PostgreSQL that waits for the disk, two nodes, "
        f"two workers, and an agent that does nothing. {samples} messages in each way for each size, one at a time, in "
        "one conversation after the other. A turn begins when its worker says so, before it starts the agent's "
        "program; it counts from the request to the owner. What was measured is the slowest of all sizes.",
        plots=(
            Plot(
                name="cluster-say",
                title="A message on many machines",
                across="conversations open on the node",
                up="wall-clock time, median, lower is better",
                unit="seconds",
                series={what: [(size, times[what].median) for size, times in found.items()] for what in GOALS},
            ),
        ),
    )


def _times(stage: Cluster, conversations: Sequence[str], samples: int) -> dict[str, Times]:
    askers = {way: stage.asker(name) for way, name in WAYS.items()}
    taken: dict[str, list[float]] = {what: [] for what in GOALS}
    for number in range(-WARM_UP, samples):
        one = conversations[number % len(conversations)]
        for way, asker in askers.items():
            begun = stage.turns_begun(one)
            ended = stage.turns_ended()
            start = time.perf_counter()
            asker.say(one)
            acknowledged = time.perf_counter() - start
            began = stage.until_begun(one, begun + 1) - start
            stage.until_ended(ended + 1)
            if number >= 0:
                taken[way].append(acknowledged)
                taken[BEGINS] += [began] * (way == OWNER)
            time.sleep(PAUSE_SECONDS)
    return {what: Times(part(values, 0.5), part(values, 0.99)) for what, values in taken.items()}


def _is_met(times: Times, median: float, most: float) -> bool:
    return times.median <= median and times.most <= most


def _pair(times: Times) -> str:
    return f"{times.median * 1e3:.1f} / {times.most * 1e3:.1f} ms"
