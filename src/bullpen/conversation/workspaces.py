"""Workspaces: where the members of a team may edit files. Two of them in one workspace could collide."""

from collections.abc import Callable, Iterable
from pathlib import Path

from bullpen.files.place import find_place
from bullpen.team.team import Member

MAY_EDIT = frozenset({"edit", "ask", "full"})


def workspaces(
    members: Iterable[Member], root: Path, place: Callable[[Path], Path] = lambda folder: folder
) -> dict[str, str]:
    """Return for each agent that may edit files the folder that it shares with others: its repository, else its own.

    Those with a workspace of their own share none. `root` is the folder of the team file; `place` says where a
    folder is in a fork with files.
    """
    return {
        member.name: f"{member.pool}:{member.cwd}" if member.pool else workspace_of(place(root / member.cwd))
        for member in members
        if member.type == "ai" and member.permissions in MAY_EDIT and member.workspace == "shared"
    }


def workspace_of(folder: Path) -> str:
    """Return the root of the git repository or worktree that a folder is in; without one, the folder."""
    return find_place(folder).root.as_posix()
