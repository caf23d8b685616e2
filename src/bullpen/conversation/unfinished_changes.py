"""UnfinishedChanges: what was begun with files and is not done: completed on opening, or when its worker is back."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from bullpen.conversation.events import FilesChanged, Trouble
from bullpen.conversation.file_history import FileChoice, FileHistory
from bullpen.conversation.journal import Journal
from bullpen.conversation.program_changes import ProgramQuestions
from bullpen.conversation.watched_folder import WatchedFolder
from bullpen.errors import WorkerAway
from bullpen.file_changes import ChangeRecord

Put = Callable[..., ChangeRecord]


class UnfinishedChanges:
    """The begun changes of a conversation, in the folders that its turns use."""

    def __init__(
        self,
        journal: Journal,
        history: FileHistory | None,
        folders: Mapping[Path, WatchedFolder],
        programs: ProgramQuestions,
    ) -> None:
        self._journal = journal
        self._history = history
        self._folders = folders
        self._programs = programs
        self.are_left = False
        """Whether some stay begun because their worker is away."""
        # Waiting for another machine must not keep others from the store.
        is_elsewhere = history is not None and history.is_elsewhere
        self.do = asyncio.to_thread if is_elsewhere else journal.state.in_store
        """Does what blocks with files and the store."""

    async def complete(self) -> list[ChangeRecord]:
        """Complete what was begun and does not continue, as far as that is possible now."""
        if self._history is None:
            return []
        at_work = {record.number for folder in self._folders.values() for record in folder.at_work.values()}
        completed = await self.do(self._history.complete, at_work)
        for record in completed:
            self._done(record)
        if self._history.is_elsewhere:
            begun = await self._journal.state.in_store(self._history.begun)
            self.are_left = any(record.number not in at_work for record in begun)
        return completed

    async def complete_left(self) -> None:
        """Complete what could not be completed before."""
        if self.are_left:
            await self.complete()

    async def put(self, put: Put, choice: FileChoice, turn_id: str | None, person: str, *, at: int) -> ChangeRecord:
        """Put files back, or bring them back. What is interrupted by the death of a worker is completed later."""
        try:
            record = await self.do(put, choice, turn_id, person, at=at)
        except WorkerAway:
            self.are_left = True
            raise
        self._done(record)
        return record

    async def put_programs(self, put: Callable[..., list[ChangeRecord]], *given: object, at: int) -> None:
        """Put some files of a turn back, in the same way."""
        try:
            records = await self.do(put, *given, at=at)
        except WorkerAway:
            self.are_left = True
            raise
        for record in records:
            self._done(record)

    def tell(self, begun: ChangeRecord, why: str) -> None:
        """Tell people that it is not known yet what a turn has changed."""
        self.are_left = True
        later = "That is looked at when the worker is back."
        self._journal.publish(Trouble(text=f"What turn {begun.turn_id} changed is not known yet. {why} {later}"))

    def _done(self, record: ChangeRecord) -> None:
        for folder in self._folders.values():
            if folder.path == record.changes.folder:
                # So that it is not taken for what people did.
                folder.known = record.changes.after
        if record.kind in ("turn", "check"):
            self._programs.note(record)
        self._journal.publish(FilesChanged.of(record))
