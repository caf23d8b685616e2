"""What agents asked and what was answered, in exports: read a few messages at a time, in words, and back from JSON.

In JSON, the fields are named as in the chain of hashes (bullpen.store.chain), so that it can be recomputed.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.approvals import Answer, ApprovalRecord, Scope, Verdict
from bullpen.errors import StoreConflict
from bullpen.exchange.changes import LARGEST, MOST_NOTE, imported_name
from bullpen.messages import ConversationMessage
from bullpen.store.approval_rows import check
from bullpen.store.base import Store
from bullpen.store.chain import approval_line, next_approval_link
from bullpen.text.clean import one_line
from bullpen.text.safe import printable
from bullpen.turn_events import ApprovalAsked, AskedKind

MESSAGES_AT_ONCE = 200
WANTS: dict[AskedKind, str] = {
    "command": "asked to run a command",
    "edit": "asked to change files",
    "network": "asked to use the network",
    "tool": "asked to use a tool",
    "question": "asked a question",
}
SAID: dict[Verdict, str] = {"yes": "yes", "no": "no", "stop": "no, and stop"}
HOLDS: dict[Scope, str] = {
    "once": "",
    "turn": ", for this turn",
    "conversation": ", for this conversation",
    "team": ", always for this team",
}


class ShownApproval(Struct, frozen=True, kw_only=True):
    """What an agent asked, or what was answered, for people. Everything in it is harmless text."""

    heading: str
    text: str
    """What it wanted to do, or what it was told; perhaps empty."""


def all_approvals(store: Store, conversation_id: str, *, last: int) -> Iterator[ApprovalRecord]:
    """Yield what was asked and answered up to a message, oldest first, with little in memory at a time."""
    for first in range(0, last + 1, MESSAGES_AT_ONCE):
        until = min(first + MESSAGES_AT_ONCE - 1, last)
        yield from store.approvals(conversation_id, first=first, last=until)


def approval_as_json(record: ApprovalRecord) -> dict[str, Any]:
    """Return a question or an answer for programs."""
    return {**msgspec.to_builtins(record), "hash": record.hash.hex()}


def shown_approval(record: ApprovalRecord, _: ConversationMessage | None) -> ShownApproval:
    """Return a question or an answer as people read it."""
    if record.answer is not None:
        said = record.answer.text or SAID[record.answer.verdict]
        why = f" ({record.because})" if record.because else ""
        heading = f"{record.by or 'bullpen'} answered {record.member}: {said}{HOLDS[record.scope]}{why}"
        return ShownApproval(heading=printable(one_line(heading)), text=printable(_told(record.answer)))
    asked = record.asked or ApprovalAsked(id="", kind="tool")
    tool = f" ({asked.tool})" if asked.tool else ""
    heading = printable(one_line(f"{record.member} {WANTS[asked.kind]}{tool}"))
    return ShownApproval(heading=heading, text=printable(_wanted(asked).replace("\r\n", "\n")))


def _wanted(asked: ApprovalAsked) -> str:
    lines = (
        f"$ {asked.command}" if asked.command else "",
        f"in {asked.folder}" if asked.folder else "",
        "\n".join(asked.paths),
        asked.why,
        asked.diff.removesuffix("\n"),
        msgspec.json.encode(asked.details).decode() if asked.details else "",
        " | ".join(asked.choices),
    )
    return "\n".join(line for line in lines if line)


def _told(answer: Answer) -> str:
    return "\n".join(line for line in (f"$ {answer.command}" if answer.command else "", answer.reason) if line)


def imported_approvals(values: object, hashes: Sequence[str]) -> tuple[ApprovalRecord, ...]:
    """Return what was asked and answered in an export, or raise ValueError.

    The hashes are those of the conversation's beginning, and of each of its messages.
    """
    if not isinstance(values, list):
        raise TypeError("its approvals are not a list")
    records: list[ApprovalRecord] = []
    there: dict[tuple[str, str], set[int]] = {}
    previous = bytes.fromhex(hashes[0])
    latest = 0
    for value in values:
        record, link = _read(value)
        if not latest <= record.after_message < len(hashes):
            raise ValueError(f"its approvals are not after any of its {len(hashes) - 1} messages, or not in order")
        previous = next_approval_link(previous, bytes.fromhex(hashes[record.after_message]), approval_line(record))
        if link != previous.hex():
            raise ValueError(f"approval {record.number} was changed after the export: its hash does not match")
        record = _as_it_can_be(record)
        seen = there.setdefault((record.turn_id, record.question), set())
        try:
            check(record, len(records), seen, latest, len(hashes) - 1)
        except StoreConflict as error:
            raise ValueError(f"its approvals contradict each other: {error}") from error
        seen.add(int(record.answer is not None))
        latest = record.after_message
        records.append(record)
    return tuple(records)


def _read(value: object) -> tuple[ApprovalRecord, object]:
    """Return a record and the hash that it must have."""
    facts = value if isinstance(value, dict) else {}
    try:
        fields = {name: field for name, field in facts.items() if name != "hash"}
        # Read as it was before it was hashed: what is equal to a default is left out only then.
        record = msgspec.json.decode(msgspec.json.encode(fields), type=ApprovalRecord)
    except msgspec.MsgspecError as error:
        raise ValueError(f"its approvals cannot be read: {error}") from error
    if not 0 <= record.at <= LARGEST:
        raise ValueError("its approvals have a time that is not plausible")
    return record, facts.get("hash")


def _as_it_can_be(record: ApprovalRecord) -> ApprovalRecord:
    """Return what is from another conversation, and whose names are nothing else."""
    return replace(
        record,
        turn_id=imported_name(record.turn_id),
        member=imported_name(record.member),
        question=imported_name(record.question),
        by=imported_name(record.by),
        because=imported_name(record.because, MOST_NOTE),
        is_copy=True,
    )
