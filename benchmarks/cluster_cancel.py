"""Figure: how soon a turn on a worker is gone when it is cancelled, and how soon a pool without a worker is said."""

import time
from pathlib import Path
from statistics import median

import psutil

from benchmarks.cluster_stage import WAIT_SECONDS, Asker, Cluster, cluster
from benchmarks.report import Figure, duration

GOAL_CANCEL, GOAL_SAID = 2.0, 5.0
ROUNDS, QUICK_ROUNDS = 10, 1
SAID_ROUNDS, QUICK_SAID_ROUNDS = 3, 1
FAMILY = 3
# Three processes, one of them in a session of its own; the pids are in a file in the folder of the worker.
AGENT = """
sleep 600 & echo $! > pids.new
setsid sleep 601 & echo $! >> pids.new
echo $$ >> pids.new; mv pids.new pids; echo Here.; wait
"""
NO_WORKER = b"No worker serves the pool"


def measure(*, quick: bool) -> Figure:
    """Cancel turns at the node that does not own them, and order turns that nobody can run."""
    with cluster(max=("/bin/sh", "-c", AGENT)) as stage:
        cancelled = [_cancelled(stage) for _ in range(QUICK_ROUNDS if quick else ROUNDS)]
        said = [_said(stage.asker("b"), stage.asker("a")) for _ in range(QUICK_SAID_ROUNDS if quick else SAID_ROUNDS)]
    rows = {
        f"cancel until the {FAMILY} processes are gone": cancelled,
        "until it is said that nobody serves a pool": said,
    }
    return Figure(
        title="Cancelling a turn on a worker, and a pool without a worker",
        goal=f"the whole family of the program is gone within {duration(GOAL_CANCEL)}, and that nobody serves a pool "
        f"is said within {duration(GOAL_SAID)}",
        met=max(cancelled) <= GOAL_CANCEL and max(said) <= GOAL_SAID,
        measured=f"{duration(max(cancelled))} and {duration(max(said))}",
        columns=("", "times", "median", "longest"),
        rows=[(what, str(len(taken)), duration(median(taken)), duration(max(taken))) for what, taken in rows.items()],
        meaning="Wall-clock time from the request to a node that does not own the conversation. One process of the "
        "family has a session of its own, so its group does not end it. A pool without a worker is said 3 seconds "
        "after the turn was ordered, so that a worker that starts again is not missed at once.",
    )


def _cancelled(stage: Cluster) -> float:
    owner, other = stage.asker("a"), stage.asker("b")
    conversation = owner.begin()
    owner.say(conversation)
    family = _family(stage)
    start = time.perf_counter()
    other.ask(f"/{conversation}/cancel", {})
    while any(psutil.pid_exists(pid) for pid in family):
        if time.perf_counter() - start > WAIT_SECONDS:
            raise TimeoutError(f"{family} are not gone")
        time.sleep(0.005)
    return time.perf_counter() - start


def _family(stage: Cluster) -> list[int]:
    """Return the processes of the agent that has just been started."""
    until = time.monotonic() + WAIT_SECONDS
    found: list[Path] = []
    while not found:
        if time.monotonic() > until:
            raise TimeoutError("the agent was not started")
        time.sleep(0.005)
        found = list(stage.folder.glob("work-*/pids"))
    pids = [int(line) for line in found[0].read_text().split()]
    found[0].unlink()
    assert len(pids) == FAMILY
    return pids


def _said(watching: Asker, owner: Asker) -> float:
    conversation = owner.begin()
    stream = watching.answer(f"/{conversation}/events")
    start = time.perf_counter()
    owner.say(conversation, "Hi. [NEXT: zoe]")
    while line := stream.readline():
        if NO_WORKER in line:
            return time.perf_counter() - start
    raise RuntimeError("the stream has ended")
