"""Changes as they are read from the store: beside messages, page by page, and one with its patch."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import UnknownChange
from bullpen.file_changes import ChangeKind, ChangeRecord, FileChange
from bullpen.store.base import Store
from bullpen.view.change_lookup import all_changes
from bullpen.view.changes import change_summary, record_words
from bullpen.view.checks import CheckLine, check_shown
from bullpen.view.combined_changes import combine, kept_beside
from bullpen.view.messages import ShownMessage
from bullpen.view.unanswered import UnansweredTurn

MOST_RECORDS = 1_000
MOST_FILES = 10_000
MOST_PATCHES = 20
"""Records with their patches that are read at once: a patch may have a megabyte."""
LATE = 10
"""Messages since which changes are told again to a page that has missed some: those of a turn are known after it."""


class ChangeLine(Struct, frozen=True, kw_only=True):
    """One record, as a line beside a message or between two."""

    number: int
    kind: ChangeKind
    turn: str
    after: int
    """The number of the message that it comes after."""
    at: int
    short: str
    """How much it is: "3 files, +24 −7"."""
    words: str
    """Who changed what, in a sentence."""
    note: str = ""
    """What is not known about it."""


class ChangeLines(Struct, frozen=True, kw_only=True):
    """The lines of some messages."""

    lines: tuple[ChangeLine, ...] = ()
    checks: tuple[CheckLine, ...] = ()
    """What checks said after turns."""

    def checks_of(self, turn_id: str | None) -> list[CheckLine]:
        """Return what checks said after a turn."""
        return [one for one in self.checks if one.turn == turn_id]

    def of_turn(self, turn_id: str | None) -> list[ChangeLine]:
        """Return what a turn itself has changed."""
        return [one for one in self.lines if one.kind == "turn" and one.turn == turn_id]

    def after(
        self, sequence: int, unanswered: Sequence[UnansweredTurn]
    ) -> list[UnansweredTurn | ChangeLine | CheckLine]:
        """Return what came after a message, in its order: turns without a reply, and what was changed or taken back."""
        others = [one for one in self.lines if one.kind != "turn" and one.after == sequence]
        came: list[UnansweredTurn | ChangeLine] = [*unanswered, *others]
        came.sort(key=lambda one: one.at)
        return [part for one in came for part in (one, *self._changed_in(one))]

    def _changed_in(self, one: UnansweredTurn | ChangeLine) -> list[ChangeLine | CheckLine]:
        return [*self.of_turn(one.turn), *self.checks_of(one.turn)] if isinstance(one, UnansweredTurn) else []


def change_line(record: ChangeRecord) -> ChangeLine | None:
    """Return a record as a line; None if nothing has changed."""
    short = change_summary(record.changes)
    if not short:
        return None
    return ChangeLine(
        number=record.number,
        kind=record.kind,
        turn=record.turn_id,
        after=record.after_message,
        at=record.at,
        short=short,
        words=record_words(record),
        note=record.changes.note,
    )


def lines_beside(store: Store, conversation_id: str, messages: Sequence[ShownMessage]) -> ChangeLines:
    """Return what changed in the turns of these messages, which follow each other, and after each of them."""
    if not messages:
        return ChangeLines()
    said = [one.turn for one in messages if one.turn is not None]
    turns = [*said, *(turn.turn for one in messages for turn in one.unanswered)]
    first = messages[0].sequence
    # What came before everything is shown after the first message.
    between = store.changes(conversation_id, first=first if first > 1 else 0, last=messages[-1].sequence, patches=False)
    records = [record for record in between if record.kind != "turn"]
    if turns:
        of_turns = store.changes(conversation_id, turn_ids=turns, patches=False)
        records += [record for record in of_turns if record.kind == "turn"]
    return ChangeLines(
        lines=tuple(_at_least(line, first) for one in records if (line := change_line(one)) is not None),
        checks=tuple(map(check_shown, store.checks(conversation_id, turn_ids=turns))) if turns else (),
    )


def late_lines(store: Store, conversation_id: str, after: int) -> list[ChangeLine]:
    """Return what may have changed since a page has read its last message."""
    records = store.changes(conversation_id, first=max(0, after - LATE), patches=False)
    return [line for one in records if (line := change_line(one)) is not None]


def late_checks(store: Store, conversation_id: str, after: int) -> list[CheckLine]:
    """Return what checks may have said since a page has read its last message."""
    return list(map(check_shown, store.checks(conversation_id, first=max(0, after - LATE))))


def change_page(
    store: Store,
    conversation_id: str,
    *,
    turn_id: str = "",
    after: int = 0,
    limit: int = MOST_RECORDS,
    patches: bool = False,
) -> list[ChangeRecord]:
    """Return the records with higher numbers than one, in the order of their numbers: all, or those about a turn.

    Each has its first files only; `change_files` returns the others.
    """
    turns = [store.turn(conversation_id, turn_id).id] if turn_id else None
    records = store.changes(conversation_id, turn_ids=turns, patches=False)
    later = sorted((one for one in records if one.number > after), key=lambda record: record.number)
    page = later[: min(limit, MOST_PATCHES if patches else MOST_RECORDS)]
    if patches:
        page = [one_change(store, conversation_id, one.number) for one in page]
    return [replace(one, changes=one.changes.to_send()) for one in page]


def change_files(
    store: Store, conversation_id: str, number: int, *, after: int = 0, limit: int = MOST_FILES
) -> tuple[FileChange, ...]:
    """Return the files of a record, without as many as are known already."""
    return one_change(store, conversation_id, number).changes.files[after : after + min(limit, MOST_FILES)]


def one_change(store: Store, conversation_id: str, number: int) -> ChangeRecord:
    """Return one record with its patch, or raise UnknownChange."""
    found = store.change(conversation_id, number)
    if found is None:
        raise UnknownChange(number)
    return found


def change_part(store: Store, conversation_id: str, key: str) -> ChangeRecord:
    """Return one change with its patch, or several as one, by its key; or raise UnknownChange."""
    first, _, last = key.partition("-")
    found = one_change(store, conversation_id, int(first))
    if not last:
        return found
    folder = found.changes.folder
    records = [one for one in all_changes(store, conversation_id) if one.changes.folder == folder]
    numbers = [one.number for one in records]
    if int(last) not in numbers:
        raise UnknownChange(int(last))
    wanted = [one for one in records[: numbers.index(int(last)) + 1] if one.number >= found.number]
    parts = combine(wanted, kept_beside(store))
    if len(parts) != 1:
        raise UnknownChange(int(last))
    return parts[0]


def turn_patch(store: Store, conversation_id: str, turn_id: str) -> str:
    """Return what a turn changed, as a patch."""
    store.turn(conversation_id, turn_id)
    records = [one for one in store.changes(conversation_id, turn_ids=[turn_id]) if one.kind == "turn"]
    return "".join(record.changes.patch for record in records)


def _at_least(line: ChangeLine, first: int) -> ChangeLine:
    return line if line.after >= first else replace(line, after=first)
