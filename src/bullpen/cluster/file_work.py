"""FileWork and CheckWork: what a worker is asked to do in one of its folders, and what it answers."""

from typing import Literal

from msgspec import Struct

from bullpen.file_changes import FileChange, FileState


class FindRoot(Struct, frozen=True, tag="find"):
    """Which root a folder belongs to: its repository's, else its own. The answer is its path."""


class TakeSnapshot(Struct, frozen=True, tag="snapshot"):
    """Keep all files as they are now. The answer is a Snapshot."""


class DigestPrograms(Struct, frozen=True, tag="programs"):
    """What files are now that make programs run. The answer is a digest of each, by its path."""

    folders: tuple[str, ...] = ()


class Compare(Struct, frozen=True, tag="compare"):
    """What changed between two snapshots. The answer is a FolderChanges."""

    before: str
    after: str


class ListChanged(Struct, frozen=True, tag="changed"):
    """The files that differ between two snapshots. The answer is a tuple of FileChange."""

    before: str
    after: str


class TreeWith(Struct, frozen=True, tag="tree_with"):
    """A snapshot in which some files are in other states. The answer is its id."""

    tree: str
    states: tuple[tuple[bytes, FileState | None], ...]


class Differs(Struct, frozen=True, tag="differs"):
    """The files that are not now as they were before or after changes. The answer is a tuple of paths."""

    files: tuple[FileChange, ...]
    side: Literal["old", "new"]


class Apply(Struct, frozen=True, tag="apply"):
    """Put files into other states. There is no answer."""

    files: tuple[FileChange, ...]
    back: bool


class Merge(Struct, frozen=True, tag="merge"):
    """What ours lacks of what theirs changed since base. The answer is a Merged."""

    base: str
    ours: str
    theirs: str


class ReadContents(Struct, frozen=True, tag="contents"):
    """The contents of a file. The answer is bytes."""

    blob: str


class FindPlaces(Struct, frozen=True, tag="places"):
    """Where checks run that concern a root, by the folders that the team file names. The answer is a tuple of paths.

    A path is empty if the check concerns other files.
    """

    cwds: tuple[str, ...]


Ask = (
    FindPlaces
    | FindRoot
    | TakeSnapshot
    | DigestPrograms
    | Compare
    | ListChanged
    | TreeWith
    | Differs
    | Apply
    | Merge
    | ReadContents
)


class FileWork(Struct, frozen=True, kw_only=True, tag="files"):
    """Something to be done with the files of a folder."""

    folder: str
    """As a member's cwd names it, or an absolute path on the worker, which may be that of a worktree."""
    ask: Ask


class CheckWork(Struct, frozen=True, kw_only=True, tag="check"):
    """A check to be run in a folder. The answer is a CheckRun."""

    folder: str
    command: tuple[str, ...]
    timeout: float


Problem = Literal["refused", "differ", "failed", "not_kept", "no_worktree"]


class FileAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of it."""

    value: bytes = b""
    """Packed, as the kind of what was asked says."""
    problem: Problem | None = None
    reason: str = ""
    paths: tuple[str, ...] = ()
    """Of "differ"."""
