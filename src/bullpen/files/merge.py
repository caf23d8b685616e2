"""A three-way merge of snapshots, file by file."""

from msgspec import Struct

from bullpen.file_changes import FileChange, FileState


class Conflict(Struct, frozen=True, kw_only=True):
    """A file that both sides have changed in ways that cannot both be kept."""

    path: str
    raw_path: bytes = b""
    """The path itself, if it is not UTF-8."""
    base: FileState | None = None
    ours: FileState | None = None
    theirs: FileState | None = None
    marked: FileState | None = None
    """For texts: both versions in one, with <<<<<<< around what differs."""


class Merged(Struct, frozen=True, kw_only=True):
    """What a merge gives."""

    changes: tuple[FileChange, ...] = ()
    """To be applied to ours."""
    conflicts: tuple[Conflict, ...] = ()
    """What somebody must decide; none of it is in changes."""
