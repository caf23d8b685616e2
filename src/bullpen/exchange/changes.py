"""What changed in folders, in exports: read a few messages at a time, in words, and brought back from JSON."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.file_changes import ChangeRecord, FileChange, FolderChanges, Totals
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store
from bullpen.text.clean import one_line
from bullpen.text.numbers import counted
from bullpen.text.safe import printable
from bullpen.view.changes import change_summary, record_words
from bullpen.view.combined_changes import repeats
from bullpen.view.diff import file_words

MESSAGES_AT_ONCE = 20
"""Each turn may have a patch of a megabyte."""
MOST_FILES = 500
"""That an export lists of one turn."""
LARGEST = 2**53
"""Of numbers in a file from elsewhere: any program can read them."""
MOST_NAME = 200
MOST_NOTE = 4096
"""Characters of names and of notes in a file from elsewhere."""
CUT = "The patch was too large: files at its end are missing in it."

_CAPITAL = re.compile("([A-Z])")
# Longer numbers are not reached.
_TURN_NUMBER = re.compile("[0-9]{1,9}")


class ShownChanges(Struct, frozen=True, kw_only=True):
    """What a turn, a person or an undo changed, for people. Everything in it is harmless text."""

    heading: str
    is_of_reply: bool
    """Whether the message before it is the reply of the turn that made them."""
    files: tuple[tuple[str, str], ...]
    """Their paths, and what became of them."""
    notes: tuple[str, ...]
    patch: str


def all_changes(store: Store, conversation_id: str, *, last: int) -> Iterator[ChangeRecord]:
    """Yield what changed up to a message, oldest first, with little in memory at a time."""
    for first in range(0, last + 1, MESSAGES_AT_ONCE):
        until = min(first + MESSAGES_AT_ONCE - 1, last)
        yield from store.changes(conversation_id, first=first, last=until)


def with_short_repeats(records: Iterable[ChangeRecord]) -> Iterator[ChangeRecord]:
    """Yield records; of a merge that brought exactly what its turn had changed, only how much that is."""
    latest: dict[str, ChangeRecord] = {}
    for record in records:
        if record.kind == "turn":
            latest[record.member] = record
        yield _only_how_much(record) if repeats(record, latest.get(record.member)) else record


def _only_how_much(record: ChangeRecord) -> ChangeRecord:
    changes = record.changes
    total = Totals(files=changes.count, added=changes.added, removed=changes.removed)
    return replace(record, changes=replace(changes, files=(), patch="", patch_is_cut=False, total=total))


def shown_changes(record: ChangeRecord, message: ConversationMessage | None) -> ShownChanges | None:
    """Return changes as people read them after a message; None if there is nothing to read."""
    changes = record.changes
    was_asked_for = record.kind not in ("turn", "people", "check")
    if not was_asked_for and (record.state == "begun" or not (changes.files or changes.note)):
        return None
    is_of_reply = record.kind == "turn" and message is not None and message.speaker.role_id == record.member
    heading = change_summary(changes) if is_of_reply else record_words(record)
    more = len(changes.files) - MOST_FILES
    notes = (
        f"… and {counted(more, 'more file')}" if more > 0 else "",
        changes.note if is_of_reply else "",
        CUT if changes.patch_is_cut else "",
    )
    return ShownChanges(
        heading=_harmless(heading),
        is_of_reply=is_of_reply,
        files=tuple((_harmless(_title(file)), _about(file)) for file in changes.files[:MOST_FILES]),
        notes=tuple(_harmless(note) for note in notes if note),
        # The carriage returns of a whole file would each be a character that is not known.
        patch=printable(changes.patch.replace("\r\n", "\n")).removesuffix("\n"),
    )


def imported_changes(values: object, messages: int) -> tuple[ChangeRecord, ...]:
    """Return the changes in an export that are done, or raise ValueError.

    They can be read, but not taken back: the contents of the files are where they were made, so the ids of these
    contents are left out. A file from elsewhere could name anything with them.
    """
    try:
        records = msgspec.convert(snake_case(values), list[ChangeRecord])
    except msgspec.ValidationError as error:
        raise ValueError(f"its changes cannot be read: {error}") from error
    numbers = [record.number for record in records]
    if len(set(numbers)) < len(numbers) or not all(0 < number <= LARGEST for number in numbers):
        raise ValueError("its changes are not numbered 1, 2, 3, …")
    if not all(0 <= record.after_message <= messages for record in records):
        raise ValueError(f"its changes are not after any of its {messages} messages")
    if any(record.changes.patch and not record.changes.files for record in records):
        raise ValueError("its changes have a patch without files")
    if not all(0 <= number <= LARGEST for record in records for number in _numbers_in(record)):
        raise ValueError("its changes have a number that is not plausible")
    return tuple(_seen_only(record) for record in records if record.state == "done")


def highest_turn(records: Iterable[ChangeRecord | CheckResult | ApprovalRecord]) -> int:
    """Return the highest number of the turns that these are of, or 0: no other turn may get it."""
    return max((int(one.turn_id) for one in records if _TURN_NUMBER.fullmatch(one.turn_id)), default=0)


def _harmless(text: str) -> str:
    return printable(one_line(text))


def _title(file: FileChange) -> str:
    # A file may have a line feed in its name.
    names = (file.renamed_from, file.path) if file.renamed_from else (file.path,)
    return " → ".join(name.replace("\n", "\ufffd") for name in names)


def _about(file: FileChange) -> str:
    return file_words(file.kind, file.added, file.removed, is_binary=file.is_binary)


def _numbers_in(record: ChangeRecord) -> Iterator[int]:
    yield from (record.at, record.undoes)
    for file in record.changes.files:
        yield from (file.added, file.removed)


def _seen_only(record: ChangeRecord) -> ChangeRecord:
    changes: FolderChanges = record.changes
    files = tuple(replace(file, old=None, new=None) for file in changes.files)
    note = imported_name(changes.note, MOST_NOTE)
    return replace(
        record,
        **{name: imported_name(getattr(record, name)) for name in ("turn_id", "member", "person", "check")},
        **{name: imported_name(getattr(record, name)) for name in ("other", "other_turn")},
        brings="",
        # Nobody is asked about files that were changed elsewhere.
        changes=replace(changes, before="", after="", files=files, note=note, total=None, programs=(), digests=()),
    )


def imported_name(text: str, most: int = MOST_NAME) -> str:
    """Return a name from elsewhere as one: agents are told it in our words, so it may not be more than that."""
    return one_line(text)[:most]


def snake_case(value: Any) -> Any:
    """Return a value with the names of fields as they are here."""
    match value:
        case dict():
            return {_CAPITAL.sub(r"_\1", str(name)).lower(): snake_case(item) for name, item in value.items()}
        case list():
            return [snake_case(item) for item in value]
        case _:
            return value
