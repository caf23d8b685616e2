"""Shared by all formats: a conversation read page by page, and times and names as text."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Generic, Protocol, TypeVar

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.exchange.approvals import ShownApproval, all_approvals, shown_approval
from bullpen.exchange.changes import ShownChanges, all_changes, shown_changes, with_short_repeats
from bullpen.exchange.checks import ShownCheck, all_checks, shown_check
from bullpen.file_changes import ChangeRecord
from bullpen.memory import Memory
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.text.clean import one_line
from bullpen.view.messages import ShownMessage, rebuilt_replies
from bullpen.view.unanswered import UnansweredTurn, unanswered_turns

# Large enough for few queries, small enough to hold in memory.
PAGE_MESSAGES = 200


Record = TypeVar("Record", bound=ChangeRecord | CheckResult | ApprovalRecord)
Shown = TypeVar("Shown", bound=ShownChanges | ShownCheck | ShownApproval)


class Writable(Protocol):
    """The part of a text file that an export needs."""

    def write(self, text: str, /) -> object:
        """Write the next piece."""


def all_messages(store: Store, conversation_id: str, *, last: int | None = None) -> Iterator[StoredMessage]:
    """Yield the current messages, or those up to one, oldest first, with one page in memory at a time."""
    for page in _pages(store, conversation_id, last):
        yield from page


def all_entries(
    store: Store, conversation_id: str
) -> Iterator[ShownMessage | UnansweredTurn | ShownChanges | ShownCheck | ShownApproval]:
    """Yield the same, and between them turns that ended without a reply, what changed in folders, and checks of it.

    What agents asked before they did something, and what was answered, is there too.
    """
    end = _end(store, conversation_id)
    changes = _Following(with_short_repeats(all_changes(store, conversation_id, last=end)), shown_changes)
    checks = _Following(all_checks(store, conversation_id, last=end), shown_check)
    approvals = _Following(all_approvals(store, conversation_id, last=end), shown_approval)
    yield from changes.after(0, None)
    yield from approvals.after(0, None)
    for page in _pages(store, conversation_id):
        turns = unanswered_turns(store, conversation_id, page, most=None)
        rebuilt = rebuilt_replies(store, conversation_id, page)
        for stored in page:
            why = rebuilt.get(stored.message.id, "")
            yield ShownMessage(sequence=stored.sequence, message=stored.message, rebuilt=why)
            changed: list[ShownChanges | ShownCheck] = [
                *changes.after(stored.sequence, stored.message),
                *checks.after(stored.sequence, stored.message),
            ]
            yield from (one for one in changed if one.is_of_reply)
            yield from (turn for turn in turns if turn.after == stored.sequence)
            yield from (one for one in changed if not one.is_of_reply)
            yield from approvals.after(stored.sequence, stored.message)


class _Following(Generic[Record, Shown]):
    """Changes, checks or approvals beside the messages that they came after, both read in their order."""

    def __init__(
        self, records: Iterator[Record], shown: Callable[[Record, ConversationMessage | None], Shown | None]
    ) -> None:
        self._records = records
        self._shown = shown
        self._next = next(records, None)

    def after(self, sequence: int, message: ConversationMessage | None) -> list[Shown]:
        """Return those after a message that were not returned yet."""
        found: list[Shown] = []
        while (record := self._next) is not None and record.after_message <= sequence:
            shown = self._shown(record, message)
            found += [] if shown is None else [shown]
            self._next = next(self._records, None)
        return found


def all_turns(store: Store, conversation_id: str) -> Iterator[tuple[Turn, Memory | None]]:
    """Yield all turns with the sessions that they left, in the order of the messages that asked for them.

    One page is in memory at a time.
    """
    for first in range(1, _end(store, conversation_id) + 1, PAGE_MESSAGES):
        turns = store.turns_asked_by(conversation_id, first=first, last=first + PAGE_MESSAGES - 1)
        left = store.memories(conversation_id, turn_ids=[turn.id for turn in turns])
        memories = {one.turn_id: one.memory for one in left}
        yield from ((turn, memories.get(turn.id)) for turn in turns)


def _pages(store: Store, conversation_id: str, last: int | None = None) -> Iterator[list[StoredMessage]]:
    end = _end(store, conversation_id) if last is None else last
    read = 0
    while read < end:
        page = store.messages(conversation_id, after=read, before=end + 1, limit=PAGE_MESSAGES)
        yield page
        read = page[-1].sequence


def _end(store: Store, conversation_id: str) -> int:
    newest = store.messages(conversation_id, limit=1)
    return newest[0].sequence if newest else 0


def utc_time(milliseconds: int) -> str:
    """Return a time for people; empty for an imported message without a valid one."""
    try:
        return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M} UTC" if milliseconds else ""
    except (ValueError, OverflowError, OSError):
        return ""


def sender_of(message: ConversationMessage) -> str:
    """Return who sent a message, on one line."""
    return one_line(message.speaker.role_name)


def addressees_of(message: ConversationMessage) -> str:
    """Return who a message is addressed to, on one line; empty means everyone."""
    return "" if message.routing is None else one_line(", ".join(message.routing.resolved_addressees))
