"""What is kept of a root, only read: two of its snapshots compared, even if the root itself is gone."""

from functools import lru_cache
from pathlib import Path

from bullpen.errors import FilesNotKept
from bullpen.file_changes import FolderChanges
from bullpen.files.beside import beside_note
from bullpen.files.compare import checked_tree, compare_folders
from bullpen.files.git import GitFailed, find_git
from bullpen.files.patch import write_patch
from bullpen.files.place import Place, find_place
from bullpen.files.repository import Repository


@lru_cache(maxsize=8)
def compare_kept(home: Path, folder: str, before: str, after: str) -> FolderChanges:
    """Return what differs between two snapshots of a root; raises FilesNotKept. Nothing is written, nor looked at.

    Snapshots never change, so what was found once is remembered.
    """
    program = find_git()
    if program is None:
        raise FilesNotKept(folder, "git is not installed")
    root = Path(folder)
    place = find_place(root)
    repository = Repository(home, place if place.root == root else Place(root), program)
    if not repository.folder.is_dir():
        raise FilesNotKept(folder, "nothing of it is kept any more")
    try:
        compared = compare_folders(repository, checked_tree(before), checked_tree(after))
        patch = write_patch(repository, before, after, compared)
    except (GitFailed, OSError) as error:
        raise FilesNotKept(folder, str(error)) from error
    return FolderChanges(
        folder=folder,
        before=before,
        after=after,
        files=patch.files,
        patch=patch.text,
        patch_is_cut=patch.is_cut,
        note=beside_note(compared.beside),
    )
