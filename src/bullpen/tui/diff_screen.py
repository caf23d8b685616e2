"""DiffScreen: what was changed in the files, line by line; and comments on lines, said to who wrote them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.file_changes import ChangeRecord
from bullpen.tui.diff_layout import Loaded
from bullpen.tui.diff_view import LEAST_SPLIT, DiffView
from bullpen.tui.key_line import KeyLine
from bullpen.tui.second_press import QUESTION_SECONDS, SecondPress
from bullpen.tui.text import one_line
from bullpen.view.change_lookup import all_changes
from bullpen.view.change_reading import one_change
from bullpen.view.changes import author_of, change_summary, record_words, undone_words, way_back
from bullpen.view.combined_changes import last_number
from bullpen.view.diff import file_diffs
from bullpen.view.line_comments import comment_on

Say = Callable[[str], Awaitable[bool]]
"""Says something in the conversation, or runs a command; returns whether that was possible."""


class DiffScreen(ModalScreen[None]):
    """One record of changes, or several; others are one key away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "Back"),
        Binding("n", "file(1)", "Next file"),
        Binding("p", "file(-1)", "Previous", tooltip="Previous file"),
        Binding("left_square_bracket", "record(-1)", "Earlier", key_display="[", tooltip="What was changed before"),
        Binding("right_square_bracket", "record(1)", "Later", key_display="]", tooltip="What was changed after"),
        Binding("s", "split", "Split", tooltip="Old and new beside each other, where there is room, or not"),
        Binding("c", "comment", "Comment", tooltip="Write about this line to the member who changed it"),
        Binding("u", "undo", "Undo", tooltip="Take back what the turn changed, or bring it back; asks first"),
    ]
    DEFAULT_CSS = """
    DiffScreen { background: $background; }
    DiffScreen > .head { dock: top; height: 2; padding: 0 1; background: $panel; text-wrap: nowrap;
        text-overflow: ellipsis; }
    DiffScreen > Footer { padding: 0 1; }
    DiffScreen FooterKey { margin: 0 1 0 0; }
    """

    def __init__(
        self, records: Sequence[ChangeRecord], conversation: Conversation, say: Say | None = None, *, path: str = ""
    ) -> None:
        super().__init__()
        self._records = records
        self._path = path
        self._conversation = conversation
        self._say = say
        self._view = DiffView()
        self._second_press = SecondPress()
        self._head = Static(classes="head", markup=False)

    def compose(self) -> ComposeResult:
        """Yield where the person is, the diff, and the keys."""
        yield self._head
        yield self._view
        yield KeyLine()

    def on_mount(self) -> None:
        """Read the patches, and show them."""
        self._view.focus()
        self._load(self._records, self._path)

    @on(DiffView.Moved)
    def show_place(self) -> None:
        """Say at the top whose changes these are, and which file."""
        item, layout = self._view.item, self._view.layout_now
        record = layout.record_of(item) if item is not None else self._records[0]
        file = layout.file_of(item) if item is not None else None
        files = (
            f"  file {item.file + 1} of {len(record.changes.files)}" if item is not None and file is not None else ""
        )
        self._head.update(
            Content.assemble(
                (one_line(record_words(record), 300), "bold"),
                "\n",
                (one_line(file.title, 200), "$text-accent") if file is not None else "",
                (f"  {file.about}{files}" if file is not None else change_summary(record.changes), "dim"),
            )
        )

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)

    def action_file(self, by: int) -> None:
        """Go to another file."""
        self._view.next_file(by)

    def action_split(self) -> None:
        """Show old and new beside each other, or not."""
        if not self._view.can_split:
            self.notify(f"Side by side needs {LEAST_SPLIT} columns; there are {self.size.width}.", markup=False)
            return
        self._view.turn_split()

    @work(exclusive=True, group="records")
    async def action_record(self, by: int) -> None:
        """Show what was changed before or after."""
        try:
            known = [record.number for record in await self._conversation.read(all_changes)]
            here = self._records[0].number if by < 0 else last_number(self._records[-1])
            place = (known.index(here) if here in known else len(known)) + by
            if not 0 <= place < len(known):
                self.notify("Nothing was changed before." if by < 0 else "Nothing was changed after.", markup=False)
                return
            records = [await self._conversation.read(one_change, known[place])]
        except BullpenError as error:
            self.notify(one_line(str(error), 500), severity="warning", markup=False)
            return
        self._load(records)

    @work
    async def action_comment(self) -> None:
        """Write about the line that the person is on, to who changed it."""
        item, line = self._view.item, self._view.line
        if item is None or line is None:
            self.notify("Move to a line of a file to write about it.", markup=False)
            return
        if self._say is None:
            self.notify("Nothing can be said here.", markup=False)
            return
        from bullpen.tui.comment_screen import CommentScreen

        record = self._view.layout_now.record_of(item)
        whom = one_line(author_of(record), 40) if record.kind in ("turn", "merge") else "the team"
        text = await self.app.push_screen_wait(
            CommentScreen(f"To {whom}, about {one_line(line.name, 80)}", line.row.text)
        )
        if text and await self._say(comment_on(record, line, text)):
            self.notify(f"Said to {whom}.", markup=False)

    @work(exclusive=True, group="undo")
    async def action_undo(self) -> None:
        """Take back what the turn changed; what was taken back is brought back. The person is asked first."""
        item = self._view.item
        record = self._view.layout_now.record_of(item) if item is not None else self._records[0]
        command, question = _taking_back(record)
        if self._say is None or not command:
            self.notify("This cannot be taken back here.", markup=False)
        elif not self._second_press.confirms(question):
            self.notify(question, severity="warning", timeout=QUESTION_SECONDS, markup=False)
        elif await self._say(command):
            self._show_newest()

    @work(exclusive=True, group="records")
    async def _show_newest(self) -> None:
        """Show what was put back just now."""
        known = await self._conversation.read(all_changes)
        if known:
            self._load([await self._conversation.read(one_change, known[-1].number)])

    @work(exclusive=True, group="loading")
    async def _load(self, records: Sequence[ChangeRecord], path: str = "") -> None:
        loaded = await asyncio.to_thread(lambda: [Loaded(one, file_diffs(one.changes)) for one in records])
        self._records = records
        self._view.show(loaded, path)


def _taking_back(record: ChangeRecord) -> tuple[str, str]:
    """Return the command that takes a change back, and what is asked before; nothing if that is not possible here."""
    turn = record.turn_id
    match way_back(record):
        case "redo":
            return f"/redo {turn}", f"u again brings back {undone_words(record)}."
        case "undo":
            return f"/undo {turn}", f"u again takes back what turn {turn} changed."
        case _ if record.kind == "collision" and record.other_turn:
            return f"/take {record.other_turn}", f"u again takes the version of {one_line(record.other, 40)}."
        case _:
            return "", ""
