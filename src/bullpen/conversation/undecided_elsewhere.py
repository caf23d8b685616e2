"""What another conversation in the same folder must decide about files that make programs run, before agents begin."""

import logging
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.clock import milliseconds
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Continued, Paused, ProgramsChanged
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.owner import is_alive, owned, this_process
from bullpen.conversation.program_changes import asking_about, turns_to_look_at
from bullpen.conversation.state import stored_progress
from bullpen.errors import BullpenError
from bullpen.file_changes import ChangeRecord
from bullpen.files.place import find_place
from bullpen.files.workspace import FolderSnapshots
from bullpen.routing.progress import Progress
from bullpen.store.base import StateChange, Store

logger = logging.getLogger(__name__)


class Elsewhere(Struct, frozen=True, kw_only=True):
    """What another conversation waits for."""

    conversation_id: str
    text: str

    def entry(self, progress: Progress, *, at: int) -> Entry:
        """Return the entry that pauses this conversation."""
        change = Change(paused=self.text, progress=replace(progress, asked_elsewhere=self.conversation_id))
        return Entry(at=at, change=change, events=(Paused(kind="elsewhere", text=self.text),))


def decided_elsewhere(progress: Progress, *, at: int) -> Entry:
    """Return the entry that ends that pause."""
    change = Change(paused=None, progress=replace(progress, asked_elsewhere=""))
    return Entry(at=at, change=change, events=(Continued(),))


def undecided_elsewhere(
    store: Store, conversation_id: str, folders: Collection[Path], history: FileHistory | None, *, is_first: bool
) -> Elsewhere | None:
    """Return what people must decide in another conversation before agents begin in these folders. Blocks.

    What a process there had begun when it was killed is completed first, so that it is known what to ask.
    """
    here = frozenset(root for folder in folders for root in _roots(str(folder)))
    for other in store.unsettled(owned=is_first):
        if other == conversation_id:
            continue
        try:
            if history is not None and isinstance(history.snapshots, FolderSnapshots):
                _complete(store, other, here, history.snapshots)
            if found := _asked(store, other, here):
                return found
        except (BullpenError, OSError, msgspec.MsgspecError) as error:
            # It was deleted meanwhile, or opened by somebody, who completes it; or it cannot be read.
            logger.warning("not known what waits conversation=%s error=%s", other, error)
    return None


def _asked(store: Store, conversation_id: str, here: Collection[str]) -> Elsewhere | None:
    programs = stored_progress(store, store.conversation(conversation_id)).programs
    for turn_id, change in programs.items():
        if _are_in(store.changes(conversation_id, turn_ids=[turn_id], patches=False), here):
            text = (
                f"In conversation {conversation_id}, which works in the same folder, "
                f"{ProgramsChanged.of(turn_id, change).text} Decide there, with `bullpen chat --resume "
                f"{conversation_id}`. While this stays open, it continues by itself then; else type /continue."
            )
            return Elsewhere(conversation_id=conversation_id, text=text)
    return None


def _complete(store: Store, other: str, here: Collection[str], snapshots: FolderSnapshots) -> None:
    """Find out what turns changed that were running when their process was killed, and ask about it."""
    stored = store.conversation(other)
    if stored.owner is not None and is_alive(stored.owner, store):
        return
    last = turns_to_look_at(stored_progress(store, stored))
    theirs = partial(FileHistory.here, store, other, snapshots=snapshots)
    if not _are_in([*store.begun_changes(other), *theirs(this_process()).unasked(last)], here):
        return
    with owned(store, other) as owner:
        theirs(owner).complete()
        progress = stored_progress(store, store.conversation(other))
        for record in theirs(owner).unasked(turns_to_look_at(progress)):
            progress = asking_about(progress, record)
        change = StateChange(progress=msgspec.to_builtins(progress))
        store.update(other, at=milliseconds(), change=change, owner=owner)


def _are_in(records: Iterable[ChangeRecord], here: Collection[str]) -> bool:
    """Return whether what changed is in one of these folders, around one, or in the same repository."""
    return any(
        _is_in(there, root) or _is_in(root, there)
        for folder in {record.changes.folder for record in records}
        for there in _roots(folder)
        for root in here
    )


def _roots(folder: str) -> set[str]:
    """Return where a folder is, and where its repository keeps what all of its work trees share."""
    if not Path(folder).is_absolute():
        # On a worker: `pool@worker:/path`, or `pool:/path`, or a worktree there.
        there, _, path = folder.partition(":")
        return {f"{there.partition('@')[0]}:{path.partition('#')[0]}"}
    place = find_place(Path(folder))
    return {str(root) for root in (place.root, place.common_dir) if root is not None}


def _is_in(path: str, root: str) -> bool:
    return f"{path}/".startswith(f"{root.rstrip('/')}/")
