"""CompareScreen: several results of one task beside each other: what each said, what it changed, and which to pick."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import HorizontalScroll, Vertical, VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.file_changes import ChangeRecord
from bullpen.tui.check_fold import CheckFold
from bullpen.tui.diff_layout import Loaded
from bullpen.tui.diff_view import DiffView
from bullpen.tui.key_line import KeyLine
from bullpen.tui.second_press import QUESTION_SECONDS, SecondPress
from bullpen.tui.text import one_line
from bullpen.tui.text_screen import LinesView
from bullpen.tui.theme import color_of
from bullpen.view.best_of import Result, Results
from bullpen.view.diff import file_diffs
from bullpen.view.state import conversation_view

MOST_KEYS = 9
LEAST_COLUMNS = 38
"""Of the terminal, for one result; if there are more results than fit, the others are to the right."""
MOST_REPLY = 100_000
"""Characters of a reply that are shown here; the conversation has all of it."""


class Choice(NamedTuple):
    """What a person does with the results."""

    action: str
    member: str = ""


class Column(Vertical):
    """One result."""

    DEFAULT_CSS = """
    Column { height: 100%; border-left: outer $border-blurred; padding: 0; }
    Column:focus-within { background: $primary 6%; }
    Column > .head { height: auto; max-height: 4; padding: 0 1; background: $panel; }
    Column > LinesView { height: auto; max-height: 40%; min-height: 2; padding: 0 1; }
    Column > .checks { height: auto; max-height: 30%; padding: 0 1; }
    Column > .nothing { color: $text-muted; padding: 1; height: 1fr; }
    """

    def __init__(self, number: int, result: Result, records: Sequence[ChangeRecord], color: str) -> None:
        super().__init__()
        self.result = result
        self._number = number
        self._color = color
        self._records = records
        self._diff = DiffView()
        self.styles.border_left = ("outer", color)

    def compose(self) -> ComposeResult:
        """Yield who it is, what it said, what checks say about it, and what it changed."""
        yield Static(self._head(), classes="head", markup=False)
        yield LinesView(self.result.reply[:MOST_REPLY] or "(It said nothing.)")
        if self.result.checks:
            with VerticalScroll(classes="checks", can_focus=False):
                yield from map(CheckFold, self.result.checks)
        if self._records:
            yield self._diff
        else:
            yield Static("It changed no files.", classes="nothing", markup=False)

    def on_mount(self) -> None:
        """Read the patches."""
        if self._records:
            self._diff.show([Loaded(record, tuple(file_diffs(record.changes))) for record in self._records])

    def _head(self) -> Content:
        one = self.result
        key = f"{self._number} " if one.can_be_picked and self._number <= MOST_KEYS else ""
        letter = f"{one.letter} for the judge" if one.letter else ""
        about = " · ".join(filter(None, [f"turn {one.turn}", one.summary, one.about, letter]))
        return Content.assemble(
            (key, "bold reverse" if key else ""),
            (one_line(one.member, 40), f"bold {self._color}"),
            "\n",
            (about, "dim"),
        )


class CompareScreen(ModalScreen[Choice | None]):
    """All results. It ends with what to do, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("1", "pick(1)", "Pick", key_display="1-9", tooltip="Pick a result; asks first"),
        *(Binding(str(number), f"pick({number})", "Pick", show=False) for number in range(2, MOST_KEYS + 1)),
        # First of all: if there is more than fits, the arrows would only scroll.
        Binding("right,tab", "column(1)", "Next", key_display="→", priority=True),
        Binding("left,shift+tab", "column(-1)", "Previous", key_display="←", priority=True),
        Binding("c", "checks", "Checks", tooltip="Open or close what checks wrote about the result that has the focus"),
        Binding("d", "discard", "Drop", tooltip="Drop the result that has the focus; asks first"),
        Binding("a", "discard_all", "Drop the rest", tooltip="Drop all results that were not picked; asks first"),
    ]
    DEFAULT_CSS = """
    CompareScreen { background: $background; }
    CompareScreen > .title { dock: top; height: auto; max-height: 3; padding: 0 1; background: $panel; }
    CompareScreen > HorizontalScroll { height: 1fr; scrollbar-size-horizontal: 1; }
    CompareScreen > Footer { padding: 0 1; }
    CompareScreen FooterKey { margin: 0 1 0 0; }
    """

    def __init__(self, results: Results, changes: Sequence[Sequence[ChangeRecord]], conversation: Conversation) -> None:
        super().__init__()
        self._results = results
        colors = conversation_view(conversation).colors
        self._columns = [
            Column(number, result, records, color_of(colors, result.member))
            for number, (result, records) in enumerate(zip(results.results, changes, strict=True), start=1)
        ]
        self._second_press = SecondPress()

    def compose(self) -> ComposeResult:
        """Yield where it stands, and the results beside each other."""
        text = Content.assemble((one_line(self._results.task, 200), "bold"), "\n", one_line(self._results.text, 300))
        yield Static(text, classes="title", markup=False)
        with HorizontalScroll(can_focus=False):
            yield from self._columns
        yield KeyLine()

    def on_mount(self) -> None:
        """Begin with the first one."""
        self._focus(0)

    def on_resize(self, event: Resize) -> None:
        """Show as many beside each other as can be read, all of them of the same width."""
        beside = min(len(self._columns), max(1, event.size.width // LEAST_COLUMNS))
        for column in self._columns:
            column.styles.width = event.size.width // beside

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_column(self, by: int) -> None:
        """Go to another result."""
        self._focus((self._place + by) % len(self._columns))

    def action_pick(self, number: int) -> None:
        """Pick a result."""
        if number > len(self._columns):
            return
        self._focus(number - 1)
        result = self._columns[number - 1].result
        if not result.can_be_picked:
            self.notify(f"{one_line(result.member, 40)}: {result.about or self._results.text}", markup=False)
        elif self._is_sure(str(number), f"pick the result of {result.member}"):
            self.dismiss(Choice("pick", result.member))

    async def action_checks(self) -> None:
        """Open or close what checks wrote about the result that has the focus."""
        folds = list(self._columns[self._place].query(CheckFold))
        is_open = any(fold.is_open for fold in folds)
        for fold in folds:
            if fold.is_open == is_open:
                await fold.toggle()

    def action_discard(self) -> None:
        """Drop the result that has the focus."""
        result = self._columns[self._place].result
        if not result.can_be_dropped:
            self.notify(f"{one_line(result.member, 40)}: {result.about or 'it cannot be dropped now'}.", markup=False)
        elif self._is_sure("d", f"drop the result of {result.member}"):
            self.dismiss(Choice("discard", result.member))

    def action_discard_all(self) -> None:
        """Drop everything that was not picked."""
        if any(one.can_be_dropped for one in self._results.results) and self._is_sure("a", "drop all unpicked results"):
            self.dismiss(Choice("discard"))

    def _is_sure(self, key: str, what: str) -> bool:
        """Return whether a key was pressed twice; else ask for that."""
        question = f"{key} again: {one_line(what, 100)}."
        is_sure = self._second_press.confirms(question)
        if is_sure:
            self.app.clear_notifications()
        else:
            self.notify(question, timeout=QUESTION_SECONDS, markup=False)
        return is_sure

    @property
    def _place(self) -> int:
        return next((place for place, one in enumerate(self._columns) if one.has_focus_within), 0)

    def _focus(self, place: int) -> None:
        column = self._columns[place]
        next(child for child in reversed(column.children) if child.can_focus).focus()
        column.scroll_visible(animate=False)
