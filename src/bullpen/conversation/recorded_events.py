"""The events of a turn, read again from what its program wrote."""

from bullpen.errors import UnknownAgent
from bullpen.store.base import TurnRecord
from bullpen.turn_events import Event


def recorded_events(record: TurnRecord) -> list[Event]:
    """Return the events of a turn. It takes its time with a long stream, so it is not for an event loop."""
    # Listing conversations needs none of these.
    from bullpen.agents.command import command_agent
    from bullpen.agents.driver import Opening
    from bullpen.agents.registry import agent_spec
    from bullpen.agents.transcript import TooMuchText, Transcript

    events: list[Event] = []
    try:
        spec = agent_spec(record.report.agent_type).that_ran(record.command)
    except UnknownAgent:
        spec = command_agent(record.command or ("?",))
    # A driver understands the beginning only if it knows whether a session was continued.
    opening = Opening(prompt=record.prompt, folder="", permissions="ask", session=record.report.session)
    transcript = Transcript(spec, events.append, driver=spec.driver(opening) if spec.driver else None)
    try:
        transcript.feed(record.stream)
        transcript.finish()
    except TooMuchText:
        pass
    return events
