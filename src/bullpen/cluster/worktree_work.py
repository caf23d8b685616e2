"""WorktreeWork: what a worker is asked to do with the worktrees of agents there. It alone knows where they are."""

from typing import Any

from msgspec import Struct

from bullpen.files.own_workspace import OwnState


class FindWorktree(Struct, frozen=True, tag="find"):
    """What is known of it. The answer is a FoundWorktree."""


class BringUpToDate(Struct, frozen=True, tag="bring"):
    """Make it, or bring the files of the shared folder into it. The answer is the id of its files."""

    tree: str


class MakeFork(Struct, frozen=True, tag="fork"):
    """Make it with files that a conversation is forked with: its folder is there from then on. The answer is their id.

    What is kept for the other conversation is then kept for this one, too.
    """

    tree: str
    original: str
    """The conversation that is forked."""


class NoteState(Struct, frozen=True, tag="note"):
    """Write what is known of it from now on. There is no answer."""

    changed: dict[str, Any]


class LookAtWorktree(Struct, frozen=True, tag="look"):
    """Which files are in it. The answer is their id."""


class CompleteWorktree(Struct, frozen=True, tag="complete"):
    """Complete what was begun to bring files into it. There is no answer."""


class FindMarked(Struct, frozen=True, tag="marked"):
    """Which files of the shared folder still have both versions in them. The answer is a tuple of paths."""

    files: tuple[str, ...]


class RemoveWorktree(Struct, frozen=True, tag="remove"):
    """Remove it. There is no answer."""


class ListWorktrees(Struct, frozen=True, tag="list"):
    """All that the conversation has there. The answer is a tuple of FoundWorktree."""


WorktreeAsk = (
    FindWorktree
    | BringUpToDate
    | MakeFork
    | NoteState
    | LookAtWorktree
    | CompleteWorktree
    | FindMarked
    | RemoveWorktree
    | ListWorktrees
)


class WorktreeWork(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="worktree"):
    """Something to be done with a worktree of the conversation that orders it."""

    folder: str = ""
    """The agent's place in the shared folder, as in a FileWork; empty: the one that it was made of."""
    member: str = ""
    turn: str = ""
    """If it is for one turn only, the one that it was made for."""
    ask: WorktreeAsk


class FoundWorktree(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A worktree on a worker."""

    path: str
    shared: str
    """The root of the folder that it is a copy of."""
    state: OwnState
    is_known: bool = False
    """Whether it was made, or is half made."""
    exists: bool = False
    """Whether it is there, and an agent may have worked in it."""
    turn: str = ""
