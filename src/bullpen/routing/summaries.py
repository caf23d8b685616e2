"""Summaries: which messages each one covers, which one a prompt may have, and who writes them. Plain data."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bullpen.errors import BullpenError
from bullpen.messages import ConversationMessage
from bullpen.team.team import SMALLEST_WINDOW, Member, Team
from bullpen.text.clean import byte_length
from bullpen.text.patterns import pattern

SUMMARY_OF = "summaryOf"
"""The field of a message that makes it a summary. It is covered by the message's hash."""
LINE_BYTES = 32
"""What a message takes in a prompt besides its text: its speaker, its addressees."""
_CITED = pattern(r"(?<![\w&#])#(\d{1,9})\b")


class Covered(Struct, frozen=True, kw_only=True):
    """Messages in a row, by their numbers."""

    first: int
    last: int

    @property
    def words(self) -> str:
        """Which they are, for people."""
        return f"#{self.first}" if self.first == self.last else f"#{self.first} to #{self.last}"

    @property
    def summary_of(self) -> str:
        """What a message is that covers them, for people."""
        return f"summary of {self.words}"

    def __contains__(self, number: int) -> bool:
        return self.first <= number <= self.last


class Summary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary that was written, and the messages that it covers."""

    number: int
    """Of the message that it is."""
    member: str
    """Who wrote it."""
    first: int
    last: int
    size: int
    """Bytes."""
    dropped_by: str = ""
    """Who does not want it in prompts any more."""

    @property
    def covered(self) -> Covered:
        """The messages that it covers."""
        return Covered(first=self.first, last=self.last)


class AskedSummary(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A summary that somebody is asked to write."""

    first: int
    last: int
    earlier: int = 0
    """The number of the summary that it continues; 0: there is none."""
    after: int = 0
    """The last message that the earlier one covers: what came after it is given to who writes the new one."""

    @property
    def covered(self) -> Covered:
        """The messages that it will cover."""
        return Covered(first=self.first, last=self.last)

    @property
    def given(self) -> Covered:
        """The messages that are given to who writes it."""
        return Covered(first=self.after + 1, last=self.last)


def covered_by(message: ConversationMessage) -> Covered | None:
    """Return the messages that a message covers; None if it is not a summary."""
    if not message.extra or SUMMARY_OF not in message.extra:
        return None
    try:
        covered = msgspec.convert(message.extra[SUMMARY_OF], Covered)
    except msgspec.ValidationError:
        # A field of some other system that has the same name.
        return None
    return covered if 0 < covered.first <= covered.last else None


def mark_of(asked: AskedSummary) -> dict[str, Any]:
    """Return the field that makes a message a summary."""
    return {SUMMARY_OF: msgspec.to_builtins(asked.covered)}


def summaries_in(messages: Iterable[ConversationMessage], dropped: Mapping[int, str]) -> Iterator[Summary]:
    """Yield the summaries among the messages of a conversation that comes from elsewhere, in their order."""
    for number, message in enumerate(messages, start=1):
        covered = covered_by(message)
        if covered is not None:
            # One that claims to cover itself, or for what came after it, is not used.
            is_wrong = covered.last >= number
            yield Summary(
                number=number,
                member=message.speaker.role_id,
                first=covered.first,
                last=covered.last,
                size=byte_length(message.content),
                dropped_by=dropped.get(number, "") or ("bullpen" if is_wrong else ""),
            )


def newest(summaries: Iterable[Summary]) -> Summary | None:
    """Return the summary that reaches furthest, of those that were not dropped."""
    return max((one for one in summaries if not one.dropped_by), key=lambda one: (one.last, one.number), default=None)


def usable(
    summaries: Sequence[Summary], *, before: int, hidden: Collection[int], sees_all: Callable[[Covered], bool]
) -> Summary | None:
    """Return the summary that reaches furthest of those that a member may have in a prompt about a message.

    A summary tells of all messages that it covers. So it is for those only who may see every one of them: all came
    before the message, none is hidden, and all are visible to the member.
    """
    possible = (
        one
        for one in summaries
        if one.last < before and not one.dropped_by and not any(number in one.covered for number in hidden)
    )
    for one in sorted(possible, key=lambda one: (one.last, one.number), reverse=True):
        if sees_all(one.covered):
            return one
    return None


def summarizer_of(team: Team, name: str | None, resolve: Callable[[str], Member]) -> Member:
    """Return who writes a summary: the one named, else the team file's, else the lead, if they see everything."""
    if name or team.summaries.summarizer:
        member = resolve(name or team.summaries.summarizer)
        if member.type != "ai":
            raise BullpenError(f"{member.name} is a person: only agents write summaries. Write [SUM UP: NAME].")
        if member.visibility != "all":
            raise BullpenError(
                f'{member.name} cannot write a summary: with visibility = "addressed", it may not see all messages.'
            )
        return member
    lead_first = sorted(team.agents, key=lambda member: member.name not in team.first_to_answer)
    for member in lead_first:
        if member.visibility == "all":
            return member
    raise BullpenError('Nobody can write a summary: each agent has visibility = "addressed".')


def shown_messages(sizes_newest_first: Iterable[int], member: Member) -> int:
    """Return how many of the newest messages a member is shown, as far as that depends on its window."""
    if member.window is not None:
        return member.window
    room, shown = member.window_bytes, 0
    for size in sizes_newest_first:
        room -= size + LINE_BYTES
        if room < 0:
            break
        shown += 1
    return max(shown, SMALLEST_WINDOW)


def doubtful_citations(text: str, covered: Covered) -> str:
    """Return what is odd about the messages that a summary cites, in a sentence; nothing if all is well."""
    cited = dict.fromkeys(int(found) for found in _CITED.findall(text))
    outside = [number for number in cited if number not in covered]
    if not cited:
        return "This summary cites no message."
    if outside:
        numbers = ", ".join(f"#{number}" for number in outside[:5]) + (", …" if len(outside) > 5 else "")
        return f"This summary cites {numbers}, which {'is' if len(outside) == 1 else 'are'} not in {covered.words}."
    return ""


def with_dropped(summaries: Sequence[Summary], number: int, person: str) -> tuple[Summary, ...]:
    """Return the summaries of which one is dropped."""
    return tuple(replace(one, dropped_by=person) if one.number == number else one for one in summaries)


def still_asked(asked: Mapping[str, AskedSummary], turns: Collection[str]) -> dict[str, AskedSummary]:
    """Return which summaries are asked for in turns that wait, run or need a decision."""
    return {turn: one for turn, one in asked.items() if turn in turns}
