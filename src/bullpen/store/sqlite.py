"""SqliteStore: all conversations of one user in one file. The default; needs nothing installed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import TYPE_CHECKING, Any, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.context.history import Envelope
from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import UnknownMessage
from bullpen.file_changes import ChangeRecord
from bullpen.memory import MemberMemory
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store import (
    approval_rows,
    change_rows,
    check_rows,
    claiming,
    conversation_rows,
    decision_rows,
    fsck,
    memory_rows,
    message_rows,
    search,
    stuck,
    turn_rows,
)
from bullpen.store.base import (
    NO_CHANGE,
    Decision,
    Finding,
    Found,
    IsAlive,
    Owner,
    PoolOrder,
    StateChange,
    StoredConversation,
    StoredMessage,
    Turn,
    TurnEnd,
    TurnRecord,
)
from bullpen.store.conversation_rows import Place, place_for, place_of, token_of
from bullpen.store.database import Database
from bullpen.store.owner_locks import OwnerLocks
from bullpen.store.search import query_from

if TYPE_CHECKING:
    from bullpen.store.transfer import Copied

SYNCED_BEATS = 100
"""The number of beats of which one waits for the disk."""


class SqliteStore:
    """A Store in one SQLite file, which is created if it is missing. Store documents the methods."""

    def __init__(self, path: Path | str) -> None:
        self._database = Database(Path(path))
        self._locks = OwnerLocks(self._database.path)
        self._beats = 0
        self._prompts = turn_rows.KnownPrompts()
        self._intact: dict[int, bytes] = {}
        """The last hash of each conversation whose end we have written or checked ourselves."""

    @property
    def path(self) -> Path:
        """The absolute path of the file."""
        return self._database.path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Owners that have not released their conversations lose their locks."""
        self._database.close()
        self._locks.close()

    def create(
        self,
        conversation_id: str,
        *,
        team: str,
        team_file: str,
        team_path: str = "",
        started_at: int,
        team_task: str | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Begin a conversation."""
        with self._database.writing() as db:
            conversation_rows.create(db, conversation_id, team, team_file, team_path, started_at, team_task, extra)

    def conversations(self) -> list[StoredConversation]:
        """Return all conversations, the one with the latest activity first."""
        with self._database.reading() as db:
            return conversation_rows.listed(db)

    def unsettled(self, *, owned: bool = False) -> list[str]:
        """Return the ids of conversations that may hold up agents of others."""
        with self._database.reading() as db:
            return conversation_rows.unsettled(db, owned=owned)

    def reading_together(self) -> AbstractContextManager[None]:
        """Let this thread read several things: nobody is far away here, so there is nothing to do."""
        return nullcontext()

    def conversation(self, conversation_id: str) -> StoredConversation:
        """Return one conversation."""
        with self._database.reading() as db:
            return conversation_rows.find(db, conversation_id)

    def delete(self, conversation_id: str, *, at: int, owner: Owner | None = None) -> None:
        """Remove a conversation permanently."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            search.remove(db, place.number)
            conversation_rows.delete(db, place.number, at)
        self._database.empty_log()
        if owner is not None:
            self._locks.remove(owner.token)

    def discard(self, conversation_id: str, *, owner: Owner | None = None) -> None:
        """Remove a conversation, if nothing has happened in it yet."""
        with self._database.writing_without_sync() as db:
            place = place_for(db, conversation_id, owner)
            if place.messages or turn_rows.all_of(db, place.number, None):
                return
            conversation_rows.discard(db, place.number)
        if owner is not None:
            self._locks.remove(owner.token)

    def append(
        self,
        conversation_id: str,
        message: ConversationMessage,
        *,
        turns: Iterable[WaitingTurn] = (),
        drops: Iterable[str] = (),
        finishes: TurnEnd | None = None,
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> StoredMessage:
        """Store a message with all its effects, or nothing."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            self._check_end(db, place)
            sequence = place.messages + 1
            number, link = message_rows.add(db, place.number, place.head, sequence, message)
            if number is None:
                return message_rows.stored_before(db, place.number, message)
            search.add(db, newest=number)
            if finishes is not None:
                turn_rows.finish(db, place.number, finishes, reply=sequence)
            turn_rows.drop(db, place.number, drops, message.timestamp)
            turn_rows.queue(db, place.number, turns, message.timestamp)
            conversation_rows.apply(db, place.number, change, message.timestamp, end=(sequence, link))
        self._intact[place.number] = link
        return StoredMessage(sequence=sequence, message=message, hash=link)

    def extend(
        self, conversation_id: str, messages: Sequence[ConversationMessage], *, owner: Owner | None = None
    ) -> None:
        """Store messages that ask for nothing, all or none."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            self._check_end(db, place)
            sequence, head = place.messages, place.head
            for message in messages:
                number, link = message_rows.add(db, place.number, head, sequence + 1, message)
                if number is None:
                    message_rows.stored_before(db, place.number, message)
                    continue
                search.add(db, newest=number)
                sequence, head = sequence + 1, link
            latest = max((message.timestamp for message in messages), default=0)
            conversation_rows.apply(db, place.number, NO_CHANGE, latest, end=(sequence, head))
        self._intact[place.number] = head

    def update(
        self,
        conversation_id: str,
        *,
        at: int,
        turns: Iterable[WaitingTurn] = (),
        drops: Iterable[str] = (),
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> None:
        """Queue turns, drop turns and change the state, all or nothing."""
        with self._database.writing() as db:
            number = place_for(db, conversation_id, owner).number
            turn_rows.drop(db, number, drops, at)
            turn_rows.queue(db, number, turns, at)
            conversation_rows.apply(db, number, change, at)

    def label(
        self,
        conversation_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        archived_at: int | UnsetType | None = UNSET,
    ) -> None:
        """Change how a conversation is listed."""
        with self._database.writing() as db:
            number = place_of(db, conversation_id).number
            # With time 0, the time of the last activity stays as it is.
            conversation_rows.apply(db, number, StateChange(title=title, archived_at=archived_at), 0)

    def messages(
        self, conversation_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return the messages between two sequence numbers, oldest first."""
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")
        with self._database.reading() as db:
            place = place_of(db, conversation_id)
            end = message_rows.NO_END if before is None else before
            count = place.messages if limit is None else limit
            if after is None:
                newest = message_rows.last_of(db, place.number, end, count)
                if before is None:
                    self._check_end(db, place, newest)
                return newest
            if before is None:
                self._check_end(db, place)
            return message_rows.first_of(db, place.number, after, end, count)

    def message(self, conversation_id: str, message_id: str) -> StoredMessage:
        """Return one message."""
        with self._database.reading() as db:
            stored = message_rows.find(db, place_of(db, conversation_id).number, message_id)
        if stored is None:
            raise UnknownMessage(message_id)
        return stored

    def envelopes(self, conversation_id: str, *, after: int, before: int) -> list[Envelope]:
        """Return who said the messages between two sequence numbers, and to whom."""
        with self._database.reading() as db:
            return message_rows.envelopes(db, place_of(db, conversation_id).number, after, before)

    def speakers(self, conversation_id: str) -> list[Speaker]:
        """Return everyone who has spoken."""
        with self._database.reading() as db:
            return message_rows.speakers_of(db, place_of(db, conversation_id).number)

    def message_count(self, conversation_id: str) -> int:
        """Return how many messages there are."""
        with self._database.reading() as db:
            return place_of(db, conversation_id).messages

    def highest_number(self, conversation_id: str) -> int:
        """Return the highest N of all message ids msg-N, or 0."""
        with self._database.reading() as db:
            return message_rows.highest_number(db, place_of(db, conversation_id).number)

    def highest_turn(self, conversation_id: str) -> int:
        """Return the highest of all turn ids that are numbers, or 0."""
        with self._database.reading() as db:
            return turn_rows.highest_number(db, place_of(db, conversation_id).number)

    def start_turn(
        self,
        conversation_id: str,
        turn_id: str,
        *,
        owner: Owner,
        given: AssemblerOutput,
        at: int,
        change: StateChange = NO_CHANGE,
        order: PoolOrder | None = None,
    ) -> Turn:
        """Start a queued turn and store its prompt. There are no workers that share a file."""
        if order is not None:
            raise ValueError("Workers cannot share a file.")
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            turn = turn_rows.find(db, place.number, turn_id)
            key = place.number, turn.member
            known = turn_rows.start(db, place.number, turn_id, owner.token, given, at, self._prompts.get(key))
            conversation_rows.apply(db, place.number, change, at)
            started = turn_rows.find(db, place.number, turn_id)
        self._prompts.remember(key, known)
        return started

    def give_again(self, conversation_id: str, turn_id: str, *, owner: Owner, given: AssemblerOutput) -> None:
        """Replace the prompt of a running turn."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            known = turn_rows.give_again(db, place.number, turn_id, given)
            member = turn_rows.find(db, place.number, turn_id).member
        self._prompts.remember((place.number, member), known)

    def end_turn(
        self, conversation_id: str, end: TurnEnd, *, change: StateChange = NO_CHANGE, owner: Owner | None = None
    ) -> Turn:
        """End a running turn that has no reply."""
        with self._database.writing() as db:
            number = place_for(db, conversation_id, owner).number
            turn_rows.end(db, number, end)
            conversation_rows.apply(db, number, change, end.at)
            return turn_rows.find(db, number, end.turn_id)

    def keep_output(self, conversation_id: str, turn_id: str, data: bytes, *, owner: Owner | None = None) -> None:
        """Add to what a running turn has written."""
        with self._database.writing_without_sync() as db:
            turn_rows.keep_output(db, place_for(db, conversation_id, owner).number, turn_id, data)

    def requeue(
        self,
        conversation_id: str,
        turn_id: str,
        turn: WaitingTurn,
        *,
        at: int,
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> Turn:
        """Put a new turn first in the queue that retries another."""
        with self._database.writing() as db:
            number = place_for(db, conversation_id, owner).number
            turn_rows.requeue(db, number, turn_id, turn, at)
            conversation_rows.apply(db, number, change, at)
            return turn_rows.find(db, number, turn.id)

    def reorder(
        self,
        conversation_id: str,
        turn_ids: Sequence[str],
        *,
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> None:
        """Put queued turns first in the queue, in this order."""
        with self._database.writing() as db:
            number = place_for(db, conversation_id, owner).number
            turn_rows.reorder(db, number, turn_ids)
            # With time 0, the time of the last activity stays as it is.
            conversation_rows.apply(db, number, change, 0)

    def memory(self, conversation_id: str, member: str, *, up_to: int | None = None) -> MemberMemory | None:
        """Return the session that a member's last turn left, or its last one up to a message."""
        last = message_rows.NO_END if up_to is None else up_to
        with self._database.reading() as db:
            return memory_rows.last_of(db, place_of(db, conversation_id).number, member, last)

    def memories(self, conversation_id: str, *, turn_ids: Sequence[str] | None = None) -> list[MemberMemory]:
        """Return the session that every turn left, oldest first."""
        with self._database.reading() as db:
            number = place_of(db, conversation_id).number
            return memory_rows.all_of(db, number) if turn_ids is None else memory_rows.of_turns(db, number, turn_ids)

    def add_changes(
        self,
        conversation_id: str,
        record: ChangeRecord,
        *,
        decision: Decision | None = None,
        owner: Owner | None = None,
    ) -> ChangeRecord:
        """Store what changed in a folder, or is about to."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            stored = change_rows.add(db, place.number, place.messages, record)
            if decision is not None:
                conversation_rows.apply(db, place.number, StateChange(decision=decision), decision.at)
            return stored

    def finish_changes(
        self, conversation_id: str, number: int, record: ChangeRecord, *, owner: Owner | None = None
    ) -> ChangeRecord:
        """Put a record that is done in the place of one that was begun."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            return change_rows.finish(db, place.number, place.messages, number, record)

    def copy_changes(
        self, conversation_id: str, records: Sequence[ChangeRecord], *, owner: Owner | None = None
    ) -> None:
        """Store what changed in another conversation, all or none."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            for record in records:
                change_rows.add(db, place.number, place.messages, record, is_copy=True)

    def changes(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
        patches: bool = True,
    ) -> list[ChangeRecord]:
        """Return what changed, oldest first."""
        start, end = first or 0, message_rows.NO_END if last is None else last
        with self._database.reading() as db:
            number = place_of(db, conversation_id).number
            if turn_ids is None:
                return change_rows.between(db, number, start, end, patches=patches)
            return change_rows.of_turns(db, number, turn_ids, start, end, patches=patches)

    def change(self, conversation_id: str, number: int) -> ChangeRecord | None:
        """Return the record with a number."""
        with self._database.reading() as db:
            return change_rows.find(db, place_of(db, conversation_id).number, number)

    def last_changes(self, conversation_id: str, folder: str) -> ChangeRecord | None:
        """Return the record of a folder that was done last."""
        with self._database.reading() as db:
            return change_rows.last_of(db, place_of(db, conversation_id).number, folder)

    def begun_changes(self, conversation_id: str) -> list[ChangeRecord]:
        """Return the records that were begun and are not done."""
        with self._database.reading() as db:
            return change_rows.begun(db, place_of(db, conversation_id).number)

    def add_check(self, conversation_id: str, result: CheckResult, *, owner: Owner | None = None) -> CheckResult:
        """Store a run of a check."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            return check_rows.add(db, place.number, place.messages, result)

    def finish_check(self, conversation_id: str, result: CheckResult, *, owner: Owner | None = None) -> CheckResult:
        """Put a run that has ended in the place of the running one."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            return check_rows.finish(db, place.number, place.messages, result)

    def copy_checks(self, conversation_id: str, results: Sequence[CheckResult], *, owner: Owner | None = None) -> None:
        """Store what checks said in another conversation, all or none."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            for result in results:
                check_rows.add(db, place.number, place.messages, result, is_copy=True)

    def checks(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> list[CheckResult]:
        """Return what checks said, oldest first."""
        start, end = first or 0, message_rows.NO_END if last is None else last
        with self._database.reading() as db:
            number = place_of(db, conversation_id).number
            if turn_ids is None:
                return check_rows.between(db, number, start, end)
            return check_rows.of_turns(db, number, turn_ids, start, end)

    def running_checks(self, conversation_id: str) -> list[CheckResult]:
        """Return the runs of checks that have not ended."""
        with self._database.reading() as db:
            return check_rows.running(db, place_of(db, conversation_id).number)

    def note_approval(
        self, conversation_id: str, record: ApprovalRecord, *, owner: Owner | None = None
    ) -> ApprovalRecord:
        """Store a question of a turn's agent, or the answer to it."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            return approval_rows.add(db, place.number, place.messages, record)

    def copy_approvals(
        self, conversation_id: str, records: Sequence[ApprovalRecord], *, owner: Owner | None = None
    ) -> None:
        """Store what was asked and answered in another conversation, all or none."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            for record in records:
                approval_rows.copy(db, place.number, place.messages, record)

    def approvals(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> list[ApprovalRecord]:
        """Return questions and answers, oldest first."""
        start, end = first or 0, message_rows.NO_END if last is None else last
        with self._database.reading() as db:
            number = place_of(db, conversation_id).number
            if turn_ids is None:
                return approval_rows.between(db, number, start, end)
            return approval_rows.of_turns(db, number, turn_ids, start, end)

    def open_approvals(self, conversation_id: str) -> list[ApprovalRecord]:
        """Return the questions of running turns that have no answer."""
        with self._database.reading() as db:
            return approval_rows.open_in(db, place_of(db, conversation_id).number)

    def decisions(self, conversation_id: str) -> list[Decision]:
        """Return what people decided, oldest first."""
        with self._database.reading() as db:
            return decision_rows.all_of(db, place_of(db, conversation_id).number)

    def turns(self, conversation_id: str, *, message_id: str | None = None) -> list[Turn]:
        """Return all turns, or those that one message asked for, oldest first."""
        with self._database.reading() as db:
            return turn_rows.all_of(db, place_of(db, conversation_id).number, message_id)

    def turns_asked_by(self, conversation_id: str, *, first: int, last: int) -> list[Turn]:
        """Return the turns that some messages asked for."""
        with self._database.reading() as db:
            return turn_rows.asked_by(db, place_of(db, conversation_id).number, first, last)

    def unanswered(self, conversation_id: str, *, first: int, last: int) -> list[Turn]:
        """Return the turns that ended without a reply after one of these messages."""
        with self._database.reading() as db:
            return turn_rows.unanswered(db, place_of(db, conversation_id).number, first, last)

    def queued(self, conversation_id: str) -> list[Turn]:
        """Return the waiting turns."""
        with self._database.reading() as db:
            return turn_rows.open_in(db, place_of(db, conversation_id).number, "queued")

    def running(self, conversation_id: str) -> list[Turn]:
        """Return the turns that were started and have not ended."""
        with self._database.reading() as db:
            return turn_rows.open_in(db, place_of(db, conversation_id).number, "running")

    def turn(self, conversation_id: str, turn_id: str) -> Turn:
        """Return one turn."""
        with self._database.reading() as db:
            return turn_rows.find(db, place_of(db, conversation_id).number, turn_id)

    def record(self, conversation_id: str, turn_id: str, *, prompt: bool = True) -> TurnRecord | None:
        """Return the prompt, unless nobody wants it, and the output of a turn."""
        with self._database.reading() as db:
            return turn_rows.record(db, place_of(db, conversation_id).number, turn_id, prompt=prompt)

    def short_record(self, conversation_id: str, turn_id: str, *, most: int) -> TurnRecord | None:
        """Return the output of a turn that has ended if it is short, without its prompt."""
        with self._database.reading() as db:
            return turn_rows.short_record(db, place_of(db, conversation_id).number, turn_id, most)

    def claim(self, conversation_id: str, owner: Owner, *, is_alive: IsAlive) -> bool:
        """Become the owner, unless another owner is alive."""
        return claiming.claim(
            self._locks,
            owner,
            is_alive=is_alive,
            present=lambda: self._owner_of(conversation_id),
            become=lambda before: self._become_owner(conversation_id, owner, before),
        )

    def _owner_of(self, conversation_id: str) -> Owner | None:
        with self._database.reading() as db:
            return place_of(db, conversation_id).owner

    def _become_owner(self, conversation_id: str, owner: Owner, before: Owner | None) -> bool:
        with self._database.writing_without_sync() as db:
            place = place_of(db, conversation_id)
            # Also if it was seen since: then it is alive.
            is_ours = place.owner == before
            if is_ours:
                conversation_rows.set_owner(db, place.number, owner)
        return is_ours

    def is_locked(self, owner: Owner) -> bool | None:
        """Return whether an owner's process still holds its lock; None if there is no such lock."""
        return self._locks.is_held(owner.token)

    def beat(self, conversation_id: str, owner: Owner, *, at: int) -> None:
        """Record that the owner is alive."""
        self._beats += 1
        # Now and then on disk, too, for only such writes empty the log.
        synced = self._beats % SYNCED_BEATS == 0
        with self._database.writing() if synced else self._database.writing_without_sync() as db:
            place = place_for(db, conversation_id, owner)
            conversation_rows.set_owner(db, place.number, replace(owner, seen_at=at))

    def release(self, conversation_id: str, owner: Owner) -> None:
        """Stop being the owner."""
        # First, so that others may own it even if this cannot be written.
        self._locks.let_go(owner.token)
        with self._database.writing_without_sync() as db:
            place = place_of(db, conversation_id)
            if token_of(place.owner) == owner.token:
                conversation_rows.set_owner(db, place.number, None)
        self._locks.remove(owner.token)

    def adopt(self, conversation_id: str, turn_ids: Sequence[str], *, owner: Owner) -> None:
        """Make running turns the owner's that another one began."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            turn_rows.adopt(db, place.number, turn_ids, owner.token)

    def recover(self, conversation_id: str, *, at: int, owner: Owner | None = None) -> list[Turn]:
        """Mark running turns that the owner did not start as interrupted, and return them."""
        with self._database.writing() as db:
            place = place_for(db, conversation_id, owner)
            return turn_rows.interrupt(db, place.number, token_of(owner), at)

    def search(self, query: str, *, conversation_id: str | None = None, limit: int = 20) -> list[Found]:
        """Return the newest messages that hold every word of the query."""
        with self._database.reading() as db:
            number = None if conversation_id is None else place_of(db, conversation_id).number
            asked = query_from(query)
            return [] if asked is None else list(islice(search.found(db, asked, number), limit))

    def fsck(self, conversation_id: str | None = None) -> list[Finding]:
        """Return what is wrong with one conversation, or with all and the file they are in."""
        findings = self._findings(conversation_id)
        if damage := [finding for finding in findings if finding.kind != "stuck"]:
            self._database.stop_writing(damage[0].text)
        return findings

    def repair(self, conversation_id: str, *, owner: Owner | None = None) -> list[Finding]:
        """Mend a conversation that is stuck, and return what was wrong."""
        findings = [finding for finding in self.fsck(conversation_id) if finding.kind == "stuck"]
        if findings:
            with self._database.writing() as db:
                number = place_for(db, conversation_id, owner).number
                before = conversation_rows.find(db, conversation_id).progress
                progress = stuck.mended(stuck.known(db, number), before)
                # With time 0, the time of the last activity stays as it is.
                conversation_rows.apply(db, number, StateChange(progress=progress), 0)
        return findings

    def _findings(self, conversation_id: str | None) -> list[Finding]:
        with self._database.reading() as db:
            findings = list(fsck.check_conversations(db, conversation_id))
            if conversation_id is not None:
                return findings
            findings += fsck.check_file(db)
        with self._database.reading() as db:
            return [*findings, *fsck.check_index(db)]

    @contextmanager
    def copying_out(self, conversation_id: str) -> Iterator["Copied"]:
        """Let the block read one state of a conversation."""
        # Seldom needed, and commands start faster without.
        from bullpen.store import sqlite_transfer

        with self._database.reading() as db:
            yield sqlite_transfer.copied(db, conversation_id)

    def copy_in(self, copied: "Copied") -> None:
        """Add a conversation that nobody owns."""
        from bullpen.store import sqlite_transfer

        with self._database.writing() as db:
            sqlite_transfer.add(db, copied)

    def _check_end(self, db: Connection, place: Place, newest: Sequence[StoredMessage] = ()) -> None:
        """Check the last message before anything is added: once, and whenever it has been read anyway."""
        if newest or self._intact.get(place.number) != place.head:
            message_rows.check_end(db, place.number, place.messages, place.head, newest)
            self._intact[place.number] = place.head
