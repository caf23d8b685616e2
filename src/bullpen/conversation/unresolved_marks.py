"""UnresolvedMarks: files that still have conflict marks, as people were told, until the marks are gone."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from bullpen.conversation.events import FEW, Trouble, TroubleOver
from bullpen.conversation.journal import Journal
from bullpen.errors import FilesError
from bullpen.files.worktrees import Worktree


class Marks(Struct, frozen=True, kw_only=True):
    """The files of one conflict that still have marks."""

    own: Worktree
    """The workspace whose work was merged."""
    files: tuple[str, ...]
    resolver: str
    """Who was to resolve it."""

    @property
    def text(self) -> str:
        """What people are told."""
        has = "has" if len(self.files) == 1 else "have"
        return (
            f"{_named(self.files)} still {has} conflict marks, which {self.resolver} was to resolve. "
            f"Remove them, or ask again: [NEXT: {self.resolver}] …"
        )


class UnresolvedMarks:
    """What people were told of."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._told: dict[str, Marks] = {}

    def tell(self, about: str, marks: Marks) -> None:
        """Tell people of marks; `about` names the conflict."""
        self._told[about] = marks
        self._journal.publish(Trouble(text=marks.text, about=about))

    async def look(self) -> None:
        """Look again at the files that people were told of, and say which marks are gone."""
        for about, marks in list(self._told.items()):
            left = marks.files
            with suppress(FilesError):
                left = await asyncio.to_thread(marks.own.still_marked, marks.files)
            if left == marks.files or self._told.get(about) is not marks:
                continue
            if left:
                self.tell(about, replace(marks, files=left))
            else:
                del self._told[about]
                text = f"The conflict marks in {_named(marks.files)} are gone."
                self._journal.publish(TroubleOver(about=about, text=text))


def _named(files: Sequence[str]) -> str:
    return ", ".join(map(repr, files[:FEW])) + (f" and {len(files) - FEW:,} more" if len(files) > FEW else "")
