"""Figure: how soon what an agent writes on a worker is seen at a node that does not own the conversation."""

import re
import threading
import time

from benchmarks.agents_stage import python
from benchmarks.cluster_stage import WAIT_SECONDS, Cluster, cluster
from benchmarks.measure import part
from benchmarks.report import Figure, duration

GOAL_MEDIAN, GOAL_MOST = 0.003, 0.015
PIECES, QUICK_PIECES = 500, 40
WATCHERS = (1, 10)
IGNORED_PIECES = 10
PAUSE_SECONDS = 0.02
# Writes the time every few milliseconds. All processes of a machine have the same clock.
AGENT = """
import os, sys, time
sys.stdin.read()
time.sleep(0.5)
for _ in range({pieces}):
    time.sleep({pause})
    os.write(1, b"<%d>\\n" % time.monotonic_ns())
"""
_TIME = re.compile(rb"<(\d+)>")


class Watcher:
    """Somebody who reads the stream of events of a conversation, and how old what an agent wrote was each time."""

    def __init__(self, stage: Cluster, conversation: str) -> None:
        self.ages: list[float] = []
        self._seen: set[bytes] = set()
        self._stream = stage.asker("b").answer(f"/{conversation}/events")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while line := self._line():
            at = time.monotonic_ns()
            for written in _TIME.findall(line):
                # It is told again as a whole at the end of the turn.
                if written not in self._seen:
                    self._seen.add(written)
                    self.ages.append((at - int(written)) / 1e9)

    def _line(self) -> bytes:
        try:
            return self._stream.readline()
        except (OSError, AttributeError):
            # Its connection was closed meanwhile, which http.client is not prepared for.
            return b""

    def until_heard(self, pieces: int) -> list[float]:
        """Return the ages of all pieces but the first ones."""
        until = time.monotonic() + WAIT_SECONDS
        while len(self.ages) < pieces:
            if time.monotonic() > until:
                raise TimeoutError(f"{len(self.ages)} of {pieces} pieces were heard")
            time.sleep(0.05)
        return self.ages[IGNORED_PIECES:]


def measure(*, quick: bool) -> Figure:
    """Let an agent write the time on a worker, and read it at the node that does not own the conversation."""
    pieces = QUICK_PIECES if quick else PIECES
    with cluster(max=python(AGENT.format(pieces=pieces, pause=PAUSE_SECONDS))) as stage:
        found: dict[int, list[float]] = {}
        spent: dict[int, str] = {}
        for watchers in WATCHERS:
            used = stage.used()
            found[watchers] = _ages(stage, watchers, pieces)
            spent[watchers] = duration(stage.used().since(used).ours / pieces)
    one = found[1]
    return Figure(
        title="From an agent on a worker to somebody at another node",
        goal=f"{duration(GOAL_MEDIAN)} (median) and {duration(GOAL_MOST)} (99 of 100) until an event is there",
        met=part(one, 0.5) <= GOAL_MEDIAN and part(one, 0.99) <= GOAL_MOST,
        measured=f"{duration(part(one, 0.5))} and {duration(part(one, 0.99))}",
        reason=f"an event takes {spent[1]} of processor time in the worker, in both nodes and in the database, and one "
        "process after the other needs one of two cores for it: the agent, the worker, both nodes, and who watches. "
        "What one event in a hundred waits for was not singled out: all processes say that they are alive (every "
        "second), and what was written is stored (every half second), which wants the cores as well.",
        columns=("watching at the other node", "median", "99 of 100", "longest"),
        rows=[
            (str(watchers), duration(part(ages, 0.5)), duration(part(ages, 0.99)), duration(max(ages)))
            for watchers, ages in found.items()
        ],
        meaning=f"Wall-clock time. An agent writes its clock every {duration(PAUSE_SECONDS)}, {pieces} times. It goes "
        "from its program to the worker, to the node that owns the conversation, to the other node, and as a "
        "server-sent event to who watches there.",
    )


def _ages(stage: Cluster, watchers: int, pieces: int) -> list[float]:
    asker = stage.asker("a")
    conversation = asker.begin()
    watching = [Watcher(stage, conversation) for _ in range(watchers)]
    asker.say(conversation)
    return [age for watcher in watching for age in watcher.until_heard(pieces)]
