"""FileHistory: what turns and people changed, stored with a conversation; taken back and brought back."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from bullpen.conversation.forked_files import ForkedFiles, forked_files
from bullpen.conversation.program_changes import KEPT, PUT_BACK, with_programs
from bullpen.conversation.undo_rules import (
    inverse,
    left_by_undo,
    programs_to_undo,
    states_before,
    surely_of_the_turn,
    to_redo,
    to_rewind_to,
    to_undo,
    versions_of,
    who_changed,
)
from bullpen.errors import FilesDiffer, FilesNotKept, NothingToUndo, UnknownTurn, WorkerAway, WorkerRefused
from bullpen.file_changes import ChangeRecord, FileChange, FileState, FolderChanges
from bullpen.files.folders import Files, Folders
from bullpen.files.own_paths import is_candidates
from bullpen.files.workspace import FolderSnapshots
from bullpen.files.worktrees import Worktrees
from bullpen.files.worktrees_here import WorktreesHere
from bullpen.routing.progress import FilesLeft
from bullpen.store.base import Decision, Owner, Store
from bullpen.store.sqlite import SqliteStore
from bullpen.text.numbers import counted

FOUND_LATER = "bullpen stopped during this turn, so what others have changed since then is among these changes."
STOPPED = "bullpen stopped during this turn."
"""Where nobody else works."""
CHECKED_LATER = "bullpen stopped during this check, so what others have changed since then is among these changes."
COMPLETED_LATER = "bullpen stopped while it put these files back, and has completed that."
MERGED_LATER = "bullpen stopped while it brought these files into the shared folder, and has completed that."

PERHAPS_A_PERSONS = (
    "What is left of turn {0} was perhaps changed by a person while it ran, so it stays. To undo an earlier turn, give "
    "its number."
)

FileChoice = Literal["undo", "undo all", "redo", "rewind", "take"]
"""To undo takes back what is the turn's; to undo all, also what a person may have changed meanwhile."""
CheckFolder = Callable[[Files], None]
"""Raises an error if the files of a folder cannot be put back now."""


