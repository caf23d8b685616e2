"""Files that make programs run and that a turn has changed: found after it, and decided about by a person."""

import logging
import os.path
from functools import partial

import msgspec
from msgspec.structs import replace

from bullpen.clock import milliseconds
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Decided, ProgramsChanged
from bullpen.conversation.journal import Journal
from bullpen.conversation.state import ConversationState
from bullpen.errors import BullpenError, NothingToDecide
from bullpen.file_changes import MOST_SENT_FILES, ChangeRecord, FileChange, FileState, FolderChanges
from bullpen.files.folders import Files
from bullpen.files.program_digests import looked_at
from bullpen.program_files import ProgramFiles, is_noticed, is_package, is_program_path, scripts_of
from bullpen.routing.progress import ProgramChange, Progress

logger = logging.getLogger(__name__)
OUR_DATABASE = ("/bullpen/conversations.db", "/bullpen/conversations.db-wal", "/bullpen/conversations.db-shm")
"""What bullpen itself writes during every turn, where the project is the user's home."""
MOST_AT_ONCE = 50
"""Turns that can have been running when a process was killed, or had just ended."""
KEPT, PUT_BACK = "allow its files", "dismiss its files"
"""What people decide about them, as it is stored."""


def with_programs(workspace: Files, begun: FolderChanges, changes: FolderChanges) -> FolderChanges:
    """Return what changed with those files named that make programs run. Blocks."""
    # Links on another machine cannot be followed here.
    files = ProgramFiles(workspace.path_there) if str(workspace.root) == workspace.path_there else None
    seen = tuple(dict.fromkeys(path for file in changes.files for path in _program_paths(workspace, files, file)))
    before = dict(begun.digests)
    after = workspace.program_digests(looked_at(before)) if before else {}
    named = {path for file in changes.files for path in (file.path, file.renamed_from)}
    beside = tuple(
        path
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path) and path not in named and not path.endswith(OUR_DATABASE)
    )
    return replace(changes, programs=(*seen, *beside))


def digests_for(workspace: Files, folder: str) -> tuple[tuple[str, str], ...]:
    """Return what such files are now that are in no snapshot, for a turn in a folder of its machine. Blocks."""
    place = os.path.relpath(folder, workspace.path_there)
    return tuple(workspace.program_digests(() if place.startswith("..") else (place,)).items())


def _program_paths(workspace: Files, files: ProgramFiles | None, file: FileChange) -> list[str]:
    paths = [path for path in (file.path, file.renamed_from) if path]
    found = [path for path in paths if _has(files, path)]
    return found or [path for path in paths if is_package(path) and _has_other_scripts(workspace, file)]


def _has(files: ProgramFiles | None, path: str) -> bool:
    return files.has(path) if files is not None else is_noticed(path) and is_program_path(path)


def _has_other_scripts(workspace: Files, file: FileChange) -> bool:
    try:
        before, after = (_scripts(workspace, state) for state in (file.old, file.new))
    except (BullpenError, msgspec.DecodeError, RecursionError) as error:
        logger.info("scripts of a package not known path=%s error=%s", file.path, error)
        return True
    return before != after


def _scripts(workspace: Files, state: FileState | None) -> object:
    return scripts_of({} if state is None else msgspec.json.decode(workspace.contents(state.blob)))


# Entries; pure.


def found(state: ConversationState, record: ChangeRecord, *, at: int) -> Entry:
    """Ask people about files that a turn has changed; no agent begins before they have decided."""
    progress = asking_about(state.progress, record)
    event = ProgramsChanged.of(record.turn_id, progress.programs[record.turn_id])
    return Entry(at=at, change=Change(progress=progress), events=(event,))


def asking_about(progress: Progress, record: ChangeRecord) -> Progress:
    """Return the progress when people are asked about files of a record."""
    asked = _change(record)
    if (known := progress.programs.get(record.turn_id)) is not None:
        # A check has changed more of them.
        files = tuple(dict.fromkeys((*known.files, *asked.files)))[:MOST_SENT_FILES]
        asked = replace(asked, files=files, beside=tuple(dict.fromkeys((*known.beside, *asked.beside))))
    return replace(progress, programs={**progress.programs, record.turn_id: asked})


def _change(record: ChangeRecord) -> ProgramChange:
    kept = {path for file in record.changes.files for path in (file.path, file.renamed_from)}
    programs = record.changes.programs
    return ProgramChange(
        member=record.member,
        files=tuple(path for path in programs if path in kept)[:MOST_SENT_FILES],
        beside=tuple(path for path in programs if path not in kept)[:MOST_SENT_FILES],
    )


def turns_to_look_at(progress: Progress) -> list[str]:
    """Return the turns of which a process that was killed may not have asked; no other turn has begun since then."""
    made, known = progress.turns_made, progress.programs
    return [str(number) for number in range(max(1, made - MOST_AT_ONCE), made + 1) if str(number) not in known]


def settled(state: ConversationState, turn_id: str, choice: str, *, at: int) -> Entry:
    """Return the entry for what a person has decided."""
    check_asked(state, turn_id)
    left = {turn: one for turn, one in state.progress.programs.items() if turn != turn_id}
    change = Change(progress=replace(state.progress, programs=left))
    return Entry(at=at, change=change, events=(Decided(turn_id=turn_id, choice=choice),))


def check_asked(state: ConversationState, turn_id: str) -> None:
    """Raise NothingToDecide if people are not asked about files of a turn."""
    if turn_id not in state.progress.programs:
        raise NothingToDecide(turn_id)


class ProgramQuestions:
    """Asks people about such files as soon as they are known, and before any turn begins."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._unasked: list[ChangeRecord] = []

    def note(self, record: ChangeRecord) -> None:
        """Note what a turn or a check has changed."""
        # Also of a member with full permissions: those who read next have not got them, and would run what it wrote.
        if record.changes.programs:
            self._unasked.append(record)

    async def ask(self) -> None:
        """Ask about all that was noted. The journal's lock is held."""
        while self._unasked:
            record = self._unasked[0]
            await self._journal.commit_built(partial(found, self._journal.state, record, at=milliseconds()))
            self._unasked.pop(0)
