"""Worktree and Worktrees: agents' own workspaces, here or on the machine where their folders are."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from bullpen.files.folders import Files
from bullpen.files.own_workspace import OwnState


class Worktree(Protocol):
    """The worktree of one agent in one conversation. Everything here blocks."""

    @property
    def path(self) -> Path:
        """What it is known by: where it is, after the name of its machine if that is another one."""

    @property
    def member(self) -> str:
        """Whose it is."""

    @property
    def shared(self) -> Path:
        """The root of the folder that it is a copy of, named in the same way."""

    @property
    def state(self) -> OwnState:
        """What is known of it."""

    def note(self, **changed: object) -> None:
        """Write what is known of it from now on."""

    def locked(self) -> AbstractContextManager[None]:
        """Let nobody else change it: what a cancelled turn began may not have ended yet."""

    @property
    def exists(self) -> bool:
        """Whether there is a worktree, and an agent may have worked in it."""

    @property
    def workspace(self) -> Files:
        """Its files."""

    @property
    def shared_workspace(self) -> Files:
        """The folder that the agent has in common with others."""

    def look(self) -> str:
        """Return the id of all its files; if somebody has removed it, as they were when they were last looked at."""

    def has_unmerged_work(self) -> bool:
        """Return whether something in it is not in the shared folder."""

    def still_marked(self, files: Iterable[str]) -> tuple[str, ...]:
        """Return which of these files of the shared folder still have both versions in them."""

    def bring_up_to_date(self, tree: str, cwd: Path) -> str:
        """Bring all files of the shared folder into it, if it holds no work of its own; return the id of its files.

        `tree` is the id of the files of the shared folder; `cwd`, where the agent works.
        """

    def complete(self) -> None:
        """Complete what was begun to bring files into it when bullpen was killed."""

    def remove(self) -> None:
        """Remove it, with everything in it."""


class Worktrees(Protocol):
    """The worktrees of one conversation: one for an agent, and others that it has for one turn only."""

    @property
    def are_elsewhere(self) -> bool:
        """Whether they are on other machines, as the turns of their agents."""

    # Blocking

    def of(self, member: str, shared: Path, turn_id: str = "", *, begins: bool = False) -> Worktree | None:
        """Return the worktree of an agent, or the one for a turn only; made or not.

        `shared` is the agent's place in the shared folder. Where several machines could have it, it is the one on which
        the agent works now if a turn begins, else the one on which it has worked; None if there is none.
        """

    def found(self, member: str, turn_id: str = "") -> Worktree | None:
        """Return a worktree that was made, or is half made; None if there is none."""

    def all(self) -> list[Worktree]:
        """Return all that were made, or are half made, as far as they can be reached."""

    # At once

    def folder(self, member: str, shared: Path, turn_id: str = "") -> Path:
        """Return where an agent works in its worktree: at the same place as in the shared folder."""

    def why_not(self, shared: Path) -> str:
        """Return why there can be no worktree beside a folder, and what to do about it; nothing as far as is known."""

    def is_of(self, folder: Path, member: str) -> bool:
        """Return whether a folder is the worktree of a member, and not one for a turn only."""

    def is_of_another(self, folder: Path) -> bool:
        """Return whether a folder is in a worktree of another conversation."""
