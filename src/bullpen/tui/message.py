"""MessageView: one message: who said it, to whom, when, what; and what the agent did before it answered."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from bullpen.messages import ConversationMessage
from bullpen.text.numbers import clock
from bullpen.tui.change_line import ChangedLine
from bullpen.tui.check_fold import CheckFold
from bullpen.tui.long_text import folded
from bullpen.tui.middle_fold import MiddleFold
from bullpen.tui.remark_line import remark_line
from bullpen.tui.step_folds import LoadSteps, RecordedFold, StepsFold
from bullpen.tui.text import one_line, shown
from bullpen.tui.theme import LIGHTS, color_of
from bullpen.tui.unanswered_fold import UnansweredFold
from bullpen.view.change_reading import ChangeLine
from bullpen.view.checks import CheckLine
from bullpen.view.chips import chips
from bullpen.view.messages import ShownMessage, rebuilt_words
from bullpen.view.notices import Notice, notice_of
from bullpen.view.reply_parts import reply_parts
from bullpen.view.steps import Steps
from bullpen.view.unanswered import UnansweredTurn


class MessageView(Vertical, can_focus=True):
    """One message. It has the focus when a person moves to it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "whole", "The whole text of a message", show=False),
        Binding("ctrl+f", "screen.fork", "Fork: a new conversation with the messages up to this one", show=False),
    ]
    DEFAULT_CSS = """
    MessageView { height: auto; padding: 0 1; margin: 0 0 1 0; border-left: outer $border-blurred; }
    MessageView:focus { background: $primary 8%; }
    MessageView > .header { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    MessageView > .notice, MessageView > .note { height: auto; text-wrap: wrap; color: $text-muted; }
    MessageView > .why { color: $text-muted; }
    """

    class Opened(Message):
        """A person wants to read all of it."""

        def __init__(self, message: ConversationMessage) -> None:
            super().__init__()
            self.message = message

    def __init__(
        self,
        shown_message: ShownMessage,
        *,
        colors: Mapping[str, str],
        names: dict[str, str],
        steps: Steps | None = None,
        seconds: float = 0.0,
        load_steps: LoadSteps | None = None,
        why: str = "",
        notes: tuple[str, ...] = (),
        changes: Sequence[ChangeLine] = (),
        checks: Sequence[CheckLine] = (),
        came: Sequence[UnansweredTurn | ChangeLine | CheckLine] = (),
    ) -> None:
        super().__init__(classes="item")
        self.message = shown_message.message
        self.sequence = shown_message.sequence
        """Its place in the conversation."""
        self.turn_id = shown_message.turn
        """The turn that ended with it, if an agent said it."""
        self._rebuilt = shown_message.rebuilt
        self._unanswered = shown_message.unanswered
        """Turns that ended after it without a reply."""
        self._colors = colors
        self._color = color_of(colors, self.message.speaker.role_id)
        self._names = names
        self._steps = steps
        self._seconds = seconds
        self._load_steps = load_steps
        self._why = why
        self._notes = notes
        self._changes = changes
        """What its turn changed."""
        self._checks = checks
        """What checks said after its turn."""
        self._came = came
        """What came after it, in its order: turns without a reply, and what was changed or taken back."""
        self._heading = Static(classes="header", markup=False)
        self.styles.border_left = ("outer", self._color)

    def compose(self) -> ComposeResult:
        """Yield what was said and what is known about it."""
        notice = notice_of(self.message)
        self._heading.update(self._header() if notice is None else self._noticed(notice))
        self._heading.set_class(notice is not None, "notice")
        yield self._heading
        yield from () if notice is not None else self._said()
        if self._rebuilt:
            yield Static(Content(shown(rebuilt_words(self._rebuilt))), classes="note", markup=False)
        for note in self._notes:
            yield Static(Content(f"! {shown(note)}"), classes="note", markup=False)
        yield from map(ChangedLine, self._changes)
        yield from map(CheckFold, self._checks)
        for one in self._came:
            yield self._line(one)

    def _said(self) -> ComposeResult:
        # Importing Markdown takes longer than the rest of the screen, and nobody waits for it at the start.
        from bullpen.tui.markdown import SafeMarkdown

        if self._steps:
            yield StepsFold(self._steps, self._seconds)
        elif self._steps is None and self._load_steps is not None:
            yield RecordedFold(self._load_steps)
        parts = reply_parts(self.message)
        said = folded(["\n".join(part.remarks) or part.text for part in parts])
        for number, text in said.before:
            yield remark_line(parts[number], text) if parts[number].remarks else SafeMarkdown(text)
        if said.middle:
            yield MiddleFold(said.middle)
        for number, text in said.after:
            yield remark_line(parts[number], text) if parts[number].remarks else SafeMarkdown(text)

    def _line(self, one: UnansweredTurn | ChangeLine | CheckLine) -> Widget:
        match one:
            case UnansweredTurn():
                return self._fold(one)
            case CheckLine():
                return CheckFold(one)
            case _:
                return ChangedLine(one)

    async def add_check(self, line: CheckLine) -> None:
        """Show that a check runs, or how it ended: in the same line."""
        if line.turn == self.turn_id:
            self._checks = [*(one for one in self._checks if one.name != line.name), line]
            self._heading.update(self._header(), layout=False)
        for fold in self.query(CheckFold):
            if fold.line.check == line.check:
                await fold.show(line)
                return
        await self.mount(CheckFold(line))

    async def add_change(self, line: ChangeLine) -> None:
        """Show what its turn changed, which is known a moment after the reply, or what was changed after it."""
        for shown_line in self.query(ChangedLine):
            if shown_line.line.number == line.number:
                await shown_line.remove()
        await self.mount(ChangedLine(line))

    async def add_unanswered(self, turn: UnansweredTurn) -> None:
        """Show a turn that ended after this message without a reply."""
        if turn.turn not in [one.turn for one in self._unanswered]:
            self._unanswered = (*self._unanswered, turn)
            await self.mount(self._fold(turn))

    def _fold(self, turn: UnansweredTurn) -> UnansweredFold:
        name, color = self._names.get(turn.member, turn.member), color_of(self._colors, turn.member)
        return UnansweredFold(turn, name=name, color=color)

    def action_whole(self) -> None:
        """Show all of it, exactly as it was said."""
        self.post_message(self.Opened(self.message))

    def _noticed(self, notice: Notice) -> Content:
        """Return what bullpen itself says: less than what people and agents say."""
        rest = f"\n{notice.rest}" if notice.rest else ""
        return Content.assemble(
            (f"{self.message.speaker.role_name}: ", "dim"),
            shown(notice.line),
            (f"  {clock(self.message.timestamp)}  #{self.sequence}{shown(rest)}", "dim"),
        )

    def _header(self) -> Content:
        message = self.message
        addressees = message.routing.resolved_addressees if message.routing else ()
        to = ", ".join(self._names.get(name, name) for name in addressees) or "everyone"
        title = f" {one_line(message.speaker.role_title, 30)}" if message.speaker.role_title else ""
        why = f"  ({one_line(self._why, 60)})" if self._why else ""
        return Content.assemble(
            (one_line(message.speaker.role_name, 40), f"bold {self._color}"),
            (title, "dim"),
            (" → ", "dim"),
            one_line(to, 60),
            *((f"  {one.sign} {one.words}", LIGHTS[one.light]) for one in chips(message, self._checks)),
            (f"  {clock(message.timestamp)}  #{self.sequence}{why}", "dim"),
        )
