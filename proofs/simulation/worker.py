"""SimulatedWorker: takes orders, runs each once, and says how it ended, as cluster/worker.py does."""

from collections.abc import Sequence

from proofs.simulation.loop import Sleep, Steps
from proofs.simulation.model import Key
from proofs.simulation.world import Participant, World

LOOK_SECONDS = 2.0
AT_ONCE = 2


class SimulatedWorker(Participant):
    """A worker of some pools."""

    def __init__(self, world: World, name: str, pools: Sequence[str], *, slowest: float = 4.0) -> None:
        super().__init__(world, name)
        self.pools = pools
        self._slowest = slowest
        self._runs: dict[Key, Steps] = {}
        self._attempts = 0
        self.begin(self._live())

    def _live(self) -> Steps:
        while True:
            yield from self.join("worker", self.pools)
            taking = self.begin(self._take())
            yield from self.beat_until_given_up(self._stop_turns)
            # All that it says now is refused, so it ends what it runs.
            self.end(taking)
            for key in list(self._runs):
                self._stop(key)

    def _take(self) -> Steps:
        while True:
            while len(self._runs) >= AT_ONCE:
                yield Sleep(0.1)
            self._attempts += 1
            key = yield from self.do(self.world.cluster.next_order, self.id, self._attempts)
            while key is None:
                yield self.ring(("pool", self.loop.chance.choice(self.pools)), LOOK_SECONDS)
                key = yield from self.do(self.world.cluster.next_order, self.id, self._attempts)
            self._runs[key] = steps = self._run(key, self.id)
            self.begin(steps)

    def _run(self, key: Key, me: int) -> Steps:
        self.world.watcher.agent_starts(key)
        yield Sleep(self.loop.chance.uniform(0.01, self._slowest))
        del self._runs[key]
        self.world.watcher.agent_stops(key)
        yield from self.do(self.world.cluster.end_order, me, key, "ended")

    def _stop(self, key: Key) -> None:
        self.end(self._runs.pop(key))
        self.world.watcher.agent_stops(key)

    def _stop_turns(self, keys: list[Key]) -> None:
        for key in keys:
            if key in self._runs:
                self._stop(key)
                self.begin(self.do(self.world.cluster.end_order, self.id, key, "cancelled"))
