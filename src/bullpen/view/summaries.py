"""Summaries as people see them: which there are, what each covers, and the text of the one that is used."""

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.markers.stripping import text_for_people
from bullpen.routing.progress import Progress
from bullpen.routing.summaries import Summary, newest
from bullpen.store.base import Store
from bullpen.team.team import Team
from bullpen.text.numbers import size

NONE = "Nothing was summed up yet. /sumup asks for a summary of what agents are no longer shown."
LONGEST_NUMBER = 9


class Summarizer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is to sum up; nothing: who usually does."""

    member: str = ""


class Numbered(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A summary, by the number of its message; nothing: the one that is used now."""

    number: int | None = None


class ShownSummary(Struct, frozen=True, kw_only=True):
    """A summary in the state of a conversation, as JSON has it."""

    number: int
    member: str
    first: int
    last: int
    size: int
    is_used: bool
    """Whether it is the one that prompts contain."""
    dropped_by: str = ""


def shown_summaries(progress: Progress) -> tuple[ShownSummary, ...]:
    """Return all summaries, the newest first."""
    used = newest(progress.summaries)
    return tuple(
        ShownSummary(
            number=one.number,
            member=one.member,
            first=one.first,
            last=one.last,
            size=one.size,
            is_used=one == used,
            dropped_by=one.dropped_by,
        )
        for one in reversed(progress.summaries)
    )


def summary_numbers(store: Store, conversation_id: str) -> tuple[int, ...]:
    """Return the numbers of the messages that are summaries."""
    progress = msgspec.convert(store.conversation(conversation_id).progress, Progress)
    return tuple(one.number for one in progress.summaries)


def summary_lines(progress: Progress) -> list[str]:
    """Return a line for each summary, the newest first, and for what is being summed up."""
    return list(_lines(progress)) or [NONE]


def summaries_text(store: Store, conversation_id: str, progress: Progress) -> str:
    """Return the same, with the text of the summary that is used."""
    used = newest(progress.summaries)
    lines = summary_lines(progress)
    if used is not None:
        [stored] = store.messages(conversation_id, after=used.number - 1, before=used.number + 1)
        lines += ["", f"#{used.number}:", text_for_people(stored.message.content)]
    return "\n".join(lines)


def read_summarizer(text: str, _: Team) -> Summarizer:
    """Return who is named: "", or "max"."""
    return Summarizer(member=text.removeprefix("@"))


def read_number(text: str, _: Team) -> Numbered:
    """Return which summary is named: "", "41" or "#41"."""
    digits = text.removeprefix("#")
    if not digits:
        return Numbered()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= LONGEST_NUMBER):
        raise BullpenError("/drop-summary takes the number of a summary, for example: /drop-summary 41")
    return Numbered(number=int(digits))


async def sum_up(conversation: Conversation, given: Summarizer, person: str | None) -> str:
    """Ask for a summary."""
    await conversation.sum_up(given.member, by=person)
    return ""


async def drop_summary(conversation: Conversation, given: Numbered, person: str | None) -> str:
    """Take a summary out of prompts."""
    await conversation.drop_summary(given.number, by=person)
    return ""


def _lines(progress: Progress) -> Iterator[str]:
    for turn, asked in progress.summing.items():
        yield f"{asked.covered.words}: asked for in turn {turn}"
    used = newest(progress.summaries)
    for one in reversed(progress.summaries):
        yield f"#{one.number} covers {one.covered.words}: by {one.member}, {size(one.size)}, {_state(one, used)}"


def _state(one: Summary, used: Summary | None) -> str:
    if one.dropped_by:
        return f"dropped by {one.dropped_by}"
    return "used in prompts" if used is None or one == used else f"replaced by #{used.number}"
