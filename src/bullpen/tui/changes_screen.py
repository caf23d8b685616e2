"""ChangesScreen: everything that was changed in a conversation: per turn, per member, or all together."""

from collections.abc import Iterator
from typing import ClassVar, Literal, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from bullpen.tui.key_line import KeyLine
from bullpen.tui.text import one_line
from bullpen.view.changes import ChangedFile, ChangeGroup, Changes

Shown = Literal["turns", "members", "together"]
TITLES: dict[Shown, str] = {"turns": "per turn", "members": "per member", "together": "all together"}
MOST_FILES = 200
"""Of one heading that are listed."""


class Chosen(NamedTuple):
    """What a person wants to see line by line."""

    keys: tuple[str, ...]
    """Of the changes."""
    path: str = ""
    """The file to begin with."""


class ChangesScreen(ModalScreen[Chosen | None]):
    """A list of files below their headings. It ends with what to show, or with None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("1", "show('turns')", "Per turn"),
        Binding("2", "show('members')", "Per member"),
        Binding("3", "show('together')", "All together"),
    ]
    DEFAULT_CSS = """
    ChangesScreen { background: $background; }
    ChangesScreen > .head { dock: top; height: 2; padding: 0 1; background: $panel; text-wrap: nowrap;
        text-overflow: ellipsis; }
    ChangesScreen > OptionList, ChangesScreen > OptionList:focus { height: 1fr; border: none; padding: 0 1;
        background: $background; scrollbar-size-vertical: 1; }
    ChangesScreen > Footer { padding: 0 1; }
    ChangesScreen FooterKey { margin: 0 1 0 0; }
    """

    def __init__(self, changes: Changes) -> None:
        super().__init__()
        self._changes = changes
        self._shown: Shown = "turns"
        self._opened: list[Chosen] = []
        self._head = Static(classes="head", markup=False)
        self._list = OptionList(markup=False)

    def compose(self) -> ComposeResult:
        """Yield how much it is, and the list."""
        yield self._head
        yield self._list
        yield KeyLine()

    def on_mount(self) -> None:
        """Show the turns."""
        self.action_show("turns")
        self._list.focus()

    def renew(self, changes: Changes) -> None:
        """Show what has changed by now. The person stays at the same file, if it is still there."""
        place = self._list.highlighted
        before = None if place is None else self._opened[place]
        self._changes = changes
        self.action_show(self._shown)
        if before is not None and self._opened:
            same = [at for at, chosen in enumerate(self._opened) if _is_same(chosen, before)]
            self._list.highlighted = same[0] if same else min(place or 0, len(self._opened) - 1)

    def action_show(self, shown: Shown) -> None:
        """Show the files below other headings."""
        self._shown = shown
        ways = [(f" {words} ", "reverse" if way == shown else "dim") for way, words in TITLES.items()]
        summary = self._changes.together.summary
        self._head.update(
            Content.assemble(("Changes  ", "bold"), summary, ("   enter: line by line", "dim"), "\n", *ways)
        )
        self._list.clear_options()
        self._opened = []
        options = []
        for prompt, chosen in self._lines(shown):
            options.append(Option(prompt))
            self._opened.append(chosen)
        self._list.add_options(options)
        self._list.highlighted = 0 if options else None

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)

    @on(OptionList.OptionSelected)
    def open_selected(self, event: OptionList.OptionSelected) -> None:
        """Show the lines of what was chosen."""
        self.dismiss(self._opened[event.option_index])

    def _lines(self, shown: Shown) -> Iterator[tuple[Content, Chosen]]:
        groups = {"turns": self._changes.turns[::-1], "members": self._changes.members}
        for group in groups.get(shown, (self._changes.together,)):
            yield _heading(group), Chosen(group.parts)
            for file in group.files[:MOST_FILES]:
                yield _file(file), Chosen(file.parts, file.path)
            if (left := len(group.files) - MOST_FILES) > 0:
                yield Content.styled(f"    … {left:,} more files", "dim"), Chosen(group.parts)


def _is_same(chosen: Chosen, before: Chosen) -> bool:
    """Return whether it is the same line, perhaps with more changes than before."""
    first, same = (keys[0].partition("-")[0] if (keys := one.keys) else "" for one in (chosen, before))
    return chosen.path == before.path and first == same


def _heading(group: ChangeGroup) -> Content:
    notes = f"  {one_line(' '.join(group.notes), 200)}" if group.notes else ""
    return Content.assemble((one_line(group.title, 80), "bold"), (f"  {group.summary}", ""), (notes, "$text-warning"))


def _file(file: ChangedFile) -> Content:
    return Content.assemble("    ", (one_line(file.title, 200), "$text-accent"), (f"  {file.about}", "dim"))
