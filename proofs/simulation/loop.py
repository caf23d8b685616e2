"""Loop: simulated time. Actors do one step after the other, each a generator that yields what it waits for."""

import heapq
import random
from collections.abc import Callable, Generator
from itertools import islice
from typing import Any, Protocol

AWAY_SECONDS = 3.0
"""After which somebody who was not answered thinks that the other is away."""
LATEST_SECONDS = 10.0
"""Until when something is done a second time: so long may a server have what was asked on a connection that is gone."""


class Away(Exception):
    """There was no answer: what was asked has happened or not, or will happen."""


class Wish(Protocol):
    """What a step waits for."""

    def grant(self, actor: "Actor", steps: "Steps") -> None:
        """Let the actor go on when it is there."""


Steps = Generator[Wish, Any, Any]


class Loop:
    """Does what is due, in its order."""

    def __init__(self, seed: int | str) -> None:
        self.chance = random.Random(seed)
        self.now = 0.0
        self.steps = 0
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def after(self, seconds: float, do: Callable[..., None], *given: Any) -> None:
        """Do something later."""
        self._count += 1
        heapq.heappush(self._due, (self.now + seconds, self._count, do, given))

    def run(self, until: float) -> None:
        """Do everything that is due until then."""
        while self._due and self._due[0][0] <= until:
            self.now, _, do, given = heapq.heappop(self._due)
            self.steps += 1
            do(*given)
        self.now = until


class Actor:
    """A process: it may die, or be frozen for a while."""

    def __init__(self, loop: Loop, name: str) -> None:
        self.loop = loop
        self.name = name
        self.is_dead = False
        self.is_frozen = False
        self.is_cut_off = False
        """No packet gets from it to others, or to it."""
        self._stalled: list[tuple[Steps, Any, Exception | None]] = []
        self._ended: set[Steps] = set()

    def begin(self, steps: Steps) -> Steps:
        """Do steps beside all others."""
        self.go_on(steps)
        return steps

    def end(self, steps: Steps) -> None:
        """Do not go on with steps."""
        self._ended.add(steps)

    def go_on(self, steps: Steps, answer: Any = None, error: Exception | None = None) -> None:
        """Do the next step, as soon as it is not frozen."""
        if self.is_dead:
            return
        if self.is_frozen:
            self._stalled.append((steps, answer, error))
            return
        if self._ended and steps in self._ended:
            self._ended.discard(steps)
            return
        try:
            wish = steps.send(answer) if error is None else steps.throw(error)
        except StopIteration:
            return
        wish.grant(self, steps)

    def wake(self) -> None:
        """Do everything that was due while it was frozen."""
        self.is_frozen = False
        stalled, self._stalled = self._stalled, []
        for steps, answer, error in stalled:
            self.go_on(steps, answer, error)


class Sleep:
    """Waits for a while."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def grant(self, actor: Actor, steps: Steps) -> None:
        """Go on later."""
        actor.loop.after(self._seconds, actor.go_on, steps)


class Ring:
    """Waits until a bell rings, but not for ever: a ring may be lost."""

    def __init__(self, bells: "Bells", key: object, most: float) -> None:
        self._bells, self._key, self._most = bells, key, most

    def grant(self, actor: Actor, steps: Steps) -> None:
        """Go on when it rings, or when it has not for long."""
        self._bells.wait(self._key, actor, steps, self._most)


class Bells:
    """Wakes those who wait for something."""

    def __init__(self, loop: Loop, network: "Network") -> None:
        self._loop, self._network = loop, network
        self._waiting: dict[object, dict[int, tuple[Actor, Steps]]] = {}
        self._count = 0

    def wait(self, key: object, actor: Actor, steps: Steps, most: float) -> None:
        """Wake somebody when it rings, or after a time."""
        self._count += 1
        self._waiting.setdefault(key, {})[self._count] = (actor, steps)
        self._loop.after(most, self._wake, key, self._count)

    def ring(self, key: object, most: int = 1_000_000) -> None:
        """Wake those who wait, soon, if they hear it."""
        for number, (actor, _) in list(islice(self._waiting.get(key, {}).items(), most)):
            delay = self._network.delay_to(actor)
            if delay is not None:
                self._loop.after(delay, self._wake, key, number)

    def _wake(self, key: object, number: int) -> None:
        waiting = self._waiting.get(key)
        if waiting is None or number not in waiting:
            return
        actor, steps = waiting.pop(number)
        if not waiting:
            del self._waiting[key]
        actor.go_on(steps)


class Network:
    """Delays, loses and doubles what actors ask of the database, and of each other."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.lost = 0.0
        self.doubled = 0.0
        self.longest = 0.02
        """Of most delays; a few are much longer while packets are lost."""

    def delay_to(self, actor: Actor) -> float | None:
        """Return how long something takes; None: it is lost."""
        chance = self._loop.chance
        if actor.is_cut_off or (self.lost and chance.random() < self.lost):
            return None
        slow = 100 if self.lost and chance.random() < 0.05 else 1
        return chance.random() * self.longest * slow

    def ask(self, actor: Actor, steps: Steps, do: Callable[[], Any], *, may_be_doubled: bool) -> None:
        """Have the database do something, perhaps twice, and give the actor the answer, if it is not lost."""
        delay = self.delay_to(actor)
        if delay is None:
            self._loop.after(AWAY_SECONDS, actor.go_on, steps, None, Away())
            return
        if may_be_doubled and self.doubled and self._loop.chance.random() < self.doubled:
            self._loop.after(delay + self._loop.chance.uniform(0, LATEST_SECONDS), self._again, do)
        self._loop.after(delay, self._do, actor, steps, do)

    def _do(self, actor: Actor, steps: Steps, do: Callable[[], Any]) -> None:
        answer: Any = None
        error: Exception | None = None
        try:
            answer = do()
        except Broken:
            raise
        except Exception as raised:
            error = raised
        delay = self.delay_to(actor)
        if delay is None:
            delay, answer, error = AWAY_SECONDS, None, Away()
        self._loop.after(delay, actor.go_on, steps, answer, error)

    def _again(self, do: Callable[[], Any]) -> None:
        try:
            do()
        except Broken:
            raise
        except Exception:
            return


class Broken(Exception):
    """A promise is broken."""


class Ask:
    """Asks the database, or somebody else, something."""

    def __init__(self, network: Network, do: Callable[[], Any], *, may_be_doubled: bool = False) -> None:
        self._network, self._do, self._may_be_doubled = network, do, may_be_doubled

    def grant(self, actor: Actor, steps: Steps) -> None:
        """Go on with the answer."""
        self._network.ask(actor, steps, self._do, may_be_doubled=self._may_be_doubled)
