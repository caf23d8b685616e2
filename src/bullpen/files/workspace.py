"""FolderSnapshots: what is in a folder at a moment, compared with another, put back, and merged."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal
from weakref import finalize

from bullpen.errors import FilesFailed, FilesNotKept
from bullpen.file_changes import FileChange, FileState, FolderChanges
from bullpen.files import apply as applying
from bullpen.files.beside import beside_note
from bullpen.files.compare import checked_tree, compare_folders, compare_trees, is_tree, sizes_in
from bullpen.files.git import GitFailed, find_git
from bullpen.files.holding import hold
from bullpen.files.keep import keep
from bullpen.files.listing import (
    PREFIX,
    Listed,
    Listing,
    TooManyFiles,
    compare_listings,
    list_folder,
    read_listing,
    write_listing,
)
from bullpen.files.merge import Merged, merge_trees
from bullpen.files.patch import write_patch
from bullpen.files.place import Place, find_place
from bullpen.files.program_digests import program_digests
from bullpen.files.repository import Repository
from bullpen.files.snapshot import Snapshot, TooMuch, fill_folder, is_ignored, take_snapshot, tree_with

ONLY_NAMES = "Only names and sizes are known: {}."
NOT_KEPT = ONLY_NAMES.format("contents were not kept")
NO_GIT = "git is not installed"


class FolderSnapshots:
    """Everything that is kept of folders, in one private folder of ours."""

    def __init__(self, home: Path, *, not_looked_at: Iterable[Path] = ()) -> None:
        """Keep what folders are in `home`. Files whose paths begin with one of the others are left alone: our own."""
        self.home = home.absolute()
        self._not_looked_at = tuple(Path(os.path.realpath(path)) for path in not_looked_at)
        self._known: dict[Place, Workspace] = {}
        self._held: finalize[[int], FolderSnapshots] | None = None

    def workspace(self, folder: Path, *, within: Path | None = None) -> "Workspace":
        """Return the workspace that a folder is in: its git repository or worktree, else the folder itself.

        A repository whose root is not within a place does not count.
        """
        self._hold()
        folder = Path(os.path.realpath(folder))
        place = find_place(folder)
        if within is not None and not place.root.is_relative_to(within):
            return self._workspace(Place(folder))
        found = self._workspace(place)
        # Somebody may work in a folder that a repository around it ignores.
        return self._workspace(Place(folder)) if found.ignores(folder) else found

    def _hold(self) -> None:
        """Let nothing that is kept be removed while this is used."""
        if self._held is None and (handle := hold(self.home)) is not None:
            self._held = finalize(self, os.close, handle)

    def let_go(self) -> None:
        """Let what is kept be removed again, as when this is not used any more."""
        if self._held is not None:
            self._held()
            self._held = None

    def _workspace(self, place: Place) -> "Workspace":
        if place not in self._known:
            self._known[place] = Workspace(self.home, place, self._not_looked_at)
        return self._known[place]


class Workspace:
    """The files below one root."""

    def __init__(self, home: Path, place: Place, not_looked_at: Iterable[Path] = ()) -> None:
        self.root = place.root
        self._place = place
        self._ignored: dict[Path, bool] = {}
        self._repository = Repository(home, place, find_git() or "git", not_looked_at)

    @property
    def path_there(self) -> str:
        """Its path on its machine, which is this one."""
        return str(self.root)

    def place_of(self, folder: Path) -> str:
        """Return where a folder of an agent below the root is, without links."""
        return str(folder.resolve())

    def ignores(self, folder: Path) -> bool:
        """Return whether nothing in a folder below the root would be seen; asked once."""
        if folder == self.root or find_git() is None:
            return False
        if folder not in self._ignored:
            try:
                self._ignored[folder] = is_ignored(self._repository, folder)
            except OSError:
                return False
        return self._ignored[folder]

    def snapshot(self) -> Snapshot:
        """Keep all files as they are now; never fails, and says in a note what is not known."""
        try:
            if find_git() is None:
                return self._listed(NO_GIT)
            return take_snapshot(self._repository)
        except (GitFailed, TooMuch) as error:
            return self._listed(str(error))
        except OSError as error:
            return self._listed(error.strerror or str(error))

    def program_digests(self, folders: Sequence[str] = ()) -> dict[str, str]:
        """Return what files are now that make programs run, also in these folders below the root; never fails."""
        return program_digests(self._place, folders, self._repository.not_looked_at)

    def _listed(self, reason: str) -> Snapshot:
        try:
            self._repository.make_private()
            name = write_listing(self._repository.own, list_folder(self.root, self._repository.not_looked_at))
            return Snapshot(id=name, note=ONLY_NAMES.format(reason))
        except TooManyFiles:
            return Snapshot(id="", note=f"What is in {self.root} is not known: it has too many files.")
        except OSError as error:
            return Snapshot(id="", note=f"What is in {self.root} is not known: {error.strerror or error}.")

    def compare(self, before: str, after: str) -> FolderChanges:
        """Return what changed between two snapshots, given by their ids; never fails, and says what is not known."""
        folder = os.fsencode(self.root).decode(errors="replace")
        nothing = FolderChanges(folder=folder, before=before, after=after)
        if before == after and before:
            return nothing
        try:
            if is_tree(before) and is_tree(after):
                return self._compared(folder, before, after)
            files = compare_listings(self._listing(before), self._listing(after))
            return FolderChanges(folder=folder, before=before, after=after, files=files, note=NOT_KEPT)
        except (GitFailed, OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return FolderChanges(
                folder=folder, before=before, after=after, note=f"What changed in {folder} is not known: {reason}."
            )

    def _compared(self, folder: str, before: str, after: str) -> FolderChanges:
        compared = compare_folders(self._repository, before, after)
        note = beside_note(compared.beside)
        try:
            keep(self._repository, before, after)
        except (GitFailed, OSError) as error:
            note = f"{note} Not all contents could be kept, so it may not be possible to undo this: {error}.".strip()
        try:
            patch = write_patch(self._repository, before, after, compared)
        except (GitFailed, OSError) as error:
            note = f"{note} The lines that changed are not known: {error}.".strip()
            return FolderChanges(
                folder=folder, before=before, after=after, files=compared.files, patch_is_cut=True, note=note
            )
        return FolderChanges(
            folder=folder,
            before=before,
            after=after,
            files=patch.files,
            patch=patch.text,
            patch_is_cut=patch.is_cut,
            note=note,
        )

    def changed(self, before: str, after: str) -> tuple[FileChange, ...]:
        """Return the files that differ between two snapshots with contents, none of them as renamed, and keep them.

        Raises FilesNotKept.
        """
        try:
            files = compare_trees(self._repository, checked_tree(before), checked_tree(after), renames=False)
            if files:
                keep(self._repository, before, after)
        except (GitFailed, OSError) as error:
            raise FilesNotKept(self.root, str(error)) from error
        return files

    def tree_with(self, tree: str, states: Mapping[bytes, FileState | None]) -> str:
        """Return the id of a snapshot in which some files are in other states; raises FilesNotKept."""
        try:
            return tree_with(self._repository, checked_tree(tree), states)
        except (GitFailed, OSError) as error:
            raise FilesNotKept(self.root, str(error)) from error

    def _listing(self, name: str) -> Listing:
        if name.startswith(PREFIX):
            return read_listing(self._repository.own, name)
        return {path: Listed(mode, size) for path, mode, size in sizes_in(self._repository, checked_tree(name))}

    def differs(self, files: Sequence[FileChange], side: Literal["old", "new"]) -> tuple[str, ...]:
        """Return the paths of the files that are not now as they were before ("old") or after ("new") a change.

        Raises FilesNotKept if their states were not recorded, FilesFailed if files cannot be read.
        """
        try:
            return applying.differing(self._repository, files, new=side == "new")
        except OSError as error:
            raise FilesFailed(self.root, error.strerror or str(error)) from error

    def apply(self, changes: Sequence[FileChange], *, back: bool) -> None:
        """Put files into their new states, or back to their old ones; can be called again after a crash.

        Raises FilesDiffer, with nothing changed, if a file is in neither state; FilesNotKept, with nothing changed, if
        contents are missing; FilesFailed if the disk fails in the middle.
        """
        applying.apply(self._repository, changes, back=back)

    def contents(self, blob: str) -> bytes:
        """Return the contents of a file by its blob; raises FilesNotKept."""
        try:
            return self._repository.git().run("cat-file", "blob", checked_tree(blob))
        except (GitFailed, OSError) as error:
            raise FilesNotKept(self.root, str(error)) from error

    def fill(self, tree: str) -> None:
        """Write all files of a snapshot into a folder in which nothing is yet; raises FilesFailed."""
        try:
            fill_folder(self._repository, checked_tree(tree))
        except (GitFailed, OSError) as error:
            raise FilesFailed(self.root, str(error)) from error

    def merge(self, base: str, ours: str, theirs: str) -> Merged:
        """Return what must change in ours so that it has what theirs changed since base; raises FilesNotKept.

        The three may be snapshots of several worktrees of one repository.
        """
        try:
            return merge_trees(self._repository, *map(checked_tree, (base, ours, theirs)))
        except (GitFailed, OSError) as error:
            raise FilesNotKept(self.root, str(error)) from error

    def remove(self) -> None:
        """Forget everything that is kept of this root; its files stay."""
        self._repository.remove()
