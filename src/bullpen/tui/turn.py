"""TurnView: one turn while it runs: the steps and the text as they come, a frame at a time."""

import asyncio
import time
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from bullpen.conversation.running_turn import RunningTurn
from bullpen.text.numbers import elapsed, used_by
from bullpen.tui.step_folds import StepFold
from bullpen.tui.text import MOST_CHARACTERS, MOST_LINES, beginning, one_line, weight_of
from bullpen.turn_events import TextDelta
from bullpen.view.steps import Step, Steps

if TYPE_CHECKING:
    from bullpen.tui.markdown import SafeMarkdown

FRAME_SECONDS = 1 / 30
# Steps that are on the screen at once; the others are in the fold of the message.
MOST_FOLDS = 20


class TurnView(Vertical, can_focus=True):
    """A working agent. Its text is what the conversation has of it, so nothing is missed or shown twice."""

    DEFAULT_CSS = """
    TurnView { height: auto; padding: 0 1; margin: 0 0 1 0; border-left: outer $border-blurred; }
    TurnView:focus { background: $primary 8%; }
    TurnView > .header { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    TurnView > .more { color: $text-accent; }
    """

    def __init__(self, running: RunningTurn, steps: Steps, *, name: str, color: str) -> None:
        super().__init__(classes="item")
        self.turn_id = running.turn.id
        self._turn = running
        self._steps = steps
        self._who = one_line(name, 40)
        self._color = color
        self._heading = Static(classes="header", markup=False)
        self._doing = ""
        self._folds: dict[str, StepFold] = {}
        self._shown = 0
        """How many characters of the text are on the screen."""
        self._lines = 0
        self._received = len(running.text)
        """How many characters there were when the last event came."""
        self._thought: Step | None = None
        """A thought that has grown since the last frame."""
        self._text: SafeMarkdown | None = None
        self._is_full = False
        self._frame_is_due = False
        self._last_frame = 0.0
        self._drawing = asyncio.Lock()
        self.styles.border_left = ("outer", color)

    def compose(self) -> ComposeResult:
        """Yield the header, and what there is so far."""
        yield self._heading
        for step in list(self._steps)[-MOST_FOLDS:]:
            yield self._fold(step)

    async def on_mount(self) -> None:
        """Show what it has said so far, and let the clock move."""
        self.tick()
        self.set_interval(1.0, self.tick)
        await self._show_text(self._received)

    def tick(self) -> None:
        """Show what it is doing, for how long it has been running, and what it has used."""
        usage = used_by(self._turn.usage)
        words = f"{one_line(self._turn.doing_now, 40)} · {elapsed(self._turn.seconds)}{f' · {usage}' if usage else ''}"
        # Drawn only if it says something else: it would be drawn again with every word.
        if words != self._doing:
            self._doing = words
            heading = (f"{self._who} ", f"bold {self._color}"), ("● ", "$text-success"), (words, "dim")
            self._heading.update(Content.assemble(*heading), layout=False)

    def add_text(self, text: TextDelta) -> None:
        """Show a piece of text with the next frame."""
        self._received += len(text.text)
        self._ask_for_frame()

    async def show_step(self, step: Step) -> None:
        """Show a step that is new or has changed. It ends the text before it."""
        self.tick()
        if step.key in self._folds:
            if step.kind == "thinking":
                self._thought = step
                self._ask_for_frame()
            else:
                await self._folds[step.key].show_change()
            return
        await self._show_text(self._received)
        self._text = None
        await self.mount(self._fold(step))
        await self._make_room()

    def _fold(self, step: Step) -> StepFold:
        fold = StepFold(step)
        self._folds[step.key] = fold
        return fold

    async def _make_room(self) -> None:
        for key in list(self._folds)[:-MOST_FOLDS]:
            await self._folds.pop(key).remove()

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
        self.tick()
        thought, self._thought = self._thought, None
        if thought is not None and thought.key in self._folds:
            await self._folds[thought.key].show_change()

    async def _show_text(self, until: int) -> None:
        """Append to the text on the screen, as far as a screen takes it; events and frames take turns."""
        async with self._drawing:
            fresh = self._turn.text[self._shown : until].removesuffix("\r")
            if self._is_full or not fresh or not self.is_attached:
                return
            part = beginning(fresh, MOST_CHARACTERS - self._shown, MOST_LINES - self._lines)
            self._shown += len(fresh)
            self._lines += sum(map(weight_of, part.text.split("\n")[1:]))
            await self._append(part.text)
            if part.left_out or self._shown >= MOST_CHARACTERS or self._lines >= MOST_LINES:
                self._is_full = True
                more = Content("… and more, which you can read when the turn has ended")
                await self.mount(Static(more, classes="more", markup=False))

    async def _append(self, text: str) -> None:
        if self._text is None:
            from bullpen.tui.markdown import SafeMarkdown

            self._text = SafeMarkdown()
            await self.mount(self._text)
        # The turn may have ended meanwhile, and with it this view.
        if self._text.is_attached:
            await self._text.append(text)
