"""Timeline: who spoke when, how long each turn took and what it used, as data."""

from collections.abc import Mapping

from msgspec import Struct

from bullpen.routing.progress import usage_of_turn
from bullpen.store.base import Store, StoredMessage, Turn
from bullpen.team.team import colours_of
from bullpen.view.state import team_of

MOST_MESSAGES = 2_000
MOST_TURNS = 2_000


class TimelineTurn(Struct, frozen=True, kw_only=True):
    """A turn that has started."""

    turn: str
    member: str
    state: str
    start: int
    end: int
    """Of one that still runs: when something was last stored."""
    reply: int | None = None
    """The number of the message that it ended with; None if there is none, or it is long ago."""
    tokens: int = 0
    cost_usd: float | None = None
    is_estimate: bool = False

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.end - self.start) / 1000


class TimelineMessage(Struct, frozen=True, kw_only=True):
    """What a person said."""

    sequence: int
    speaker: str
    at: int
    first_words: str


class Timeline(Struct, frozen=True, kw_only=True):
    """The latest turns and messages of a conversation."""

    began_at: int
    colors: dict[str, str]
    """Each member's colour, those of the team first."""
    turns: tuple[TimelineTurn, ...]
    messages: tuple[TimelineMessage, ...]


def timeline(store: Store, conversation_id: str) -> Timeline:
    """Return the latest two thousand turns, and what people said in the latest two thousand messages."""
    stored = store.conversation(conversation_id)
    started = [turn for turn in store.turns(conversation_id) if turn.started_at is not None][-MOST_TURNS:]
    newest = store.messages(conversation_id, limit=MOST_MESSAGES)
    replies = {one.message.id: one.sequence for one in newest}
    turns = tuple(_turn(turn, stored.last_at, replies) for turn in started)
    messages = tuple(_message(one) for one in newest if one.message.speaker.type != "ai")
    team = team_of(stored)
    colors = colours_of(team) if team else {}
    for name in (*(turn.member for turn in turns), *(message.speaker for message in messages)):
        colors.setdefault(name, "white")
    return Timeline(began_at=stored.started_at, colors=colors, turns=turns, messages=messages)


def _turn(turn: Turn, now: int, replies: Mapping[str, int]) -> TimelineTurn:
    start, used = turn.started_at or turn.queued_at, usage_of_turn(turn.usage)
    return TimelineTurn(
        turn=turn.id,
        member=turn.member,
        state=turn.state,
        start=start,
        end=max(start, turn.ended_at or now),
        reply=None if turn.reply_id is None else replies.get(turn.reply_id),
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        is_estimate=used.is_estimate,
    )


def _message(stored: StoredMessage) -> TimelineMessage:
    message = stored.message
    words = " ".join(message.content[:200].split())[:60]
    return TimelineMessage(
        sequence=stored.sequence, speaker=message.speaker.role_id, at=message.timestamp, first_words=words
    )