class FileHistory:
    """The changes of one conversation that this process owns. Everything here blocks."""

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        owner: Owner,
        snapshots: Folders,
        worktrees: Worktrees,
        forked: ForkedFiles,
    ) -> None:
        self.snapshots = snapshots
        self.worktrees = worktrees
        self.forked = forked
        self._store = store
        self._id = conversation_id
        self._owner = owner

    @classmethod
    def here(cls, store: Store, conversation_id: str, owner: Owner, snapshots: FolderSnapshots) -> "FileHistory":
        """Return one of files on this machine."""
        worktrees, forked = WorktreesHere(snapshots, conversation_id), forked_files(snapshots.home, conversation_id)
        return cls(store, conversation_id, owner, snapshots, worktrees, forked)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the files are on workers; else all of them are on this machine."""
        return self.worktrees.are_elsewhere

    def last_id(self, folder: str) -> str:
        """Return the id of all files of a folder as they were last seen; empty: never."""
        last = self._store.last_changes(self._id, folder)
        return "" if last is None else last.changes.after

    def of_turn(self, turn_id: str) -> list[ChangeRecord]:
        """Return the records about a turn, without patches."""
        return self._store.changes(self._id, turn_ids=[turn_id], patches=False)

    def add(self, record: ChangeRecord, decision: Decision | None = None) -> ChangeRecord:
        """Store a record, and return it with its number."""
        messages = self._store.message_count(self._id)
        record = replace(record, after_message=messages)
        return self._store.add_changes(self._id, record, decision=decision, owner=self._owner)

    def finish(self, begun: ChangeRecord, changes: FolderChanges) -> ChangeRecord:
        """Store what came of a begun record."""
        done = replace(begun, state="done", changes=changes)
        return self._store.finish_changes(self._id, begun.number, done, owner=self._owner)

    # What a person decides

    def complete_and_put(self, choice: FileChoice, turn_id: str | None, person: str, *, at: int) -> list[ChangeRecord]:
        """Complete what was begun, and do what somebody wants who has just opened the conversation; return both."""
        return [*self.complete(), self.put(choice, turn_id, person, at=at)]

    def put(
        self, choice: FileChoice, turn_id: str | None, person: str, *, at: int, check: CheckFolder = lambda _: None
    ) -> ChangeRecord:
        """Put files back to what they were before a turn, bring them back, or put them as they were after one.

        "take" does that only for files that collided with those of other turns. Without a turn,
        it is the last one that can be taken back, or that was.
        """
        records = self._ours()
        if choice == "rewind":
            return self._rewound(to_rewind_to(records, turn_id or ""), person, at, check)
        if choice == "take":
            return self._taken(*versions_of(records, turn_id or ""), turn_id or "", person, at, check)
        record = to_redo(records, turn_id) if choice == "redo" else to_undo(records, turn_id)
        try:
            if choice == "undo" and any(file.is_perhaps_a_persons for file in record.changes.files):
                return self._taken_back_in_part(record, person, at, check)
            return self._taken_back("redo" if choice == "redo" else "undo", record, person, at, check)
        except FilesDiffer as error:
            raise FilesDiffer(error.folder, error.paths, who_changed(records, record, error.paths)) from error

    def left_by_undo(self, turn_id: str | None) -> tuple[str, FilesLeft] | None:
        """Return the turn that an undo takes back, and what of it a person perhaps changed and the undo leaves."""
        return left_by_undo(self._ours(), turn_id)

    def _ours(self, *turn_ids: str) -> list[ChangeRecord]:
        """Return the records about turns, or all. Those of the conversation that was forked are not ours to change."""
        return [
            self.forked.here(record)
            for record in self._store.changes(self._id, turn_ids=turn_ids or None, patches=False)
            if not self.worktrees.is_of_another(Path(record.changes.folder))
        ]

    def _rewound(self, goal: ChangeRecord, person: str, at: int, check: CheckFolder) -> ChangeRecord:
        workspace = self._workspace(goal, check)
        # What is overwritten is kept with this, so that the rewind can be undone.
        changes = workspace.compare(_look(workspace), goal.changes.after)
        if not changes.files:
            why = f" {changes.note}" if changes.note else ""
            raise NothingToUndo(f"The files are as they were after turn {goal.turn_id}.{why}")
        wanted = ChangeRecord(
            kind="rewind",
            turn_id=goal.turn_id,
            member=goal.member,
            person=person,
            at=at,
            state="begun",
            changes=changes,
        )
        return self._put(workspace, wanted)

    def _taken(
        self,
        folder: str,
        versions: Mapping[bytes, FileState | None],
        turn_id: str,
        person: str,
        at: int,
        check: CheckFolder,
    ) -> ChangeRecord:
        workspace = self._at(folder)
        check(workspace)
        # What is overwritten is kept with this, so that it can be undone.
        now = _look(workspace)
        changes = workspace.compare(now, workspace.tree_with(now, versions))
        if not changes.files:
            raise NothingToUndo(f"The files that collided are as turn {turn_id} made them. {changes.note}".strip())
        member = self._store.turn(self._id, turn_id).member
        wanted = ChangeRecord(
            kind="take", turn_id=turn_id, member=member, person=person, at=at, state="begun", changes=changes
        )
        return self._put(workspace, wanted)

    def _taken_back(
        self, kind: Literal["undo", "redo"], record: ChangeRecord, person: str, at: int, check: CheckFolder
    ) -> ChangeRecord:
        workspace = self._workspace(record, check)
        before = record.changes
        patch = workspace.compare(before.after, before.before)
        changes = replace(
            before,
            files=inverse(before.files),
            patch=patch.patch,
            patch_is_cut=patch.patch_is_cut,
            note="",
            programs=(),
        )
        wanted = ChangeRecord(
            kind=kind,
            turn_id=record.turn_id,
            member=record.member,
            person=person,
            check=record.check,
            at=at,
            undoes=record.number,
            about=record.about if kind == "redo" else record.kind,
            state="begun",
            changes=replace(changes, before=_look(workspace), after=""),
        )
        return self._put(workspace, wanted)

    def _taken_back_in_part(self, record: ChangeRecord, person: str, at: int, check: CheckFolder) -> ChangeRecord:
        """Take back what is surely a turn's. What a person may have changed meanwhile can be taken back later."""
        workspace = self._workspace(record, check)
        own = surely_of_the_turn(record.changes.files)
        if not workspace.differs(own, "old"):
            raise NothingToUndo(PERHAPS_A_PERSONS.format(record.turn_id))
        paths = {path for file in own for path in (file.path, file.renamed_from) if path}
        left = [file for file in record.changes.files if file not in own]
        perhaps = counted(sum(file.is_perhaps_a_persons for file in left), "file")
        moved = ", ".join(file.path for file in left if not file.is_perhaps_a_persons)
        also = f", and so did {moved}, with what was there before" if moved else ""
        note = f"{perhaps} perhaps changed by a person stayed{also}."
        return self._put_states(record, states_before(record, paths), workspace, person, at, note=note)

    def put_programs(
        self, turn_id: str, paths: Collection[str], person: str, *, at: int, check: CheckFolder = lambda _: None
    ) -> list[ChangeRecord]:
        """Put only these files back to what they were before a turn, wherever it changed them."""
        done: list[ChangeRecord] = []
        for record, states in programs_to_undo(self._ours(turn_id), turn_id, paths):
            workspace = self._workspace(record, check)
            done.append(self._put_states(record, states, workspace, person, at, programs=tuple(paths)))
        return done

    def _put_states(
        self,
        record: ChangeRecord,
        states: Mapping[bytes, FileState | None],
        workspace: Files,
        person: str,
        at: int,
        programs: tuple[str, ...] = (),
        note: str = "",
    ) -> ChangeRecord:
        """Put only some files of a record back: it does not count as taken back."""
        after = record.changes.after
        changes = workspace.compare(after, workspace.tree_with(after, states))
        if not changes.files:
            raise NothingToUndo(f"These files cannot be put back. {changes.note}".strip())
        changes = replace(changes, note=f"{changes.note} {note}".strip())
        wanted = ChangeRecord(
            kind="undo",
            turn_id=record.turn_id,
            member=record.member,
            person=person,
            check=record.check,
            at=at,
            about=record.kind,
            state="begun",
            changes=replace(changes, before=_look(workspace), after="", programs=programs),
        )
        return self._put(workspace, wanted)

    def unasked(self, turn_ids: Sequence[str]) -> list[ChangeRecord]:
        """Return which of these turns changed files that make programs run, and nobody has decided about that.

        Those of another conversation, which were copied, are not asked about again.
        """
        found = [
            record
            for record in self._store.changes(self._id, turn_ids=turn_ids, patches=False)
            if record.changes.programs and record.state == "done" and record.kind in ("turn", "check")
            if self._is_ours(record.turn_id)
        ]
        decided = {
            turn_id
            for decision in (self._store.decisions(self._id) if found else ())
            if decision.choice in (KEPT, PUT_BACK)
            for turn_id in decision.turns
        }
        return [record for record in found if record.turn_id not in decided]

    def _is_ours(self, turn_id: str) -> bool:
        try:
            return bool(self._store.turn(self._id, turn_id))
        except UnknownTurn:
            return False

    def _put(self, workspace: Files, wanted: ChangeRecord) -> ChangeRecord:
        """Store what is about to be done, do it, and store that it is done: after a crash it can be completed."""
        if changed := _in_neither_state(workspace, wanted.changes.files):
            raise FilesDiffer(workspace.root, changed)
        turns = (wanted.turn_id,) if wanted.turn_id else ()
        decision = Decision(at=wanted.at, person=wanted.person, choice=wanted.kind, turns=turns)
        begun = self._applied(workspace, self.add(wanted, decision))
        return self.finish(begun, replace(begun.changes, after=_look(workspace)))

    def _applied(self, workspace: Files, begun: ChangeRecord) -> ChangeRecord:
        try:
            workspace.apply(begun.changes.files, back=False)
        except FilesDiffer as error:
            nothing = replace(begun.changes, files=(), patch="", note=str(error))
            self.finish(replace(begun, brings=""), nothing)
            raise
        return begun

    # What an agent did in its own workspace

    def merge(self, workspace: Files, wanted: ChangeRecord) -> ChangeRecord:
        """Store what is about to be brought into a shared folder, do it, and store that it is done."""
        if changed := _in_neither_state(workspace, wanted.changes.files):
            raise FilesDiffer(workspace.root, changed)
        begun = self._applied(workspace, self.add(wanted))
        return self.finish(begun, _merged(workspace, begun.changes))

    # What a crash left

    def begun(self) -> list[ChangeRecord]:
        """Return what was begun and is not done."""
        return self._store.begun_changes(self._id)

    def has_begun(self, folder: str) -> bool:
        """Whether something was begun in a folder and is not done."""
        return any(record.changes.folder == folder for record in self.begun())

    def complete(self, at_work: Collection[int] = ()) -> list[ChangeRecord]:
        """Complete what was begun when the process before this one was killed, but for those who still work.

        What is on a worker that is away, or does not let us, stays begun.
        """
        completed: list[ChangeRecord] = []
        for begun in self.begun():
            if begun.number not in at_work:
                with suppress(WorkerAway, WorkerRefused):
                    completed.append(self._completed(begun))
        return completed

    def _completed(self, begun: ChangeRecord) -> ChangeRecord:
        workspace = self.snapshots.workspace(Path(begun.changes.folder))
        if begun.kind in ("turn", "check"):
            changes = workspace.compare(begun.changes.before, _look(workspace))
            changes = with_programs(workspace, begun.changes, changes)
            return self.finish(begun, _with_note(changes, *self._why_later(begun, changes)))
        changed = _in_neither_state(workspace, begun.changes.files)
        files = tuple(file for file in begun.changes.files if file.path not in changed)
        workspace.apply(files, back=False)
        left = f"Somebody has changed these since, so they stay as they are: {', '.join(changed)}." if changed else ""
        changes = replace(begun.changes, files=files, after=_look(workspace))
        if begun.kind == "merge" and changed:
            # It is merged again, with what somebody has changed since.
            return self.finish(replace(begun, brings=""), _with_note(changes, MERGED_LATER))
        if begun.kind == "merge":
            return self.finish(begun, _with_note(_merged(workspace, begun.changes), MERGED_LATER))
        return self.finish(begun, _with_note(changes, COMPLETED_LATER, left))

    def _why_later(self, begun: ChangeRecord, changes: FolderChanges) -> tuple[str, ...]:
        """Return what is to be known about changes that were found only when a conversation was opened again."""
        if begun.kind == "check":
            return (CHECKED_LATER,)
        if is_candidates(changes.folder):
            return (STOPPED,)
        if not self.worktrees.is_of(Path(changes.folder), begun.member):
            return (FOUND_LATER,)
        is_due = self._store.turn(self._id, begun.turn_id).state == "done"
        return (STOPPED, "" if is_due else stays_note(begun.member, changes))

    def _workspace(self, record: ChangeRecord, check: CheckFolder) -> Files:
        workspace = self._at(record.changes.folder)
        check(workspace)
        return workspace

    def _at(self, folder: str) -> Files:
        """Return the files whose paths begin at a folder, as it was when they were recorded."""
        workspace = self.snapshots.workspace(Path(folder))
        if not self.is_elsewhere and str(workspace.root) != folder:
            # The same path there is another file.
            raise FilesNotKept(folder, f"it is not a repository of its own any more, but part of {workspace.root}")
        return workspace


