"""One schedule: a world of some size, what happens to it until a moment, and then time to heal."""

from collections import Counter

from msgspec import Struct
from proofs.simulation.loop import Broken
from proofs.simulation.node import SimulatedNode
from proofs.simulation.person import SimulatedPerson
from proofs.simulation.worker import SimulatedWorker
from proofs.simulation.world import Participant, World

POOLS = ("al", "bo", "cy")
"""One for each agent."""
HEALING_SECONDS, HEALING_LOOKS = 60.0, 20


class Size(Struct, frozen=True, kw_only=True):
    """How large a world is, and how much happens to it."""

    nodes: int = 3
    workers: int = 3
    conversations: int = 2
    words: int = 3
    seconds: float = 20.0
    """Until it heals."""
    mishaps: int = 12
    slowest_turn: float = 4.0
    losses: bool = True


class Played(Struct, frozen=True):
    """What came of a schedule."""

    problem: str
    counts: dict[str, int]
    steps: int


def play(seed: int | str, size: Size) -> Played:
    """Play a schedule to its end, or until a promise is broken."""
    schedule = Schedule(seed, size)
    problem = ""
    try:
        schedule.run()
    except Broken as error:
        problem = f"seed {seed}, second {schedule.world.loop.now:.3f}: {error}"
    return Played(problem, dict(schedule.counts + schedule.world.watcher.counts), schedule.world.loop.steps)


class Schedule:
    """What happens, decided by the seed alone."""

    def __init__(self, seed: int | str, size: Size) -> None:
        self.world = World(seed, size.conversations * size.words)
        self.counts: Counter[str] = Counter()
        self._size = size
        self._restarts = 0
        for number in range(size.nodes):
            SimulatedNode(self.world, f"node-{number}")
        for number in range(size.workers):
            self._start_worker(f"worker-{number}", number)
        for number in range(size.conversations):
            self.world.conversations.create(f"c{number}")
            pause = size.seconds / size.words if size.words > 1 else size.seconds
            SimulatedPerson(self.world, f"c{number}", size.words, pause=pause, nodes=self._node_names)

    def _node_names(self) -> list[str]:
        return [f"node-{number}" for number in range(self._size.nodes)]

    def _start_worker(self, name: str, number: int) -> None:
        # A few serve everything, the others one pool.
        pools = POOLS if number % 3 == 0 else (POOLS[number % len(POOLS)],)
        SimulatedWorker(self.world, name, pools, slowest=self._size.slowest_turn)

    def run(self) -> None:
        """Let it happen, heal it, and look."""
        loop, size = self.world.loop, self._size
        for _ in range(size.mishaps):
            loop.after(loop.chance.uniform(0, size.seconds), self._mishap)
        if size.losses:
            self.world.network.lost = loop.chance.choice([0, 0.01, 0.05])
            self.world.network.doubled = loop.chance.choice([0, 0.05])
        loop.run(size.seconds)
        self._heal()
        for _ in range(HEALING_LOOKS):
            loop.run(loop.now + HEALING_SECONDS / HEALING_LOOKS)
            if self.world.watcher.is_at_rest():
                break
        self.world.watcher.check_at_the_end()

    def _heal(self) -> None:
        self.world.network.lost = self.world.network.doubled = 0
        for actor in list(self.world.actors.values()):
            actor.is_cut_off = False
            actor.wake()

    def _mishap(self) -> None:
        chance = self.world.loop.chance
        mishap = chance.choice(["kill", "kill", "freeze", "cut off", "deliver twice"])
        self.counts[mishap] += 1
        if mishap == "deliver twice":
            doing = [key for key, order in self.world.cluster.orders.items() if order.status == "doing"]
            if doing:
                self.world.cluster.deliver_again(chance.choice(doing))
            return
        kind, number = chance.choice([("node", self._size.nodes), ("worker", self._size.workers)])
        name = f"{kind}-{chance.randrange(number)}"
        actor = self.world.actors.get(name)
        if actor is None:
            return
        if mishap == "kill":
            actor.die()
            self.world.loop.after(chance.uniform(0, 6), self._restart, name)
        elif mishap == "freeze":
            actor.is_frozen = True
            self.world.loop.after(chance.uniform(0, 12), actor.wake)
        else:
            actor.is_cut_off = True
            self.world.loop.after(chance.uniform(0, 12), self._reconnect, actor)

    def _reconnect(self, actor: Participant) -> None:
        actor.is_cut_off = False
        if actor.is_dead:
            actor.close()

    def _restart(self, name: str) -> None:
        kind, _, number = name.partition("-")
        if kind == "node":
            SimulatedNode(self.world, name)
        else:
            self._start_worker(name, int(number))
