"""What people answer to a reply that offers answers: entries, as in consequences.py. Pure functions."""

from msgspec.structs import replace

from bullpen.conversation.consequences import person_message
from bullpen.conversation.entry import Change, Entry
from bullpen.conversation.events import Decided
from bullpen.conversation.state import ConversationState
from bullpen.errors import NothingAsked
from bullpen.markers.grammar import read_markers
from bullpen.routing.asks import OpenAsk, asks_without
from bullpen.routing.router import Router
from bullpen.store.base import Decision
from bullpen.team.team import Member

ANSWER, NO_ANSWER = "answer: ", "no answer"
"""How these decisions are stored."""
MOST_STORED = 200


def stored_choice(text: str) -> str:
    """Return how a decision to answer is stored; the message has all of it."""
    return f"{ANSWER}{text}"[:MOST_STORED]


def answered_by(decisions: list[Decision], turn_id: str) -> tuple[str, str] | None:
    """Return who answered a reply, and what; None if nobody did."""
    for one in reversed(decisions):
        if turn_id in one.turns and one.choice.startswith((ANSWER, NO_ANSWER)):
            return one.person, one.choice.removeprefix(ANSWER)
    return None


def answer(
    state: ConversationState, router: Router, person: Member, turn_id: str, text: str, *, message_id: str, at: int
) -> Entry:
    """Return what an answer changes: it is said to the agent that asked, and to nobody else.

    The agent wrote the words of a choice, so a name or a marker in them does nothing.
    """
    member = _open(state, turn_id).member
    to_it = read_markers(f"[NEXT: {member}]")
    entry = person_message(router, state, person, text, to_it, message_id=message_id, at=at, has_mentions=False)
    return replace(entry, events=(Decided(turn_id=turn_id, choice=stored_choice(text)), *entry.events))


def dismiss(state: ConversationState, turn_id: str, *, at: int) -> Entry:
    """Return what it changes to leave a reply without an answer."""
    ask = _open(state, turn_id)
    progress = replace(state.progress, asks=asks_without(state.progress.asks, (ask.member,)))
    return Entry(at=at, change=Change(progress=progress), events=(Decided(turn_id=turn_id, choice=NO_ANSWER),))


def _open(state: ConversationState, turn_id: str) -> OpenAsk:
    ask = state.progress.asks.get(turn_id)
    if ask is None:
        raise NothingAsked(turn_id, "")
    return ask
