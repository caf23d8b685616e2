"""Finding a turn: by what a person types, its number, "last", or "#12"; or by what was said in it."""

from bullpen.errors import BullpenError, UnknownTurn
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store, Turn
from bullpen.text.names import normalized

LAST = "last"
MOST_DIGITS = 15
"""No conversation is that long, and a store could not take the number."""


def find_turn(store: Store, conversation_id: str, reference: str) -> Turn:
    """Return the turn with an id, the latest that started for "last", or the one that ended with message "#12"."""
    try:
        return store.turn(conversation_id, reference)
    except UnknownTurn:
        turns = store.turns(conversation_id)
    if not turns:
        raise BullpenError(f"No agent has had a turn in {conversation_id} yet.")
    if reference == LAST:
        return next((turn for turn in reversed(turns) if turn.started_at is not None), turns[-1])
    if reference.startswith("#"):
        return _ending_with(store, conversation_id, turns, reference)
    raise BullpenError(
        f"There is no turn {reference!r} in {conversation_id}. Its turns go from {turns[0].id} to {turns[-1].id}."
    )


def latest_turns(store: Store, conversation_id: str, most: int) -> list[tuple[str, str]]:
    """Return the ids and members of the turns that started last, the latest first."""
    started = [turn for turn in store.turns(conversation_id) if turn.started_at is not None]
    return [(turn.id, turn.member) for turn in reversed(started[-most:])]


def turn_to_compare(store: Store, conversation_id: str, turn: Turn, reference: str) -> Turn:
    """Return another turn: one with an id, or a member's for the same message, or its last one before this turn."""
    turns = store.turns(conversation_id)
    for other in turns:
        if other.id == reference:
            return other
    place = [other.id for other in turns].index(turn.id)
    started = [
        (number, other)
        for number, other in enumerate(turns)
        if number != place and other.started_at is not None and normalized(other.member) == normalized(reference)
    ]
    for _, other in started:
        if other.message_id == turn.message_id:
            return other
    before = [other for number, other in started if number < place]
    if not before:
        raise BullpenError(
            f"{reference} has had no turn for the same message, and none before turn {turn.id}, in {conversation_id}. "
            "Name a turn, or another member."
        )
    return before[-1]


def turn_that_said(store: Store, conversation_id: str, message: ConversationMessage) -> Turn | None:
    """Return the turn that ended with a message, or None if a person said it."""
    parent = message.routing.parent_message_id if message.routing else None
    if parent is None:
        return None
    turns = store.turns(conversation_id, message_id=parent)
    return next((turn for turn in turns if turn.reply_id == message.id), None)


def turn_before(store: Store, conversation_id: str, member: str, turn_id: str | None = None) -> Turn | None:
    """Return the turn that a member had before another one, or its latest; None if there is none."""
    before: Turn | None = None
    for turn in store.turns(conversation_id):
        if turn.id == turn_id:
            break
        if turn.member == member and turn.started_at is not None:
            before = turn
    return before


def _ending_with(store: Store, conversation_id: str, turns: list[Turn], reference: str) -> Turn:
    """Return the turn whose reply is the message with a number."""
    digits = reference[1:]
    number = int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else 0
    messages = store.messages(conversation_id, after=number - 1, limit=1) if number else []
    for turn in turns:
        if messages and turn.reply_id == messages[0].message.id:
            return turn
    raise BullpenError(f"No turn of {conversation_id} ended with message {reference}. A person may have said it.")
