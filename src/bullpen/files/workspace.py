"""FolderSnapshots: what is in a folder at a moment, compared with another, put back, and merged."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from bullpen.file_changes import FileChange, FolderChanges
from bullpen.files.merge import Merged
from bullpen.files.snapshot import Snapshot


class FolderSnapshots:
    """Everything that is kept of folders, in one private folder of ours."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def workspace(self, folder: Path) -> "Workspace":
        """Return the workspace that a folder is in: its git repository or worktree, else the folder itself."""
        raise NotImplementedError


class Workspace:
    """The files below one root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def snapshot(self) -> Snapshot:
        """Keep all files as they are now; never fails, and says in a note what is not known."""
        raise NotImplementedError

    def compare(self, before: str, after: str) -> FolderChanges:
        """Return what changed between two snapshots, given by their ids; never fails, and says what is not known."""
        raise NotImplementedError

    def differs(self, files: Sequence[FileChange], side: Literal["old", "new"]) -> tuple[str, ...]:
        """Return the paths of the files that are not now as they were before ("old") or after ("new") a change."""
        raise NotImplementedError

    def apply(self, changes: Sequence[FileChange], *, back: bool) -> None:
        """Put files into their new states, or back to their old ones; can be called again after a crash.

        Raises FilesDiffer, with nothing changed, if a file is in neither state; FilesNotKept, with nothing changed, if
        contents are missing; FilesFailed if the disk fails in the middle.
        """
        raise NotImplementedError

    def contents(self, blob: str) -> bytes:
        """Return the contents of a file by its blob; raises FilesNotKept."""
        raise NotImplementedError

    def merge(self, base: str, ours: str, theirs: str) -> Merged:
        """Return what must change in ours so that it has what theirs changed since base; raises FilesNotKept.

        The three may be snapshots of several worktrees of one repository.
        """
        raise NotImplementedError

    def remove(self) -> None:
        """Forget everything that is kept of this root; its files stay."""
        raise NotImplementedError
