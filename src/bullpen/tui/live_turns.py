"""LiveTurns: the running turns below the messages, and what each of them has done so far."""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from textual.containers import Vertical

from bullpen.conversation.running_turn import RunningTurn
from bullpen.tui.theme import color_of
from bullpen.tui.turn import TurnView
from bullpen.turn_events import Event, TextDelta
from bullpen.view.steps import Steps


class TurnSteps(Struct, frozen=True, kw_only=True):
    """What an agent has done in a turn, and since when."""

    steps: Steps
    began_at: int = 0
    """Milliseconds since 1970; 0 if we have not seen it begin."""

    def seconds_until(self, ended_at: int) -> float:
        """Return how long the turn took; 0 if nobody knows."""
        return (ended_at - self.began_at) / 1000 if self.began_at else 0.0


class LiveTurns(Vertical):
    """One view for each running turn."""

    DEFAULT_CSS = "LiveTurns { height: auto; }"

    def __init__(self, *, names: Mapping[str, str], colors: Mapping[str, str]) -> None:
        super().__init__(id="live")
        self._names = names
        self._colors = colors
        self._turns: dict[str, TurnSteps] = {}

    @property
    def views(self) -> dict[str, TurnView]:
        """The turns on the screen, by their ids."""
        return {child.turn_id: child for child in self.children if isinstance(child, TurnView)}

    async def begin(self, turn_id: str, running: RunningTurn | None, *, at: int, done: Iterable[Event]) -> None:
        """Show a running turn. One that has ended is not shown, but its steps are kept for its message.

        `done` is what it did before anybody followed it.
        """
        turn = self._turns.setdefault(turn_id, TurnSteps(steps=Steps(done), began_at=at))
        if running is not None and turn_id not in self.views:
            member = running.turn.member
            name, color = self._names.get(member, member), color_of(self._colors, member)
            await self.mount(TurnView(running, turn.steps, name=name, color=color))

    async def on_turn_event(self, turn_id: str, event: Event) -> None:
        """Show what a running agent says or does."""
        view = self.views.get(turn_id)
        if isinstance(event, TextDelta):
            if view is not None:
                view.add_text(event)
            return
        step = self._turns.setdefault(turn_id, TurnSteps(steps=Steps())).steps.add(event)
        if view is not None and step is not None:
            await view.show_step(step)

    async def end(self, turn_id: str) -> TurnSteps | None:
        """Remove a turn that has ended; return what was done in it."""
        turn = self._turns.pop(turn_id, None)
        if turn_id in self.views:
            await self.views[turn_id].remove()
        return turn
