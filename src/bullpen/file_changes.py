"""FileChanges: what a turn, a person or an undo changed in a folder."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

FileKind = Literal["added", "changed", "deleted", "renamed", "mode"]
"""What became of a file; "mode": only whether it can be executed, or that it is a symbolic link now."""
ChangeKind = Literal["turn", "people", "undo", "redo", "rewind", "merge", "check", "collision", "take"]
"""Who made changes: an agent in its turn, somebody between two turns, bullpen as a person wanted it, or a check.

A collision is not a change of its own: its files differ from one turn's version to that of another turn."""
MOST_PATCH_BYTES = 1024 * 1024
MOST_SENT_FILES = 200
"""Files of a record that are sent to everybody who watches; all of them are in the store."""


class FileState(Struct, frozen=True, kw_only=True):
    """What a file was at one moment."""

    blob: str
    """The id of its contents in our repository."""
    mode: str = "100644"
    """As git writes it: 100644, 100755, or 120000 for a symbolic link."""


class FileChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file that was changed."""

    path: str
    """From the folder, with "/" between its parts; bytes that are not UTF-8 are replaced for display."""
    raw_path: bytes = b""
    """The path itself, if it is not UTF-8."""
    kind: FileKind
    old: FileState | None = None
    new: FileState | None = None
    renamed_from: str = ""
    raw_renamed_from: bytes = b""
    added: int = 0
    removed: int = 0
    is_binary: bool = False
    is_perhaps_a_persons: bool = False
    """Whether it changed during a turn when no tool of the agent could have changed it."""


class Totals(Struct, frozen=True, kw_only=True):
    """How much was changed in all."""

    files: int
    added: int
    removed: int


class FolderChanges(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that changed in a folder between two moments."""

    folder: str
    """The absolute path of the repository or folder that the paths begin at."""
    before: str = ""
    """The id of all its files before; empty: not known."""
    after: str = ""
    files: tuple[FileChange, ...] = ()
    patch: str = ""
    """As git writes it, without what is too large."""
    patch_is_cut: bool = False
    note: str = ""
    """What is not known about it, and why, in sentences."""
    programs: tuple[str, ...] = ()
    """Those that make programs run, also such that are in no snapshot. An undo that has any puts only them back."""
    digests: tuple[tuple[str, str], ...] = ()
    """Of a begun turn, what files were that make programs run and are in no snapshot, with their paths."""
    total: Totals | None = None
    """Of all files, if only the first of them are in `files`; never in the store."""

    @property
    def count(self) -> int:
        """How many files there are in all."""
        return len(self.files) if self.total is None else self.total.files

    @property
    def added(self) -> int:
        """How many lines were added in all."""
        return sum(file.added for file in self.files) if self.total is None else self.total.added

    @property
    def removed(self) -> int:
        """How many lines were removed in all."""
        return sum(file.removed for file in self.files) if self.total is None else self.total.removed

    def to_send(self) -> "FolderChanges":
        """Return the same with only the first files, if there are many."""
        if len(self.files) <= MOST_SENT_FILES:
            return self
        total = Totals(files=self.count, added=self.added, removed=self.removed)
        return replace(self, files=self.files[:MOST_SENT_FILES], total=total)


class ChangeRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes as they are stored with a conversation."""

    number: int = 0
    """Counts the changes of a conversation; 0: not stored yet."""
    kind: ChangeKind
    turn_id: str = ""
    """The turn that made them; of an undo, a redo, a merge or a check, the turn that it is about; of a rewind, where it
    goes; of a collision, the later one; of a take, the one whose versions are taken."""
    member: str = ""
    """Whose turn that is."""
    person: str = ""
    """Who wanted an undo, a redo, a rewind or a take."""
    check: str = ""
    """The name of the check that changed files itself."""
    at: int
    after_message: int = 0
    """How many messages there were."""
    other_turn: str = ""
    """Of a collision, the turn whose version was there before; empty: that version was never seen."""
    other: str = ""
    """Whose turn that is."""
    is_sure: bool = True
    """Of a collision, whether both have certainly changed the files."""
    undoes: int = 0
    """Of an undo, the number of the record that it takes back; of a redo, of the undo."""
    about: ChangeKind | None = None
    """Of an undo, the kind of what it takes back; of a redo, of what it brings back. Older ones do not say."""
    brings: str = ""
    """Of a merge, the id of all files of the agent's own workspace, if the shared folder has everything in them."""
    state: Literal["begun", "done"] = "done"
    """Files are put back between "begun" and "done"; what is found begun on opening is completed."""
    changes: FolderChanges
