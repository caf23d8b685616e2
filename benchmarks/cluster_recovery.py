"""Figure: how soon conversations go on after their node has died or is frozen."""

import time
from collections.abc import Callable
from statistics import median

from tests.cluster.serving import ServingNode

from benchmarks.cluster_stage import Cluster, cluster
from benchmarks.report import Figure, duration

GOALS = {"dead": 2.0, "frozen": 7.0}
ROUNDS, QUICK_ROUNDS = {"dead": 5, "frozen": 3}, {"dead": 1, "frozen": 1}
CONVERSATIONS, QUICK_CONVERSATIONS = 10, 2


def measure(*, quick: bool) -> Figure:
    """Let the owner of conversations die or freeze, and say something in one of them at the other node."""
    rounds, count = (QUICK_ROUNDS, QUICK_CONVERSATIONS) if quick else (ROUNDS, CONVERSATIONS)
    ends: dict[str, Callable[[ServingNode], None]] = {
        "dead": lambda node: node.process.kill(),
        "frozen": lambda node: node.process.freeze(),
    }
    with cluster() as stage:
        found = {how: [_recovery(stage, end, count) for _ in range(rounds[how])] for how, end in ends.items()}
    return Figure(
        title="A node that dies, and one that freezes",
        goal=f"its conversations go on elsewhere within {duration(GOALS['dead'])} (kill -9) and "
        f"{duration(GOALS['frozen'])} (SIGSTOP)",
        met=all(max(found[how]) <= goal for how, goal in GOALS.items()),
        measured=", ".join(f"{duration(max(taken))} ({how})" for how, taken in found.items()),
        columns=("the node is", "times", "median", "longest"),
        rows=[(how, str(len(taken)), duration(median(taken)), duration(max(taken))) for how, taken in found.items()],
        meaning=f"Wall-clock time from the signal until the other node has acknowledged a message in each of {count} "
        "conversations that the node had. The first message is sent right after the signal, as by somebody who notices "
        "nothing, and is sent once. A frozen node is given up after 5 seconds without a sign of life.",
    )


def _recovery(stage: Cluster, end: Callable[[ServingNode], None], count: int) -> float:
    owner, other = stage.asker("a"), stage.asker("b")
    conversations = [owner.begin() for _ in range(count)]
    for one in conversations:
        owner.say(one)
    for one in conversations:
        other.until_said(one, 2)
    end(stage.nodes["a"])
    start = time.perf_counter()
    for one in conversations:
        other.say(one, "And now?")
    taken = time.perf_counter() - start
    for one in conversations:
        other.until_said(one, 4)
    stage.nodes["a"].process.kill()
    stage.nodes["a"] = stage.start_node("a")
    return taken
