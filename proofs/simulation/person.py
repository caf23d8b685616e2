"""SimulatedPerson: says one word after the other in a conversation, through any node, until each is acknowledged."""

from collections.abc import Callable
from typing import Any

from proofs.simulation.loop import AWAY_SECONDS, Actor, Away, Sleep, Steps
from proofs.simulation.node import NotHere, SimulatedNode
from proofs.simulation.world import Participant, World

ASKED = (
    (("al", 0),),
    (("al", 0), ("bo", 0)),
    (("al", 0), ("bo", 1)),
    (("bo", 0), ("al", 0), ("cy", 1)),
)
"""Whom a word asks, each in a step of the relay."""


class SimulatedPerson(Participant):
    """Somebody with a browser. It never dies, and its packets are lost like all others."""

    def __init__(
        self, world: World, conversation: str, words: int, *, pause: float, nodes: Callable[[], list[str]]
    ) -> None:
        super().__init__(world, f"kim in {conversation}")
        self._conversation = conversation
        self._nodes = nodes
        self.begin(self._talk(words, pause))

    def _talk(self, words: int, pause: float) -> Steps:
        for number in range(words):
            yield Sleep(self.loop.chance.uniform(0, pause))
            asked, node = self.loop.chance.choice(ASKED), ""
            while True:
                try:
                    yield from self._ask(node, f"kim-{number}", asked)
                    break
                except NotHere as elsewhere:
                    node = elsewhere.node
                    yield Sleep(0.1)
                except Away:
                    node = ""
                    yield Sleep(0.3)
            self.world.watcher.acknowledged(self._conversation, f"kim-{number}")

    def _ask(self, node: str, message: str, asked: tuple[tuple[str, int], ...]) -> Steps:
        """Let a node store a word: the one that owns the conversation, or any."""
        return (
            yield Request(self, node or self.loop.chance.choice(self._nodes()), (self._conversation, message, asked))
        )

    def request(self, steps: Steps, name: str, given: tuple[Any, ...]) -> None:
        """Send something to a node, and go on with its answer, or after a while without one."""
        is_answered = False

        def answer(error: Exception | None = None) -> None:
            nonlocal is_answered
            if not is_answered:
                is_answered = True
                self.go_on(steps, None, error)

        self.loop.after(2 * AWAY_SECONDS, answer, Away())
        node, delay = self.world.actors.get(name), self.world.network.delay_to(self)
        if isinstance(node, SimulatedNode) and delay is not None:
            self.loop.after(delay, node.go_on, self._serve(node, given, answer))

    def _serve(self, node: SimulatedNode, given: tuple[Any, ...], answer: Callable[..., None]) -> Steps:
        error: Exception | None = None
        try:
            yield from node.say(*given)
        except (Away, NotHere) as raised:
            error = raised
        delay = self.world.network.delay_to(self)
        if delay is not None:
            self.loop.after(delay, answer, error)


class Request:
    """Waits for what a node answers."""

    def __init__(self, person: SimulatedPerson, node: str, given: tuple[Any, ...]) -> None:
        self._person, self._node, self._given = person, node, given

    def grant(self, actor: Actor, steps: Steps) -> None:
        """Send it."""
        self._person.request(steps, self._node, self._given)
