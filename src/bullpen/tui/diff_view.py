"""DiffView: a diff to move in, one below the other or side by side. However long it is, only what is seen is drawn."""

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from bullpen.tui.diff_layout import DiffLayout, Item, Loaded
from bullpen.tui.text import one_line
from bullpen.view.changes import record_words
from bullpen.view.diff import SIGNS, Row
from bullpen.view.line_comments import DiffLine

LEAST_SPLIT = 100
"""Columns that two sides need."""
BETWEEN = "│"


class DiffView(ScrollView, can_focus=True):
    """The files of some changes, with a line that the person is on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", "To the line before", show=False),
        Binding("down", "move(1)", "To the line after", show=False),
        Binding("pageup", "page(-1)", "A page up", show=False),
        Binding("pagedown,space", "page(1)", "A page down", show=False),
        Binding("home", "to(0)", "To the beginning", show=False),
        Binding("end", "to(-1)", "To the end", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *("diff--record", "diff--file", "diff--hunk", "diff--note", "diff--gutter", "diff--empty"),
        *("diff--added", "diff--removed", "diff--plain", "diff--cursor"),
        *("diff--keyword", "diff--name", "diff--string", "diff--number", "diff--comment"),
    }
    DEFAULT_CSS = """
    DiffView { height: 1fr; background: $background; overflow-x: hidden; overflow-y: scroll;
        scrollbar-size-vertical: 1; }
    DiffView > .diff--record { color: $text-primary; text-style: bold; background: $panel; }
    DiffView > .diff--file { text-style: bold; background: $surface; }
    DiffView > .diff--hunk { color: $text-muted; }
    DiffView > .diff--note { color: $text-warning; text-style: italic; }
    DiffView > .diff--gutter { color: $text-muted; }
    DiffView > .diff--empty { background: $surface; }
    DiffView > .diff--plain { color: $foreground; }
    DiffView > .diff--added { background: $success 18%; }
    DiffView > .diff--removed { background: $error 18%; }
    DiffView > .diff--cursor { background: $primary 35%; }
    DiffView > .diff--keyword { color: $text-secondary; }
    DiffView > .diff--name { color: $text-primary; }
    DiffView > .diff--string { color: $text-success; }
    DiffView > .diff--number { color: $text-warning; }
    DiffView > .diff--comment { color: $text-muted; text-style: italic; }
    """

    class Moved(Message):
        """The person is on another line."""

    def __init__(self) -> None:
        super().__init__()
        self._loaded: Sequence[Loaded] = ()
        self._numbers = 1
        self._cursor = 0
        self._wants_split = False
        self._layout = DiffLayout((), text_width=1, is_split=False)

    def show(self, loaded: Sequence[Loaded], path: str = "") -> None:
        """Show other changes, from their beginning or from a file."""
        self._loaded = loaded
        rows = (row for one in loaded for file in one.files for row in file.rows)
        highest = max((max(row.old or 0, row.new or 0) for row in rows), default=0)
        self._numbers = len(str(highest)) + 1
        self._cursor = 0
        self._lay_out()
        self.scroll_to(y=0, animate=False)
        self._go_to_file(path)
        self.post_message(self.Moved())

    @property
    def item(self) -> Item | None:
        """What the person is on."""
        return self._layout.items[self._cursor] if self._layout.items else None

    @property
    def layout_now(self) -> DiffLayout:
        """The lines as they are laid out now."""
        return self._layout

    @property
    def line(self) -> DiffLine | None:
        """The line of a file that the person is on."""
        item = self.item
        file = self._layout.file_of(item) if item is not None else None
        if item is None or file is None or item.kind != "row":
            return None
        place = item.right if item.right >= 0 else item.left
        hunk = self._layout.hunk_of(item)
        return DiffLine(diff=file, hunk=hunk, place=place) if hunk.rows[place].kind != "note" else None

    @property
    def can_split(self) -> bool:
        """Whether there is room for two sides."""
        return self._width >= LEAST_SPLIT

    def turn_split(self) -> None:
        """Show both sides beside each other, or one below the other again; the person stays where they are."""
        self._wants_split = not self._wants_split
        self._lay_out()

    def next_file(self, by: int) -> None:
        """Go to the heading of the file after, or before."""
        places = [place for place, item in enumerate(self._layout.items) if item.kind == "file"]
        if by > 0:
            wanted = next((place for place in places if place > self._cursor), None)
        else:
            wanted = next((place for place in reversed(places) if place < self._cursor), None)
        if wanted is not None:
            self._go_to_top(wanted)

    def on_resize(self, _: Resize) -> None:
        """Lay the lines out for the new width."""
        self._lay_out()

    def on_click(self, event: Click) -> None:
        """Go to a line."""
        place = event.y + round(self.scroll_offset.y)
        if place < len(self._layout.lines):
            self._go(self._layout.lines[place][0])

    def action_move(self, by: int) -> None:
        """Go to a line before or after."""
        self._go(self._cursor + by)

    def action_page(self, by: int) -> None:
        """Go as many lines as are seen."""
        if not self._layout.items:
            return
        height = max(1, self.size.height - 1)
        line = self._layout.first_lines[self._cursor] + by * height
        self._go(self._layout.lines[min(max(0, line), len(self._layout.lines) - 1)][0])

    def action_to(self, place: int) -> None:
        """Go to the beginning or the end."""
        self._go(place if place >= 0 else len(self._layout.items) - 1)

    def render_line(self, y: int) -> Strip:
        """Return one line of the view."""
        width, place = self._width, y + round(self.scroll_offset.y)
        if place >= len(self._layout.lines):
            return Strip.blank(width, self.rich_style)
        number, part = self._layout.lines[place]
        item = self._layout.items[number]
        segments = self._rows(item, part) if item.kind == "row" else self._heading(item)
        if number == self._cursor and self.has_focus:
            cursor = Style(bgcolor=self.get_component_rich_style("diff--cursor").bgcolor)
            segments = [Segment(one.text, (one.style or Style()) + cursor) for one in segments]
        return Strip(segments).adjust_cell_length(width, self.rich_style)

    # Helpers

    @property
    def _width(self) -> int:
        """Columns beside the scroll bar."""
        return self.scrollable_content_region.width

    def _go(self, place: int) -> None:
        if not self._layout.items:
            return
        self._cursor = min(max(0, place), len(self._layout.items) - 1)
        first = self._layout.first_lines[self._cursor]
        self.scroll_to_region(Region(0, first, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Moved())

    def _go_to_top(self, place: int) -> None:
        """Go to an item, and show it on the first line."""
        self._go(place)
        self.scroll_to(y=self._layout.first_lines[place], animate=False)

    def _go_to_file(self, path: str) -> None:
        for place, item in enumerate(self._layout.items if path else ()):
            file = self._layout.file_of(item)
            if item.kind == "file" and file is not None and path in (file.path, file.renamed_from):
                self._go_to_top(place)
                return

    def _lay_out(self) -> None:
        width = self._width
        if not width:
            return
        item = self.item
        is_split = self._wants_split and self.can_split
        gutter = self._numbers + 3 if is_split else 2 * self._numbers + 4
        text = (width - 1 if is_split else width) // (2 if is_split else 1) - gutter
        self._layout = DiffLayout(self._loaded, text_width=text, is_split=is_split)
        self._cursor = _same(self._layout.items, item)
        self.virtual_size = Size(width, len(self._layout.lines))
        if self._layout.items:
            self.scroll_to_region(Region(0, self._layout.first_lines[self._cursor], 1, 1), animate=False, force=True)
        self.refresh()

    def _heading(self, item: Item) -> list[Segment]:
        file, width = self._layout.file_of(item), self._width
        if item.kind == "record":
            return self._whole_line(record_words(self._layout.record_of(item)), "diff--record")
        if file is None or item.kind == "blank":
            return [Segment(" " * width, self.rich_style)]
        if item.kind == "file":
            return self._whole_line(f"{file.title}  {file.about}", "diff--file")
        if item.kind == "cut":
            return self._whole_line("There is more than is shown here: bullpen diff prints all of it.", "diff--note")
        if item.kind == "note" and file.note:
            return self._whole_line(file.note, "diff--note")
        if item.kind == "note":
            words = "A binary file: its lines are not shown." if file.is_binary else "No line has changed."
            return self._whole_line(words, "diff--hunk")
        return self._whole_line(file.hunks[item.hunk].heading, "diff--hunk")

    def _whole_line(self, text: str, name: str) -> list[Segment]:
        width = self._width
        said = one_line(text, max(2, width - 2))
        return _padded([Segment(f" {said}", self._style(name))], width, self._style(name))

    def _rows(self, item: Item, part: int) -> list[Segment]:
        if not self._layout.is_split:
            row = self._layout.row(item, item.left)
            if row is None:
                return []
            numbers = f"{row.old or '':>{self._numbers}} {row.new or '':>{self._numbers}} " if not part else ""
            return self._side(item, item.left, row, numbers, part, self._width)
        half = (self._width - 1) // 2
        sides: list[Segment] = []
        for place, is_left in ((item.left, True), (item.right, False)):
            row = self._layout.row(item, place)
            room = half if is_left else self._width - 1 - half
            if row is None:
                sides.append(Segment(" " * room, self._style("diff--empty")))
            else:
                number = row.old if is_left else row.new
                numbers = f"{number or '':>{self._numbers}} " if not part else ""
                sides += self._side(item, place, row, numbers, part, room)
            sides += [Segment(BETWEEN, self._style("diff--gutter"))] if is_left else []
        return sides

    def _side(self, item: Item, place: int, row: Row, numbers: str, part: int, room: int) -> list[Segment]:
        base = self._style(f"diff--{row.kind}" if row.kind in ("added", "removed") else "diff--plain")
        gutter = self._numbers + 1 if self._layout.is_split else 2 * self._numbers + 2
        sign = f"{(SIGNS[row.kind] or ' ') if not part else ' '} "
        segments = [Segment(f"{numbers:<{gutter}}{sign}", base + self._color("diff--gutter"))]
        for kind, text in self._layout.part_of(item, place, part):
            color = (
                self._color("diff--note" if row.kind == "note" else f"diff--{kind}")
                if kind or row.kind == "note"
                else None
            )
            segments.append(Segment(text, base + color if color is not None else base))
        return _padded(segments, room, base)

    def _style(self, name: str) -> Style:
        return self.get_component_rich_style(name)

    def _color(self, name: str) -> Style:
        """Return only the colour and the slant of a kind, for any background."""
        style = self.get_component_rich_style(name)
        return Style(color=style.color, italic=style.italic)


def _padded(segments: list[Segment], room: int, style: Style) -> list[Segment]:
    used = sum(cell_len(one.text) for one in segments)
    return [*segments, Segment(" " * (room - used), style)] if used < room else segments


def _same(items: Sequence[Item], wanted: Item | None) -> int:
    """Return where an item is in another layout."""
    if wanted is None:
        return 0
    rows = {wanted.left, wanted.right} - {-1}
    for place, item in enumerate(items):
        is_near = (item.kind, item.record, item.file, item.hunk) == (
            wanted.kind,
            wanted.record,
            wanted.file,
            wanted.hunk,
        )
        if is_near and (not rows or rows & {item.left, item.right}):
            return place
    return 0
