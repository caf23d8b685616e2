"""The state of a conversation: for a person who comes back to it, and on one line for a person who is there."""

from bullpen.cli.plain.transcript import Show
from bullpen.conversation.conversation import Conversation
from bullpen.terminal.tables import safe_line
from bullpen.view.messages import plain_messages
from bullpen.view.state import conversation_view
from bullpen.view.status import status_line
from bullpen.view.words import counted

LAST_MESSAGES = 5


async def show_state(conversation: Conversation, show: Show) -> None:
    """Write the last messages, what needs a decision, and who is waiting."""
    messages = await conversation.read(plain_messages, limit=LAST_MESSAGES)
    if messages and messages[0].sequence > 1:
        earlier = counted(messages[0].sequence - 1, "earlier message")
        show.note(f"({earlier}: bullpen sessions show {conversation.id} --all)")
    for shown in messages:
        show.message(shown.message, shown.sequence)
    view = conversation_view(conversation)
    for decision in view.decisions:
        show.decision(decision)
    if waiting := [turn.member for turn in view.queue if not turn.held]:
        show.note(f"In the queue: {', '.join(waiting)}")


def status_of(conversation: Conversation) -> str:
    """Return who is working and who is waiting, on one safe line; nothing if there is nothing to say."""
    return safe_line(status_line(conversation_view(conversation)))
