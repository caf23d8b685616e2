"""How folders on workers are written: `pool@worker:/path`; without a worker's name, the one that is used of a pool."""

from pathlib import Path

from bullpen.cluster.errands import There

OWN = "#"


def read_folder(folder: Path) -> tuple[There, str]:
    """Return which worker a folder is on, and its path there."""
    there, _, path = str(folder).partition(":")
    pool, _, worker = there.partition("@")
    return There(pool, worker), path


def folder_at(there: There, path: str) -> Path:
    """Return a folder on a worker."""
    return Path(f"{there}:{path}")


def folder_in(pool: str, cwd: str) -> Path:
    """Return the folder of a member, on whichever worker it is."""
    return folder_at(There(pool, ""), cwd)


def own_folder(shared: Path, member: str, turn_id: str) -> Path:
    """Return a place in a worktree, which is known by its place in the shared folder: workers choose where it is."""
    return Path(f"{shared}{OWN}{member}{OWN}{turn_id}")


def shared_cwd(folder: Path) -> str:
    """Return what a member's entry says of its folder, also if it works in a worktree."""
    return read_folder(folder)[1].partition(OWN)[0]
