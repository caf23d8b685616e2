"""What an agent did in a turn that has ended, read again from what its program wrote."""

from bullpen.agents.command import command_agent
from bullpen.agents.registry import agent_spec
from bullpen.agents.transcript import TooMuchText, Transcript
from bullpen.errors import UnknownAgent
from bullpen.events import Event
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store, Turn, TurnRecord


def turn_that_said(store: Store, conversation_id: str, message: ConversationMessage) -> Turn | None:
    """Return the turn that ended with a message, or None if a person said it."""
    parent = message.routing.parent_message_id if message.routing else None
    if parent is None:
        return None
    turns = store.turns(conversation_id, message_id=parent)
    return next((turn for turn in turns if turn.reply_id == message.id), None)


def recorded_events(record: TurnRecord) -> list[Event]:
    """Return the events of a turn. It takes its time with a long stream, so it is not for an event loop."""
    events: list[Event] = []
    try:
        spec = agent_spec(record.report.agent_type)
    except UnknownAgent:
        spec = command_agent(record.command or ("?",))
    transcript = Transcript(spec, events.append)
    try:
        transcript.feed(record.stream)
        transcript.finish()
    except TooMuchText:
        pass
    return events
