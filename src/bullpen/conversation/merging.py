"""What an agent did in its own workspace, brought into the shared folder: all of it, or the conflicts. Blocks."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from bullpen.conversation.conflicts import Settling, files_for, question
from bullpen.conversation.file_history import FileHistory
from bullpen.errors import FilesDiffer, NoOwnWorkspace
from bullpen.file_changes import ChangeRecord, FileChange, FolderChanges
from bullpen.files.compare import is_tree
from bullpen.files.folders import Files
from bullpen.files.merge import Conflict
from bullpen.files.worktrees import Worktree

TRIES = 5
"""How often it is tried while somebody changes the same files."""


class Brought(Struct, frozen=True, kw_only=True):
    """What came of it."""

    record: ChangeRecord | None = None
    """What changed in the shared folder; None if nothing had to."""
    conflicts: tuple[Conflict, ...] = ()
    """If nobody has decided about them yet, nothing was touched."""
    question: str = ""
    """What the resolver is to be asked."""
    is_nothing: bool = False
    """Whether there was nothing to bring: it is in the shared folder, or was taken back."""


def bring(
    history: FileHistory,
    own: Worktree,
    *,
    turn_id: str,
    at: int,
    how: Settling | None = None,
    resolver: str = "",
    check: Callable[[Files], None] = lambda _: None,
) -> Brought:
    """Merge an agent's work into the shared folder; with conflicts, only if a person has decided about them.

    To "resolve" them, `resolver` is to be asked a question afterwards, which is noted for the case of a crash.
    Raises FilesDiffer if somebody changes the files all the time, or another FilesError.
    """
    for left in reversed(range(TRIES)):
        try:
            with own.locked():
                return _bring(history, own, turn_id, at, how, resolver, check)
        except FilesDiffer:
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


def _bring(
    history: FileHistory,
    own: Worktree,
    turn_id: str,
    at: int,
    how: Settling | None,
    resolver: str,
    check: Callable[[Files], None],
) -> Brought:
    shared, theirs, base = own.shared_workspace, own.look(), own.state.base
    check(shared)
    if own.exists:
        check(own.workspace)
    if theirs == base:
        # What could not be asked when both versions were put into the files is still to be asked.
        ask = own.state.question if how == "resolve" else ""
        own.note(seen=theirs, is_apart=False, question=ask)
        return Brought(question=ask, is_nothing=not ask)
    ours = shared.snapshot()
    if not is_tree(ours.id):
        raise NoOwnWorkspace(own.member, f"what is in {shared.root} is not known, so nothing was merged. {ours.note}")
    merged = shared.merge(base, ours.id, theirs)
    if merged.conflicts and how is None:
        own.note(seen=theirs, question="")
        return Brought(conflicts=merged.conflicts)
    files = (*merged.changes, *files_for(how or "keep", merged.conflicts, own.member))
    ask = question(resolver, turn_id, own.member, merged.conflicts) if how == "resolve" else ""
    own.note(seen=theirs, merging=theirs, turn=turn_id, question=ask)
    if ask:
        marked = tuple(one.path for one in merged.conflicts if one.marked is not None)
        own.note(resolver=resolver, marked=marked)
    record = _applied(history, shared, own, turn_id, at, ours.id, theirs, files) if files else None
    own.note(base=theirs, merging="", is_apart=False)
    return Brought(record=record, conflicts=merged.conflicts, question=ask)


def _applied(
    history: FileHistory,
    shared: Files,
    own: Worktree,
    turn_id: str,
    at: int,
    before: str,
    theirs: str,
    files: Sequence[FileChange],
) -> ChangeRecord:
    changes = FolderChanges(folder=str(shared.root), before=before, files=tuple(files))
    wanted = ChangeRecord(
        kind="merge", turn_id=turn_id, member=own.member, at=at, brings=theirs, state="begun", changes=changes
    )
    return history.merge(shared, wanted)


def complete(own: Worktree, records: Sequence[ChangeRecord]) -> None:
    """Note what of a merge was done when bullpen was killed; all records are completed."""
    with own.locked():
        _complete(own, records)


def _complete(own: Worktree, records: Sequence[ChangeRecord]) -> None:
    own.complete()
    state = own.state
    if not state.merging:
        return
    is_brought = any(
        record.kind == "merge" and (record.turn_id, record.brings) == (state.turn, state.merging) for record in records
    )
    if is_brought:
        own.note(base=state.merging, merging="")
    else:
        own.note(merging="")
