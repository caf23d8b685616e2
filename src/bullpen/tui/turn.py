"""TurnView: one turn while it runs: the steps and the text as they come, a frame at a time."""

import asyncio
import time
from collections.abc import Iterable

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from bullpen.conversation.running_turn import RunningTurn
from bullpen.text.numbers import counted
from bullpen.tui.fold import Fold
from bullpen.tui.live_text import LiveText
from bullpen.tui.step_folds import StepFold
from bullpen.tui.text import one_line
from bullpen.tui.theme import sign_of
from bullpen.turn_events import TextDelta
from bullpen.view.activity import ACTIVITIES, ActivityName
from bullpen.view.steps import Step, Steps

FRAME_SECONDS = 1 / 30
# Steps that are on the screen one by one: the last ones. Those before them are on one line that opens.
MOST_FOLDS = 3


class TurnView(Vertical, can_focus=True):
    """A working agent. Its text is what the conversation has of it, so nothing is missed or shown twice.

    What it does, and for how long, is on the lines above the composer, which do not scroll away.
    """

    DEFAULT_CSS = """
    TurnView { height: auto; padding: 0 1; margin: 0 0 1 0; border-left: outer $border-blurred; }
    TurnView:focus { background: $primary 8%; }
    TurnView > .header { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, running: RunningTurn, steps: Steps, *, name: str, color: str) -> None:
        super().__init__(classes="item")
        self.turn_id = running.turn.id
        self._turn = running
        self._steps = steps
        self._who = Content.styled(one_line(name, 40), f"bold {color}")
        self._heading = Static(classes="header", markup=False)
        self._activity: ActivityName | None = None
        self._earlier = EarlierSteps()
        self._folds: dict[str, StepFold] = {}
        self._received = len(running.text)
        """How many characters there were when the last event came."""
        self._thought: Step | None = None
        """A thought that has grown since the last frame."""
        self._text = LiveText(self)
        self._frame_is_due = False
        self._last_frame = 0.0
        self._drawing = asyncio.Lock()
        self.styles.border_left = ("outer", color)

    def compose(self) -> ComposeResult:
        """Yield the header, and what there is so far."""
        self.show_activity("working")
        yield self._heading
        yield self._earlier
        steps = list(self._steps)
        self._earlier.show(steps[:-MOST_FOLDS])
        for step in steps[-MOST_FOLDS:]:
            yield self._fold(step)

    async def on_mount(self) -> None:
        """Show what it has said so far."""
        await self._show_text(self._received)

    def show_activity(self, name: ActivityName) -> None:
        """Show whether it works or waits for a person."""
        if name != self._activity:
            self._activity, now = name, ACTIVITIES[name]
            sign, style = sign_of(now)
            self._heading.update(Content.assemble(self._who, "  ", (f"{sign}{now.word}", style)), layout=False)

    def add_text(self, text: TextDelta) -> None:
        """Show a piece of text with the next frame."""
        self._received += len(text.text)
        self._ask_for_frame()

    async def show_step(self, step: Step) -> None:
        """Show a step that is new or has changed. It ends the text before it."""
        if step.key in self._folds:
            if step.kind == "thinking":
                self._thought = step
                self._ask_for_frame()
            else:
                await self._folds[step.key].show_change()
            return
        if step.key in [earlier.key for earlier in self._earlier.steps]:
            self._earlier.show(self._earlier.steps)
            return
        await self._show_text(self._received)
        self._text.end_part()
        await self.mount(self._fold(step))
        await self._make_room()

    def _fold(self, step: Step) -> StepFold:
        fold = StepFold(step)
        self._folds[step.key] = fold
        return fold

    async def _make_room(self) -> None:
        """Leave the last steps one by one, and put those before them on one line."""
        for key in list(self._folds)[:-MOST_FOLDS]:
            fold = self._folds.pop(key)
            await fold.remove()
            self._earlier.show([*self._earlier.steps, fold.step])

    def _ask_for_frame(self) -> None:
        """Show what has come: at once after a pause, else together with what comes until the next frame."""
        if self._frame_is_due:
            return
        self._frame_is_due = True
        wait = self._last_frame + FRAME_SECONDS - time.monotonic()
        if wait > 0:
            self.set_timer(wait, self._draw_frame)
        else:
            self.call_later(self._draw_frame)

    async def _draw_frame(self) -> None:
        self._frame_is_due = False
        self._last_frame = time.monotonic()
        # The text first: what is drawn second waits for the next frame of the screen.
        await self._show_text(len(self._turn.text))
        thought, self._thought = self._thought, None
        if thought is not None and thought.key in self._folds:
            await self._folds[thought.key].show_change()

    async def _show_text(self, until: int) -> None:
        """Show the text so far; events and frames take turns."""
        async with self._drawing:
            if self.is_attached:
                await self._text.show(self._turn.text[:until].removesuffix("\r"))


class EarlierSteps(Fold):
    """What an agent did before its last steps, on one line that opens into them."""

    def __init__(self) -> None:
        super().__init__(Content(""), self._all)
        self.steps: list[Step] = []
        self.display = False

    def show(self, steps: list[Step]) -> None:
        """Show these."""
        self.steps = steps
        self.display = bool(steps)
        tools, failed = sum(step.kind == "tool" for step in steps), sum(step.failed for step in steps)
        words = [counted(tools, "earlier tool") if tools else "earlier notes", f"{failed} failed" if failed else ""]
        self.set_title(Content(" · ".join(filter(None, words))))

    def _all(self) -> Iterable[Widget]:
        return [StepFold(step) for step in self.steps]