def stays_note(member: str, changes: FolderChanges) -> str:
    """Return where the work is of a turn without a reply, in an agent's own workspace; nothing if there is none."""
    return f"Without a reply, this stayed in {member}'s worktree: /merge {member} brings it." if changes.files else ""


def files_home(store: Store) -> Path | None:
    """Return the folder in which what was in other folders is kept, beside the database; None if that is not a file."""
    return home_beside(store.path) if isinstance(store, SqliteStore) else None


def home_beside(database: Path) -> Path:
    """Return that folder for a database file."""
    return database.with_name(f"{database.name}-files")


def _look(workspace: Files) -> str:
    """Return the id of all files now; raises WorkerAway."""
    now = workspace.snapshot()
    if now.is_away:
        raise WorkerAway(now.note)
    return now.id


def _in_neither_state(workspace: Files, files: Sequence[FileChange]) -> list[str]:
    """Return the files that somebody else has changed: they are neither as before nor as wanted."""
    already = frozenset(workspace.differs(files, "new"))
    return [path for path in workspace.differs(files, "old") if path in already]


def _merged(workspace: Files, begun: FolderChanges) -> FolderChanges:
    """Return what a merge changed, with its patch; without one if somebody else changed files meanwhile."""
    after = _look(workspace)
    seen = workspace.compare(begun.before, after)
    names = {name for file in seen.files for name in (file.path, file.renamed_from) if name}
    return seen if names == {file.path for file in begun.files} else replace(begun, after=after)


def _with_note(changes: FolderChanges, *notes: str) -> FolderChanges:
    return replace(changes, note=" ".join(filter(None, [changes.note, *notes])))
