"""Figure: what nodes, workers and the database take of the processor while nothing happens."""

import time

from benchmarks.cluster_stage import Cluster, cluster
from benchmarks.report import Figure

GOAL = 0.01
SECONDS, QUICK_SECONDS = 20.0, 2.0
CONVERSATIONS, QUICK_CONVERSATIONS = 100, 3
SETTLED_SECONDS = 2.0


def measure(*, quick: bool) -> Figure:
    """Wait, then wait again after conversations that stay open had a turn each."""
    seconds, count = (QUICK_SECONDS, QUICK_CONVERSATIONS) if quick else (SECONDS, CONVERSATIONS)
    with cluster() as stage:
        found = {"nothing": _shares(stage, seconds)}
        asker = stage.asker("a")
        conversations = [asker.begin() for _ in range(count)]
        for one in conversations:
            asker.say(one)
        for one in conversations:
            asker.until_said(one, 2)
        found[f"{count} conversations on node a"] = _shares(stage, seconds)
    processes = {name: [shares[name] for shares in found.values()] for name in found["nothing"]}
    most = max(max(shares) for name, shares in processes.items() if name != "database")
    return Figure(
        title="An idle cluster",
        goal=f"each node and each worker takes at most {GOAL:.0%} of a core while nothing happens",
        met=most <= GOAL,
        measured=f"{most:.1%}",
        columns=("process", *(f"open: {what}" for what in found)),
        rows=[(name, *(f"{share:.2%}" for share in shares)) for name, shares in processes.items()],
        meaning=f"Processor time in {seconds:.0f} seconds in which nobody says anything: every process says that it "
        "lives each second, and nodes look for others that do not. The database is that of all four together.",
    )


def _shares(stage: Cluster, seconds: float) -> dict[str, float]:
    """Return the share of a core that each process takes."""
    time.sleep(SETTLED_SECONDS)
    before, start = stage.used(), time.monotonic()
    time.sleep(seconds)
    used, elapsed = stage.used().since(before), time.monotonic() - start
    nodes = {f"node {name}": taken / elapsed for name, taken in used.nodes.items()}
    workers = {f"worker {name}": taken / elapsed for name, taken in used.workers.items()}
    return {**nodes, **workers, "database": used.database / elapsed}
