"""NotOffered: the messages that a turn was not offered, and why."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from bullpen.context.report import SummedUp
from bullpen.errors import InvalidTeam
from bullpen.store.base import Store, Turn
from bullpen.team.reader import read_team
from bullpen.team.team import Member

ONLY_ADDRESSED = "it sees only what it said, what was addressed to it, and what went to everyone"
# Messages that came while a turn waited: more than these are only counted up to here.
MOST_LATER = 200


class NotOffered(Struct, frozen=True, kw_only=True):
    """Messages in a row that a turn was not offered."""

    first: int
    last: int
    why: str

    @property
    def count(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    @property
    def sentence(self) -> str:
        """All of it, for people."""
        which = f"#{self.first}" if self.count == 1 else f"#{self.first} to #{self.last}"
        if self.count == 1:
            return f"1 message ({which}) was not offered: {self.why}."
        return f"{self.count:,} messages ({which}) were not offered: {self.why}."


class Offer(Struct, frozen=True, kw_only=True):
    """What a turn was offered, and what its agent's session had already, by numbers."""

    answered: int
    """The message that it was to answer."""
    context: tuple[int | None, ...]
    """None: the store does not know it."""
    known: tuple[int | None, ...] = ()
    summed_up: SummedUp | None = None
    reasons: Mapping[int, str] = {}
    """Why some messages are not offered."""

    @property
    def numbers(self) -> list[int]:
        """All of them."""
        one = self.summed_up
        summed = () if one is None else range(one.first, one.last + 1)
        # A summary that is not continued is left out of what is summed up.
        given = (number for number in summed if one and (number <= one.after or number not in self.reasons))
        earlier = one.earlier if one else 0
        return sorted({number for number in (*self.known, *self.context, *given, earlier) if number})


def not_offered(store: Store, conversation_id: str, turn: Turn, offer: Offer) -> Iterator[NotOffered]:
    """Yield the earlier messages that it does not know, and those that were said before the turn started."""
    answered, offered = offer.answered, offer.numbers
    member = _member(store.conversation(conversation_id).team_file, turn.member)
    bounds = [0, *(number for number in offered if number < answered), answered]
    for before, after in pairwise(bounds):
        if after - before > 1:
            is_repeated = after == answered and after - before == 2 and len(offered) > 0
            why = _reason(member, len(offer.context), is_oldest=before == 0, is_repeated=is_repeated)
            if offer.known:
                why = _reason_in_session(member, is_oldest=before == 0)
            if offer.summed_up:
                why = f"it was asked to sum up {offer.summed_up.covered}"
            yield from _with_reasons(NotOffered(first=before + 1, last=after - 1, why=why), offer.reasons)
    later = _last_before(store, conversation_id, answered, turn)
    if later > answered and later not in offered:
        why = f"said after #{answered}, which it was to answer"
        yield from _with_reasons(NotOffered(first=answered + 1, last=later, why=why), offer.reasons)


def _with_reasons(found: NotOffered, reasons: Mapping[int, str]) -> Iterator[NotOffered]:
    """Yield the same messages, some of which have a reason of their own."""
    first = found.first
    for number in [*(one for one in sorted(reasons) if found.first <= one <= found.last), found.last + 1]:
        if number > first:
            yield replace(found, first=first, last=number - 1)
        if number <= found.last:
            yield NotOffered(first=number, last=number, why=reasons[number])
        first = number + 1


def _reason(member: Member | None, offered: int, *, is_oldest: bool, is_repeated: bool) -> str:
    if member is None:
        return "outside its window"
    is_full, window = _window(member, offered)
    if is_oldest and is_full:
        return window
    if member.visibility == "addressed":
        return ONLY_ADDRESSED
    if is_repeated and not is_oldest:
        return "the same was said again"
    return window if is_full else "outside its window"


def _reason_in_session(member: Member | None, *, is_oldest: bool) -> str:
    """Return why a message is neither in an agent's session nor new."""
    if member is not None and member.visibility == "addressed":
        return ONLY_ADDRESSED
    return "outside its window when its session began" if is_oldest else "not offered in the turns of its session"


def _window(member: Member, offered: int) -> tuple[bool, str]:
    """Return whether a member's window was full, and how large it is, for people."""
    if member.window is None:
        return member.visibility == "all", f"its window is {member.window_bytes:,} bytes"
    # It may hold up to two more, the requests that led to it; or one less, because the last one was said over again.
    return -1 <= offered - member.window <= 2, f"its window is {member.window}"


def _member(team_file: str, name: str) -> Member | None:
    try:
        return next((member for member in read_team(team_file).members if member.name == name), None)
    except InvalidTeam:
        return None


def _last_before(store: Store, conversation_id: str, asked_by: int, turn: Turn) -> int:
    """Return the place of the last message that was there when a turn started."""
    last = asked_by
    for stored in store.messages(conversation_id, after=asked_by, limit=MOST_LATER):
        # Its reply may have come within the millisecond in which it started.
        if stored.message.timestamp > (turn.started_at or 0) or stored.message.id == turn.reply_id:
            break
        last = stored.sequence
    return last
