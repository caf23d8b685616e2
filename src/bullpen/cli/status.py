"""How a conversation stands: for those who come back to it, and in a line for those who are there."""

from collections.abc import Iterator

from bullpen.cli.plain.transcript import Show
from bullpen.conversation.conversation import Conversation
from bullpen.store.base import Store, Turn
from bullpen.terminal.tables import safe_line

LAST_MESSAGES = 5


async def show_standing(conversation: Conversation, show: Show) -> None:
    """Write the last messages, what ended without a reply, why nothing goes on, and what waits."""
    messages = await conversation.messages(limit=LAST_MESSAGES)
    if messages and messages[0].sequence > 1:
        show.note(f"({messages[0].sequence - 1:,} earlier messages: bullpen sessions show {conversation.id} --all)")
    for stored in messages:
        show.message(stored.message, stored.sequence)
    for turn in conversation.undecided:
        show.undecided(_why(await conversation.read(_turn, turn.id)))
    if conversation.paused is not None:
        show.paused(conversation.paused)
    if conversation.held:
        show.held(conversation.held)
    elif conversation.waiting:
        show.note(f"In the queue: {', '.join(turn.member for turn in conversation.waiting)}")


def status_of(conversation: Conversation) -> str:
    """Return who is at work and who waits, on one line; nothing, if there is nothing to say."""
    return safe_line(" · ".join(_status(conversation)))


def _status(conversation: Conversation) -> Iterator[str]:
    for running in conversation.running.values():
        yield f"{running.turn.member}: {running.doing}, {running.seconds:,.0f} s"
    held = {turn.id for turn in conversation.held}
    if waiting := [turn.member for turn in conversation.waiting if turn.id not in held]:
        yield f"waiting: {', '.join(waiting)}"
    if held:
        yield f"on hold: {', '.join(turn.member for turn in conversation.held)}"
    if undecided := [f"{turn.member} (turn {turn.id})" for turn in conversation.undecided]:
        yield f"your decision: {', '.join(undecided)}"
    if conversation.paused is not None:
        yield "paused"


def _turn(store: Store, conversation_id: str, turn_id: str) -> Turn:
    return store.turn(conversation_id, turn_id)


def _why(turn: Turn) -> str:
    if turn.failure is not None:
        return f"{turn.member} (turn {turn.id}): {turn.failure.message} {turn.failure.hint}".rstrip()
    return f"{turn.member} (turn {turn.id}) was {turn.state} when bullpen ended. It may have changed files."
