"""FileChanges: what a turn, a person or an undo changed in a folder."""

from typing import Literal

from msgspec import Struct

FileKind = Literal["added", "changed", "deleted", "renamed", "mode"]
"""What became of a file; "mode": only whether it can be executed, or that it is a symbolic link now."""
ChangeKind = Literal["turn", "people", "undo", "redo", "rewind", "merge", "check"]
"""Who made changes: an agent in its turn, somebody between two turns, bullpen as a person wanted it, or a check."""
MOST_PATCH_BYTES = 1024 * 1024


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

    @property
    def added(self) -> int:
        """How many lines were added in all."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """How many lines were removed in all."""
        return sum(file.removed for file in self.files)


class ChangeRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Changes as they are stored with a conversation."""

    number: int = 0
    """Counts the changes of a conversation; 0: not stored yet."""
    kind: ChangeKind
    turn_id: str = ""
    """The turn that made them; of an undo, a redo, a merge or a check, the turn that it is about; of a rewind, where it
    goes."""
    member: str = ""
    """Whose turn that is."""
    person: str = ""
    """Who wanted an undo, a redo or a rewind."""
    check: str = ""
    """The name of the check that changed files itself."""
    at: int
    after_message: int = 0
    """How many messages there were."""
    undoes: int = 0
    """Of an undo, the number of the record that it takes back; of a redo, of the undo."""
    brings: str = ""
    """Of a merge, the id of all files of the agent's own workspace, if the shared folder has everything in them."""
    state: Literal["begun", "done"] = "done"
    """Files are put back between "begun" and "done"; what is found begun on opening is completed."""
    changes: FolderChanges
