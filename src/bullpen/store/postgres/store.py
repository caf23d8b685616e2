"""PostgresStore: the conversations of many machines in one PostgreSQL database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import Any, Self

from msgspec import UNSET, UnsetType
from msgspec.structs import replace
from psycopg import Cursor

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.context.history import Envelope
from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import UnknownMessage
from bullpen.file_changes import ChangeRecord
from bullpen.memory import MemberMemory
from bullpen.messages import ConversationMessage, Speaker
from bullpen.routing.queue import WaitingTurn
from bullpen.store import claiming, stuck
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
from bullpen.store.chain import first_link
from bullpen.store.conversation_rows import extra_text, token_of
from bullpen.store.message_rows import NO_END, compare_end, stored_again
from bullpen.store.packing import packed
from bullpen.store.postgres import (
    approval_rows,
    change_rows,
    check_rows,
    conversation_rows,
    decision_rows,
    fsck,
    memory_rows,
    message_rows,
    order_rows,
    record_rows,
    schema,
    search,
    transfer,
    turn_rows,
)
from bullpen.store.postgres.address import read_address
from bullpen.store.postgres.connections import Connections, Row
from bullpen.store.postgres.owner_locks import OwnerLocks
from bullpen.store.postgres.place import Place
from bullpen.store.search import query_from
from bullpen.store.transfer import Copied
from bullpen.store.turn_rows import KnownPrompts


class PostgresStore:
    """A Store in a PostgreSQL database, whose tables are created if they are missing. Store documents the methods."""

    def __init__(self, url: str) -> None:
        self._connections = Connections(read_address(url))
        self._locks = OwnerLocks(self._connections)
        self._prompts = KnownPrompts()
        self._intact: dict[str, bytes] = {}
        """The last hash of each conversation whose end we have written or checked ourselves."""
        try:
            schema.prepare(self._connections)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> str:
        """The address, without the password."""
        return self._connections.address.shown

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections. Owners that have not released their conversations lose their locks."""
        self._locks.close()
        self._connections.close()

    @contextmanager
    def _reading(self, conversation_id: str) -> Iterator[Place]:
        with self._connections.reading() as db:
            # What is read together is of one state, so the conversation stays where it is.
            place = db.kept.get(conversation_id)
            if not isinstance(place, Place):
                place = db.kept[conversation_id] = Place(db, conversation_id)
            yield place
            place.found()

    @contextmanager
    def _writing(self, conversation_id: str, owner: Owner | None, *, synced: bool = True) -> Iterator[Place]:
        """Let its owner change a conversation; what is not synced, a crash of the server may lose."""
        with self._locked(conversation_id, synced=synced) as place:
            place.fence(owner)
            yield place
            place.found()

    @contextmanager
    def _locked(self, conversation_id: str, *, synced: bool = True) -> Iterator[Place]:
        with self._connections.writing(synced=synced) as db:
            place = Place(db, conversation_id, to_write=True)
            yield place
            place.found()

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
        values: dict[str, object] = {
            "team": team,
            "team_file": packed(team_file.encode()),
            "team_path": team_path,
            "started_at": started_at,
            "link": first_link(conversation_id, team, team_file, started_at),
            "team_task": team_task,
            "extra": extra_text(extra),
        }
        with self._connections.writing() as db:
            conversation_rows.create(db, conversation_id, values)

    def conversations(self) -> list[StoredConversation]:
        """Return all conversations, the one with the latest activity first."""
        with self._connections.reading() as db:
            listed = conversation_rows.listed(db)
            if any(one.owner is not None for one in listed):
                self._locks.look_at_all(db)
            return listed

    def unsettled(self, *, owned: bool = False) -> list[str]:
        """Return the ids of conversations that may hold up agents of others."""
        with self._connections.reading() as db:
            return conversation_rows.unsettled(db, owned=owned)

    def reading_together(self) -> AbstractContextManager[None]:
        """Let this thread read several things in one transaction."""
        return self._connections.reading_together()

    def conversation(self, conversation_id: str) -> StoredConversation:
        """Return one conversation."""
        with self._reading(conversation_id) as place:
            return conversation_rows.find(place)

    def delete(self, conversation_id: str, *, at: int, owner: Owner | None = None) -> None:
        """Remove a conversation permanently. Backups and archived logs of the server still have it."""
        with self._writing(conversation_id, owner) as place:
            conversation_rows.delete(place, at)
            order_rows.forget(place)
        self._forget(conversation_id, owner)

    def discard(self, conversation_id: str, *, owner: Owner | None = None) -> None:
        """Remove a conversation, if nothing has happened in it yet."""
        with self._writing(conversation_id, owner, synced=False) as place:
            is_gone = conversation_rows.discard(place)
        if is_gone:
            self._forget(conversation_id, owner)

    def _forget(self, conversation_id: str, owner: Owner | None) -> None:
        self._intact.pop(conversation_id, None)
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
        new, dropped = tuple(turns), tuple(drops)
        with self._writing(conversation_id, owner) as place:
            check = self._checking_end(place)
            added = message_rows.NewMessages(place, [message])
            changing = turn_rows.ChangingTurns.of(place, new, dropped, finishes, message.id)
            check()
            end = place.found()
            sequence = end.messages + 1
            link = added.add(end.head, sequence, message)
            if link is None:
                return stored_again(message_rows.find(place, message.id), message)
            if changing is not None:
                changing.said(message.id, sequence)
                if finishes is not None:
                    changing.finish(finishes, reply=sequence)
                changing.drop(dropped, message.timestamp)
                changing.queue(new, message.timestamp)
            conversation_rows.apply(place, change, message.timestamp, end=(sequence, link))
        self._intact[conversation_id] = link
        return StoredMessage(sequence=sequence, message=message, hash=link)

    def extend(
        self, conversation_id: str, messages: Sequence[ConversationMessage], *, owner: Owner | None = None
    ) -> None:
        """Store messages that ask for nothing, all or none."""
        with self._writing(conversation_id, owner) as place:
            check = self._checking_end(place)
            added = message_rows.NewMessages(place, messages)
            check()
            sequence, head = place.found().messages, place.found().head
            for message in messages:
                link = added.add(head, sequence + 1, message)
                if link is None:
                    stored_again(message_rows.find(place, message.id), message)
                    continue
                sequence, head = sequence + 1, link
            latest = max((message.timestamp for message in messages), default=0)
            conversation_rows.apply(place, NO_CHANGE, latest, end=(sequence, head))
        self._intact[conversation_id] = head

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
        new, dropped = tuple(turns), tuple(drops)
        with self._writing(conversation_id, owner) as place:
            changing = turn_rows.ChangingTurns.of(place, new, dropped)
            if changing is not None:
                changing.drop(dropped, at)
                changing.queue(new, at)
            conversation_rows.apply(place, change, at)

    def label(
        self,
        conversation_id: str,
        *,
        title: str | UnsetType | None = UNSET,
        archived_at: int | UnsetType | None = UNSET,
    ) -> None:
        """Change how a conversation is listed."""
        with self._locked(conversation_id) as place:
            # With time 0, the time of the last activity stays as it is.
            conversation_rows.apply(place, StateChange(title=title, archived_at=archived_at), 0)

    def messages(
        self, conversation_id: str, *, after: int | None = None, before: int | None = None, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return the messages between two sequence numbers, oldest first."""
        if limit is not None and limit < 0:
            raise ValueError(f"limit must not be negative, got {limit}")
        end = NO_END if before is None else before
        with self._reading(conversation_id) as place:
            if after is not None:
                check = self._checking_end(place) if before is None else None
                found = message_rows.first_of(place, after, end, limit)
                if check is not None:
                    check()
                return found
            newest = message_rows.read_last(place, message_rows.ask_last(place, end, limit), limit)
            if before is None and newest:
                compare_end(newest, place.found().messages, place.found().head, b"")
                self._intact[conversation_id] = place.found().head
            elif before is None:
                self._checking_end(place)()
            return newest

    def message(self, conversation_id: str, message_id: str) -> StoredMessage:
        """Return one message."""
        with self._reading(conversation_id) as place:
            stored = message_rows.find(place, message_id)
        if stored is None:
            raise UnknownMessage(message_id)
        return stored

    def envelopes(self, conversation_id: str, *, after: int, before: int) -> list[Envelope]:
        """Return who said the messages between two sequence numbers, and to whom."""
        with self._reading(conversation_id) as place:
            return message_rows.envelopes(place, after, before)

    def speakers(self, conversation_id: str) -> list[Speaker]:
        """Return everyone who has spoken."""
        with self._reading(conversation_id) as place:
            return message_rows.speakers_of(place)

    def message_count(self, conversation_id: str) -> int:
        """Return how many messages there are."""
        with self._reading(conversation_id) as place:
            return place.found().messages

    def highest_number(self, conversation_id: str) -> int:
        """Return the highest N of all message ids msg-N, or 0."""
        with self._reading(conversation_id) as place:
            return message_rows.highest_number(place)

    def highest_turn(self, conversation_id: str) -> int:
        """Return the highest of all turn ids that are numbers, or 0."""
        with self._reading(conversation_id) as place:
            return turn_rows.highest_number(place)

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
        """Start a queued turn and store its prompt, and what workers are to run for it."""
        with self._writing(conversation_id, owner) as place:
            changing = turn_rows.ChangingTurns(place, [turn_id])
            key = place.found().number, changing.member(turn_id)
            known = changing.start(turn_id, owner.token, given, at, self._prompts.get(key))
            conversation_rows.apply(place, change, at)
            if order is not None:
                order_rows.place_order(place, turn_id, order)
            started = turn_rows.ask(place, turn_id)
        self._prompts.remember(key, known)
        return self._answered(conversation_id, turn_id, started)

    def give_again(self, conversation_id: str, turn_id: str, *, owner: Owner, given: AssemblerOutput) -> None:
        """Replace the prompt of a running turn."""
        with self._writing(conversation_id, owner) as place:
            changing = turn_rows.ChangingTurns(place, [turn_id])
            known = changing.give_again(turn_id, given)
            key = place.found().number, changing.member(turn_id)
        self._prompts.remember(key, known)

    def end_turn(
        self, conversation_id: str, end: TurnEnd, *, change: StateChange = NO_CHANGE, owner: Owner | None = None
    ) -> Turn:
        """End a running turn that has no reply."""
        with self._writing(conversation_id, owner) as place:
            turn_rows.ChangingTurns(place, [end.turn_id]).end(end)
            conversation_rows.apply(place, change, end.at)
            ended = turn_rows.ask(place, end.turn_id)
        return self._answered(conversation_id, end.turn_id, ended)

    def keep_output(self, conversation_id: str, turn_id: str, data: bytes, *, owner: Owner | None = None) -> None:
        """Add to what a running turn has written."""
        with self._writing(conversation_id, owner, synced=False) as place:
            turn_rows.ChangingTurns(place, [turn_id]).keep_output(turn_id, data)

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
        with self._writing(conversation_id, owner) as place:
            changing = turn_rows.ChangingTurns(place, [turn_id, turn.id], asked_by=[turn.message_id], orders=True)
            changing.requeue(turn_id, turn, at)
            conversation_rows.apply(place, change, at)
            queued = turn_rows.ask(place, turn.id)
        return self._answered(conversation_id, turn.id, queued)

    def reorder(
        self,
        conversation_id: str,
        turn_ids: Sequence[str],
        *,
        change: StateChange = NO_CHANGE,
        owner: Owner | None = None,
    ) -> None:
        """Put queued turns first in the queue, in this order."""
        with self._writing(conversation_id, owner) as place:
            turn_rows.ChangingTurns(place, turn_ids, orders=True).reorder(turn_ids)
            # With time 0, the time of the last activity stays as it is.
            conversation_rows.apply(place, change, 0)

    def memory(self, conversation_id: str, member: str, *, up_to: int | None = None) -> MemberMemory | None:
        """Return the session that a member's last turn left, or its last one up to a message."""
        with self._reading(conversation_id) as place:
            return memory_rows.last_of(place, member, NO_END if up_to is None else up_to)

    def memories(self, conversation_id: str, *, turn_ids: Sequence[str] | None = None) -> list[MemberMemory]:
        """Return the session that every turn left, oldest first."""
        with self._reading(conversation_id) as place:
            return memory_rows.all_of(place) if turn_ids is None else memory_rows.of_turns(place, turn_ids)

    def add_changes(
        self,
        conversation_id: str,
        record: ChangeRecord,
        *,
        decision: Decision | None = None,
        owner: Owner | None = None,
    ) -> ChangeRecord:
        """Store what changed in a folder, or is about to."""
        with self._writing(conversation_id, owner) as place:
            stored = change_rows.NewChanges(place, [record]).add(record)
            if decision is not None:
                conversation_rows.apply(place, StateChange(decision=decision), decision.at)
        return stored

    def finish_changes(
        self, conversation_id: str, number: int, record: ChangeRecord, *, owner: Owner | None = None
    ) -> ChangeRecord:
        """Put a record that is done in the place of one that was begun."""
        with self._writing(conversation_id, owner) as place:
            return change_rows.NewChanges(place, [record], [number]).finish(number, record)

    def copy_changes(
        self, conversation_id: str, records: Sequence[ChangeRecord], *, owner: Owner | None = None
    ) -> None:
        """Store what changed in another conversation, all or none."""
        with self._writing(conversation_id, owner) as place:
            new = change_rows.NewChanges(place, records, [record.number for record in records])
            for record in records:
                new.add(record, is_copy=True)

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
        start, end = first or 0, NO_END if last is None else last
        with self._reading(conversation_id) as place:
            if turn_ids is None:
                return change_rows.between(place, start, end, patches=patches)
            return change_rows.of_turns(place, turn_ids, start, end, patches=patches)

    def change(self, conversation_id: str, number: int) -> ChangeRecord | None:
        """Return the record with a number."""
        with self._reading(conversation_id) as place:
            return change_rows.find(place, number)

    def last_changes(self, conversation_id: str, folder: str) -> ChangeRecord | None:
        """Return the record of a folder that was done last."""
        with self._reading(conversation_id) as place:
            return change_rows.last_of(place, folder)

    def begun_changes(self, conversation_id: str) -> list[ChangeRecord]:
        """Return the records that were begun and are not done."""
        with self._reading(conversation_id) as place:
            return change_rows.begun(place)

    def add_check(self, conversation_id: str, result: CheckResult, *, owner: Owner | None = None) -> CheckResult:
        """Store a run of a check."""
        with self._writing(conversation_id, owner) as place:
            return check_rows.NewChecks(place, [result]).add(result)

    def finish_check(self, conversation_id: str, result: CheckResult, *, owner: Owner | None = None) -> CheckResult:
        """Put a run that has ended in the place of the running one."""
        with self._writing(conversation_id, owner) as place:
            return check_rows.NewChecks(place, [result]).finish(result)

    def copy_checks(self, conversation_id: str, results: Sequence[CheckResult], *, owner: Owner | None = None) -> None:
        """Store what checks said in another conversation, all or none."""
        with self._writing(conversation_id, owner) as place:
            new = check_rows.NewChecks(place, results)
            for result in results:
                new.add(result, is_copy=True)

    def checks(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> list[CheckResult]:
        """Return what checks said, oldest first."""
        start, end = first or 0, NO_END if last is None else last
        with self._reading(conversation_id) as place:
            if turn_ids is None:
                return check_rows.between(place, start, end)
            return check_rows.of_turns(place, turn_ids, start, end)

    def running_checks(self, conversation_id: str) -> list[CheckResult]:
        """Return the runs of checks that have not ended."""
        with self._reading(conversation_id) as place:
            return check_rows.running(place)

    def note_approval(
        self, conversation_id: str, record: ApprovalRecord, *, owner: Owner | None = None
    ) -> ApprovalRecord:
        """Store a question of a turn's agent, or the answer to it."""
        with self._writing(conversation_id, owner) as place:
            return approval_rows.NewApprovals(place, [record]).add(record)

    def copy_approvals(
        self, conversation_id: str, records: Sequence[ApprovalRecord], *, owner: Owner | None = None
    ) -> None:
        """Store what was asked and answered in another conversation, all or none."""
        with self._writing(conversation_id, owner) as place:
            new = approval_rows.NewApprovals(place, records)
            for record in records:
                new.copy(record)

    def approvals(
        self,
        conversation_id: str,
        *,
        turn_ids: Sequence[str] | None = None,
        first: int | None = None,
        last: int | None = None,
    ) -> list[ApprovalRecord]:
        """Return questions and answers, oldest first."""
        start, end = first or 0, NO_END if last is None else last
        with self._reading(conversation_id) as place:
            if turn_ids is None:
                return approval_rows.between(place, start, end)
            return approval_rows.of_turns(place, turn_ids, start, end)

    def open_approvals(self, conversation_id: str) -> list[ApprovalRecord]:
        """Return the questions of running turns that have no answer."""
        with self._reading(conversation_id) as place:
            return approval_rows.open_in(place)

    def decisions(self, conversation_id: str) -> list[Decision]:
        """Return what people decided, oldest first."""
        with self._reading(conversation_id) as place:
            return decision_rows.all_of(place)

    def turns(self, conversation_id: str, *, message_id: str | None = None) -> list[Turn]:
        """Return all turns, or those that one message asked for, oldest first."""
        with self._reading(conversation_id) as place:
            return turn_rows.all_of(place, message_id)

    def turns_asked_by(self, conversation_id: str, *, first: int, last: int) -> list[Turn]:
        """Return the turns that some messages asked for."""
        with self._reading(conversation_id) as place:
            return turn_rows.asked_by(place, first, last)

    def unanswered(self, conversation_id: str, *, first: int, last: int) -> list[Turn]:
        """Return the turns that ended without a reply after one of these messages."""
        with self._reading(conversation_id) as place:
            return turn_rows.unanswered(place, first, last)

    def queued(self, conversation_id: str) -> list[Turn]:
        """Return the waiting turns."""
        with self._reading(conversation_id) as place:
            return turn_rows.open_in(place, "queued")

    def running(self, conversation_id: str) -> list[Turn]:
        """Return the turns that were started and have not ended."""
        with self._reading(conversation_id) as place:
            return turn_rows.open_in(place, "running")

    def turn(self, conversation_id: str, turn_id: str) -> Turn:
        """Return one turn."""
        with self._reading(conversation_id) as place:
            found = turn_rows.ask(place, turn_id)
            place.found()
            return turn_rows.read(found, turn_id)

    def record(self, conversation_id: str, turn_id: str, *, prompt: bool = True) -> TurnRecord | None:
        """Return the prompt, unless nobody wants it, and the output of a turn."""
        with self._reading(conversation_id) as place:
            return record_rows.record(place, turn_id, prompt=prompt)

    def short_record(self, conversation_id: str, turn_id: str, *, most: int) -> TurnRecord | None:
        """Return the output of a turn that has ended if it is short, without its prompt."""
        with self._reading(conversation_id) as place:
            return record_rows.short_record(place, turn_id, most)

    def claim(self, conversation_id: str, owner: Owner, *, is_alive: IsAlive) -> bool:
        """Become the owner, unless another owner is alive."""
        return claiming.claim(
            self._locks,
            owner,
            is_alive=is_alive,
            present=lambda: self.owner_of(conversation_id),
            become=lambda before: self._become_owner(conversation_id, owner, before),
        )

    def owner_of(self, conversation_id: str) -> Owner | None:
        """Return who owns a conversation, alive or not."""
        with self._reading(conversation_id) as place:
            return place.found().owner

    def _become_owner(self, conversation_id: str, owner: Owner, before: Owner | None) -> bool:
        with self._locked(conversation_id, synced=False) as place:
            # Also if it was seen since: then it is alive.
            is_ours = place.found().owner == before
            if is_ours:
                conversation_rows.set_owner(place, owner)
        return is_ours

    def renew_locks(self) -> None:
        """Take the locks of all owners again if their session was lost."""
        self._locks.renew()

    def left_by_nodes(self, living: Sequence[int]) -> list[str]:
        """Return the conversations with unfinished turns that nodes own which are not among the living ones."""
        with self._connections.reading() as db:
            return conversation_rows.left_by_nodes(db, living)

    def is_locked(self, owner: Owner) -> bool | None:
        """Return whether an owner's process still holds its lock; None if there is no such lock."""
        return self._locks.is_held(owner.token)

    def beat(self, conversation_id: str, owner: Owner, *, at: int) -> None:
        """Record that the owner is alive."""
        self._locks.renew()
        with self._writing(conversation_id, owner, synced=False) as place:
            conversation_rows.set_owner(place, replace(owner, seen_at=at))

    def release(self, conversation_id: str, owner: Owner) -> None:
        """Stop being the owner."""
        # First, so that others may own it even if this cannot be written.
        self._locks.let_go(owner.token)
        with self._locked(conversation_id, synced=False) as place:
            if token_of(place.found().owner) == owner.token:
                conversation_rows.set_owner(place, None)

    def adopt(self, conversation_id: str, turn_ids: Sequence[str], *, owner: Owner) -> None:
        """Make running turns the owner's that another one began."""
        with self._writing(conversation_id, owner) as place:
            turn_rows.adopt(place, turn_ids, owner.token)

    def recover(self, conversation_id: str, *, at: int, owner: Owner | None = None) -> list[Turn]:
        """Mark running turns that the owner did not start as interrupted, and return them."""
        with self._writing(conversation_id, owner) as place:
            return turn_rows.interrupt(place, token_of(owner), at)

    def search(self, query: str, *, conversation_id: str | None = None, limit: int = 20) -> list[Found]:
        """Return the newest messages that hold every word of the query."""
        asked = query_from(query)
        with self._connections.reading() as db:
            number = None if conversation_id is None else Place(db, conversation_id).found().number
            return [] if asked is None else list(islice(search.found(db, asked, number), limit))

    def fsck(self, conversation_id: str | None = None) -> list[Finding]:
        """Return what is wrong with one conversation, or with all. PostgreSQL's own files are pg_amcheck's business."""
        with self._connections.reading() as db:
            findings = list(fsck.check_conversations(db, conversation_id))
        if damage := [finding for finding in findings if finding.kind != "stuck"]:
            self._connections.stop_writing(damage[0].text)
        return findings

    def repair(self, conversation_id: str, *, owner: Owner | None = None) -> list[Finding]:
        """Mend a conversation that is stuck, and return what was wrong."""
        findings = [finding for finding in self.fsck(conversation_id) if finding.kind == "stuck"]
        if findings:
            with self._writing(conversation_id, owner) as place:
                progress = stuck.mended(fsck.known(place), conversation_rows.find(place).progress)
                # With time 0, the time of the last activity stays as it is.
                conversation_rows.apply(place, StateChange(progress=progress), 0)
        return findings

    @contextmanager
    def copying_out(self, conversation_id: str) -> Iterator[Copied]:
        """Let the block read one state of a conversation."""
        with self._reading(conversation_id) as place:
            yield transfer.copied(place)

    @contextmanager
    def copying_all(self) -> Iterator[Iterator[Copied]]:
        """Let the block read one state of all conversations, which may be in use, each before the next."""
        with self._connections.reading() as db:
            # Writing what is read takes its time, and locks nobody out.
            db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            ids = [one.id for one in reversed(conversation_rows.listed(db))]
            yield (transfer.copied(Place(db, conversation_id)) for conversation_id in ids)

    def copy_in(self, copied: Copied) -> None:
        """Add a conversation that nobody owns."""
        with self._connections.writing() as db:
            transfer.add(db, copied)

    def _answered(self, conversation_id: str, turn_id: str, answer: Cursor[Row]) -> Turn:
        """Return a turn as it was stored; if only the answer was lost, ask again."""
        return self.turn(conversation_id, turn_id) if answer.pgresult is None else turn_rows.read(answer, turn_id)

    def _checking_end(self, place: Place) -> "_EndCheck":
        return _EndCheck(place, self._intact)


class _EndCheck:
    """Checks the last message before anything is added: once, asked for together with everything else."""

    def __init__(self, place: Place, intact: dict[str, bytes]) -> None:
        self._place = place
        self._intact = intact
        is_known = place.id in intact
        self._last = None if is_known else message_rows.ask_last(place, NO_END, 1)

    def __call__(self) -> None:
        """Raise DamagedData if the last message is not the one that the conversation's state names."""
        place, end = self._place, self._place.found()
        if self._intact.get(place.id) == end.head:
            return
        answer = self._last or message_rows.ask_last(place, NO_END, 1)
        last = message_rows.read_last(place, answer, 1)
        compare_end(last, end.messages, end.head, end.first_link)
        self._intact[place.id] = end.head
