"""From the events of one conversation to a record of each turn: what happened when, and how it ended."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from bullpen.conversation.events import (
    ConversationEvent,
    Dropped,
    Ending,
    Held,
    Queued,
    Said,
    TurnBegan,
    TurnEnded,
    TurnEvent,
)
from bullpen.messages import ConversationMessage
from bullpen.routing.queue import WaitingTurn
from bullpen.turn_events import Event, Started, ToolFinished, ToolStarted, Usage

MOST_TOOLS = 1_000
"""Tools of one turn that are recorded; some agents call thousands."""
MOST_MESSAGES = 1_000
"""Messages that are remembered for the turns that they ask for."""
MILLISECOND = 1_000_000
"""In nanoseconds, in which all times here are."""


class ToolCall(Struct, kw_only=True):
    """One use of a tool."""

    id: str
    name: str
    input: Mapping[str, Any]
    began_at: int
    ended_at: int = 0
    output: str = ""
    failed: bool = False


class TurnRecord(Struct, kw_only=True):
    """One turn; a time that is not known is 0."""

    conversation_id: str
    turn: WaitingTurn
    began_at: int
    """When it was taken out of the queue, and its prompt was begun."""
    ran_at: int
    """When its agent was started."""
    ended_at: int = 0
    """When its agent had ended."""
    stored_at: int = 0
    """When that was stored."""
    said_at: int = 0
    """When the message was said that asked for it; 0 if it was asked for in another way, for example again."""
    queued_at: int = 0
    question: ConversationMessage | None = None
    handed_over_in: str = ""
    """The turn in which an agent said that message."""
    stand_in: str = ""
    """Whose program had it, if not the member's own."""
    reply: str = ""
    model: str = ""
    cli_version: str = ""
    usage: Usage | None = None
    state: Ending = "interrupted"
    error_type: str = ""
    tools: list[ToolCall] = []

    def on_event(self, event: Event, now: int) -> None:
        """Remember what its agent does."""
        match event:
            case Started():
                self.model, self.cli_version = event.model or self.model, event.cli_version or self.cli_version
            case ToolStarted() if len(self.tools) < MOST_TOOLS:
                self.tools.append(ToolCall(id=event.id, name=event.name, input=event.input, began_at=now))
            case ToolFinished():
                for tool in reversed(self.tools):
                    if tool.id == event.id and not tool.ended_at:
                        tool.ended_at, tool.failed, tool.output = now, event.failed, event.output
                        break
            case _:
                pass

    def on_end(self, end: TurnEnded, now: int) -> None:
        """Remember how it ended."""
        self.state, self.usage = end.state, end.usage
        self.ended_at = self.began_at + int(end.seconds * 1000) * MILLISECOND
        # The clock may have been set back.
        self.ended_at = max(self.ended_at, self.ran_at)
        self.stored_at = max(now, self.ended_at)
        if end.state != "done":
            self.error_type = end.state if end.failure is None else end.failure.kind
        for tool in self.tools:
            # One that has not returned ends with its turn.
            tool.ended_at = tool.ended_at or max(tool.began_at, self.ended_at)
            tool.began_at, tool.ended_at = min(tool.began_at, self.ended_at), min(tool.ended_at, self.ended_at)


class _Asked(Struct, frozen=True):
    """A message that may ask for turns."""

    said: Said
    seen_at: int


class Turns:
    """The turns of one conversation."""

    def __init__(self, conversation_id: str) -> None:
        self._conversation_id = conversation_id
        self._asked: dict[str, _Asked] = {}
        self._just_said = ""
        """The message whose turns are queued next."""
        self._queued: dict[str, tuple[int, bool]] = {}
        """When each waiting turn was queued, and whether a message asked for it just before."""
        self._running: dict[str, TurnRecord] = {}
        self._replies: dict[str, str] = {}

    def take(self, event: ConversationEvent, now: int) -> Iterator[TurnRecord]:
        """Take an event, and yield the turn that it ends."""
        if not isinstance(event, Said | Dropped | Held | Queued):
            self._just_said = ""
        match event:
            case Said():
                self._remember(event, now)
            case Queued():
                for turn in event.turns:
                    self._queued[turn.id] = (now, turn.message_id == self._just_said)
            case Dropped():
                for turn in event.turns:
                    self._queued.pop(turn.id, None)
            case TurnBegan():
                self._running[event.turn.id] = self._begun(event, now)
            case TurnEvent():
                if record := self._running.get(event.turn_id):
                    record.on_event(event.event, now)
            case TurnEnded():
                if record := self._running.pop(event.turn_id, None):
                    record.reply = self._replies.pop(event.turn_id, "")
                    record.on_end(event, now)
                    yield record
            case _:
                pass

    def _remember(self, said: Said, now: int) -> None:
        self._just_said = said.message.id
        self._asked[said.message.id] = _Asked(said, now)
        if said.turn_id is not None:
            self._replies = {said.turn_id: said.message.content}
        while len(self._asked) > MOST_MESSAGES:
            del self._asked[next(iter(self._asked))]

    def _begun(self, began: TurnBegan, now: int) -> TurnRecord:
        turn, began_at = began.turn, began.at * MILLISECOND
        asked = self._asked.get(turn.message_id)
        queued_at, is_asked_now = self._queued.pop(turn.id, (0, False))
        record = TurnRecord(
            conversation_id=self._conversation_id,
            turn=turn,
            began_at=began_at,
            ran_at=max(now, began_at),
            queued_at=min(queued_at, began_at),
            stand_in=began.stand_in,
        )
        if asked is not None:
            record.question, record.handed_over_in = asked.said.message, asked.said.turn_id or ""
            if is_asked_now:
                record.said_at = min(asked.said.message.timestamp * MILLISECOND, record.queued_at)
        return record
