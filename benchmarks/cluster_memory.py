"""Figure: the memory of a node with many conversations."""

import psutil

from benchmarks.cluster_stage import Cluster, cluster
from benchmarks.plot import Plot
from benchmarks.report import Figure

GOAL_BYTES = 500_000_000
OPEN, QUICK_OPEN = (10, 100, 1_000), (2, 4)
TEXT = ("The budget of the context window 上下文窗口 is too small for this. " * 8)[:400]


def measure(*, quick: bool) -> Figure:
    """Open more and more conversations on one node, each with a message and a reply."""
    sizes = QUICK_OPEN if quick else OPEN
    found: dict[int, int] = {}
    with cluster() as stage:
        node = psutil.Process(stage.nodes["a"].process.pid)
        empty = node.memory_info().rss
        conversations = 0
        for size in sizes:
            _open(stage, size - conversations)
            conversations = size
            found[size] = node.memory_info().rss
    most = max(found.values())
    return Figure(
        title="The memory of a node",
        goal=f"at most {_megabytes(GOAL_BYTES)} with {OPEN[-1]:,} open conversations",
        met=most <= GOAL_BYTES,
        measured=f"{_megabytes(most)} with {sizes[-1]:,}",
        columns=("open conversations", "memory", "for each more than an empty node"),
        rows=[
            ("0", _megabytes(empty), ""),
            *(
                (f"{size:,}", _megabytes(taken), f"{(taken - empty) / size / 1e3:,.0f} KB")
                for size, taken in found.items()
            ),
        ],
        meaning="Memory of the process (RSS) after each conversation had a message of 400 characters, a turn on a "
        "worker and a reply. They stay open, as if each could continue at any moment.",
        plots=(
            Plot(
                name="cluster-memory",
                title="The memory of a node",
                across="open conversations",
                up="lower is better",
                unit="bytes",
                series={"a node": list(found.items())},
            ),
        ),
    )


def _open(stage: Cluster, count: int) -> None:
    asker = stage.asker("a")
    ended = stage.turns_ended()
    opened = [asker.begin() for _ in range(count)]
    for one in opened:
        asker.say(one, TEXT)
    stage.until_ended(ended + count)
    asker.until_said(opened[-1], 2)


def _megabytes(taken: float) -> str:
    return f"{taken / 1e6:.0f} MB"
