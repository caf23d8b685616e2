"""Folders and Files: what is done with the files of folders, here or on the machine where they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from bullpen.file_changes import FileChange, FileState, FolderChanges
from bullpen.files.merge import Merged
from bullpen.files.snapshot import Snapshot


class Files(Protocol):
    """The files below one root. Everything here blocks."""

    @property
    def root(self) -> Path:
        """What it is known by: its path, after the name of its machine if it is on another one."""

    @property
    def path_there(self) -> str:
        """Its path on its machine."""

    def place_of(self, folder: Path) -> str:
        """Return where a folder of an agent below the root is on that machine, without links."""

    def snapshot(self) -> Snapshot:
        """Keep all files as they are now; never fails, and says in a note what is not known."""

    def program_digests(self, folders: Sequence[str] = ()) -> dict[str, str]:
        """Return what files are now that make programs run, also in these folders below the root; never fails.

        A snapshot may have them or not.
        """

    def compare(self, before: str, after: str) -> FolderChanges:
        """Return what changed between two snapshots, given by their ids; never fails, and says what is not known."""

    def changed(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the files that differ between two snapshots with contents, none of them as renamed, and keep them."""

    def tree_with(self, tree: str, states: Mapping[bytes, FileState | None]) -> str:
        """Return the id of a snapshot in which some files are in other states."""

    def differs(self, files: Sequence[FileChange], side: Literal["old", "new"]) -> tuple[str, ...]:
        """Return the paths of the files that are not now as they were before ("old") or after ("new") a change."""

    def apply(self, changes: Sequence[FileChange], *, back: bool) -> None:
        """Put files into their new states, or back to their old ones; can be called again after a crash."""

    def merge(self, base: str, ours: str, theirs: str) -> Merged:
        """Return what must change in ours so that it has what theirs changed since base."""

    def contents(self, blob: str) -> bytes:
        """Return the contents of a file by its blob."""


class Folders(Protocol):
    """Everything that is kept of folders."""

    def workspace(self, folder: Path) -> Files:
        """Return the files that a folder belongs to: those of its git repository or worktree, else its own."""

    def let_go(self) -> None:
        """Let what is kept be removed again, as when this is not used any more."""
