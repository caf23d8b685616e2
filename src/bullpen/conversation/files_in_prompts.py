"""What an agent is told of files: the diff that a [DIFF] asks for, and what was taken back since its last turn."""

import re
from collections.abc import Collection, Iterable

from bullpen.conversation.undo_rules import AIMED_AT_A_TURN, taken_back
from bullpen.errors import UnknownTurn
from bullpen.file_changes import ChangeRecord, FileChange
from bullpen.files.own_paths import is_candidates
from bullpen.store.base import Store
from bullpen.text.clean import byte_length
from bullpen.text.numbers import counted

DIFF_SHARE = 4
"""A diff takes at most this part of the bytes that a prompt may have: 1/4."""
LOOK_BACK = 1_000
"""How many messages are searched for changes of files."""
MOST_NAMES = 10
MOST_NOTES = 5
_FILE = re.compile(r"^(?=diff --git )", re.MULTILINE)
_BINARY = re.compile(r"^GIT binary patch\n.*", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"`{3,}")


def wanted_diff(store: Store, conversation_id: str, turn_id: str, max_bytes: int, hidden: Collection[str] = ()) -> str:
    """Return the diff of a turn for a prompt; without an id, of the last turn that changed files and was not undone.

    The changes of hidden turns are not shown: those of others who do the same task.
    """
    if turn_id in hidden:
        return f"(The diff of turn {turn_id} was asked for, but nobody who does the same task may see it yet.)"
    if turn_id:
        records = store.changes(conversation_id, turn_ids=[turn_id], patches=False)
    else:
        records = _latest(store, conversation_id)
    gone = taken_back(records)
    turns = [record for record in records if record.kind == "turn" and record.changes.files]
    merged = {record.turn_id for record in records if record.kind == "merge"}
    chosen = turns if turn_id else [record for record in turns if is_there(record, gone, merged)]
    full = store.change(conversation_id, chosen[-1].number) if chosen else None
    if full is None:
        return _no_diff(store, conversation_id, turn_id)
    whose = f"turn {full.turn_id} of {full.member}"
    return shown_changes(full, max_bytes // DIFF_SHARE, f"What {whose}", is_gone=full.number in gone)


def is_there(record: ChangeRecord, gone: Collection[int], merged: Collection[str]) -> bool:
    """Return whether what a turn changed was not taken back, and is not one of several results that was not picked."""
    return record.number not in gone and (record.turn_id in merged or not is_candidates(record.changes.folder))


def _latest(store: Store, conversation_id: str) -> list[ChangeRecord]:
    """Return the records after the last messages; a long conversation is not read as a whole."""
    messages = store.message_count(conversation_id)
    return store.changes(conversation_id, first=max(messages - LOOK_BACK, 0), patches=False)


def _no_diff(store: Store, conversation_id: str, turn_id: str) -> str:
    if not turn_id:
        return "(A diff was asked for, but no turn has changed files that bullpen knows of.)"
    try:
        member = store.turn(conversation_id, turn_id).member
    except UnknownTurn:
        return f"(The diff of turn {turn_id} was asked for, but there is no such turn.)"
    return f"(The diff of turn {turn_id} was asked for, but {member} changed no files in it that bullpen knows of.)"


def shown_changes(record: ChangeRecord, room: int, what: str, *, is_gone: bool = False) -> str:
    """Return what was changed, for a prompt: how much, which files, and as many lines as there is room for."""
    changes = record.changes
    # The contents of a binary file are noise to an agent.
    parts = [_BINARY.sub("Binary files differ\n", part) for part in _FILE.split(changes.patch)[1:]]
    left = _that_fit(parts, room)
    missing = len(changes.files if changes.patch_is_cut else parts) - len(left)
    lines = f"+{changes.added} -{changes.removed}"
    heading = f"{what} changed: {counted(len(changes.files), 'file')}, {lines}."
    notes = [
        "It was taken back since." if is_gone else "",
        changes.note,
        f"Not shown here, for lack of room: {counted(missing, 'file')}." if missing > 0 else "",
    ]
    patch = "".join(left).rstrip("\n")
    listed = "\n".join(_line(file) for file in changes.files[: 10 * MOST_NAMES])
    body = fenced(patch, "diff") if patch else ""
    return "\n\n".join(filter(None, [" ".join(filter(None, [heading, *notes])), listed, body]))


def fenced(text: str, kind: str) -> str:
    """Return a text as a block of code that nothing in it can end."""
    fence = "`" * max([3, *(len(found) + 1 for found in _FENCE.findall(text))])
    return f"{fence}{kind}\n{text}\n{fence}"


def _that_fit(files: Iterable[str], room: int) -> list[str]:
    """Return the diffs of files that fit, the first ones first; a large one hides none of those after it."""
    kept: list[str] = []
    for file in files:
        length = byte_length(file)
        if length <= room:
            kept.append(file)
            room -= length
    return kept


def _line(file: FileChange) -> str:
    name = f"{file.renamed_from} -> {file.path}" if file.renamed_from else file.path
    return f"- {name!r}: {file.kind}{', binary' if file.is_binary else ''}"


def files_note(store: Store, conversation_id: str, after: int) -> str:
    """Return what an agent should know of files that others than turns have changed after a message."""
    records = [record for record in _latest(store, conversation_id) if record.after_message >= after]
    # What was taken back and brought back again since then is as it was.
    numbers, gone = {record.number for record in records}, taken_back(records)
    told = [
        record
        for record in records
        if record.kind not in ("turn", "merge")
        and record.number not in gone
        and record.changes.files
        # What was done in the worktree of one of several is in no folder that anybody else works in.
        and not is_candidates(record.changes.folder)
    ]
    notes = [_note(record) for record in told if not (_only_restores(record) and record.undoes in numbers)]
    return " ".join(notes[-MOST_NOTES:])


def _only_restores(record: ChangeRecord) -> bool:
    """Return whether a record makes files what they were before the one that it is about."""
    return record.kind == "redo" or (record.kind == "undo" and record.about in AIMED_AT_A_TURN)


def _note(record: ChangeRecord) -> str:
    names = _names(record.changes.files)
    match record.kind:
        case "undo":
            return f"{record.person} took back {_what_was_done(record, names)}."
        case "redo":
            return f"{record.person} brought back {_what_was_done(record, names)}."
        case "check":
            return f"{_made_by(record).replace('the', 'The', 1)} itself changed {names}."
        case "rewind":
            return f"{record.person} put these files back to what they were after turn {record.turn_id}: {names}."
        case "take":
            return f"{record.person} took what turn {record.turn_id} of {record.member} had made of {names}."
        case "collision":
            both = f"{record.other} and {record.member} {'have' if record.is_sure else 'may have'} both changed {names}"
            return f"{both} at the same time. Check that nothing of either is missing."
        case _:
            return f"Between turns, a person or another program changed {names}."


def _what_was_done(record: ChangeRecord, names: str) -> str:
    match record.about:
        case "rewind":
            return f"the rewind to turn {record.turn_id}, which had put back {names}"
        case "take":
            return f"the choice of what turn {record.turn_id} of {record.member} had made of {names}"
        case _:
            return f"what {_made_by(record)} changed in {names}"


def _made_by(record: ChangeRecord) -> str:
    turn = f"turn {record.turn_id} of {record.member}"
    return f"the check {record.check} after {turn}" if record.check else turn


def _names(files: Iterable[FileChange]) -> str:
    names = [repr(file.path) for file in files]
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {counted(more, 'more file')}" if more > 0 else "")
