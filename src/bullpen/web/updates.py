"""Updates of a page: every event of a conversation as a server-sent event, rendered once for all pages.

A page gets pieces of text as JSON, and everything else as HTML that is ready to insert.
"""

import asyncio
from typing import Any

import msgspec
from markupsafe import Markup

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Said, Trouble, TurnBegan, TurnEnded, TurnEvent
from bullpen.conversation.running_turn import RunningTurn
from bullpen.team.team import colours_of
from bullpen.turn_events import Event, Notice, TextDelta, Thinking, TodoList, ToolFinished, ToolStarted
from bullpen.view.messages import spent_in_turn
from bullpen.view.state import ConversationView
from bullpen.view.steps import Steps
from bullpen.web.templates import rendered
from bullpen.web.visible import visible

QUICK_CHARACTERS = 4_000
"""A longer message is rendered in a thread, so as not to block the event loop."""

_ENCODE = msgspec.json.Encoder(enc_hook=str).encode


def server_sent(event: str, data: bytes, number: int | None = None) -> bytes:
    """Return one server-sent event."""
    # https://html.spec.whatwg.org/multipage/server-sent-events.html
    head = f"event: {event}\n".encode() + (b"" if number is None else b"id: %d\n" % number)
    # All three kinds of line end would end the data.
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return head + b"".join(b"data: %s\n" % line for line in lines) + b"\n"


def quick_frame(numbered: Numbered, conversation: Conversation) -> bytes | None:
    """Render one event for the page, or return None if it is slow: then message_frame does it in a thread."""
    event = numbered.event
    match event:
        case Said() if len(event.message.content) > QUICK_CHARACTERS:
            return None
        case Said():
            return _said(numbered.number, event, conversation)
        case TurnBegan():
            live = live_turn(RunningTurn(event.turn), numbered.number, conversation)
            return _json("began", numbered.number, turn=event.turn.id, html=live)
        case TurnEvent():
            return _turn_event(numbered.number, event.turn_id, event.event, conversation)
        case TurnEnded():
            return _json(
                "ended",
                numbered.number,
                turn=event.turn_id,
                state=event.state,
                spent=spent_in_turn(event.seconds, event.usage),
            )
        case Trouble():
            return server_sent("trouble", rendered("problem.html", text=event.text).encode(), numbered.number)
        case _:
            # Only the state changes, which is sent next.
            return b"id: %d\n" % numbered.number


def lagged_frame(number: int) -> bytes:
    """Return what a page is sent that has missed events."""
    return server_sent("lagged", b"{}", number)


async def message_frame(numbered: Numbered, conversation: Conversation) -> bytes:
    """Return what is sent to a page for a long message."""
    assert isinstance(numbered.event, Said)  # noqa: S101 (quick_frame makes all others)
    return await asyncio.to_thread(_said, numbered.number, numbered.event, conversation)


def live_turn(running: RunningTurn, number: int, conversation: Conversation) -> Markup:
    """Return a running turn as a page shows it, with everything up to the event with this number."""
    steps = list(Steps([*running.steps, *([running.todo] if running.todo else [])]))
    # Half a line is not Markdown yet: it is shown as it was typed.
    lines, line_end, rest = running.text.rpartition("\n")
    said = {"lines": lines + line_end, "rest": rest, "in_code": lines.count("\n```") + lines.startswith("```")}
    return rendered("live.html", running=running, steps=steps, number=number, **said, **_where(conversation))


def state_frame(view: ConversationView) -> bytes:
    """Return what is sent to a page when the state changes."""
    return server_sent("state", rendered("state.html", state=view).encode())


def _where(conversation: Conversation) -> dict[str, Any]:
    return {"id": conversation.id, "colors": colours_of(conversation.team)}


def _said(number: int, said: Said, conversation: Conversation) -> bytes:
    html = rendered(
        "message.html",
        sequence=said.sequence,
        message=said.message,
        turn=said.turn_id,
        notes=said.notes,
        # Told when the turn ends.
        spent="",
        **_where(conversation),
    )
    return _json("said", number, turn=said.turn_id, sequence=said.sequence, html=html)


def _turn_event(number: int, turn_id: str, event: Event, conversation: Conversation) -> bytes:
    match event:
        case TextDelta():
            return _json("text", number, turn=turn_id, text=visible(event.text))
        case Thinking():
            return _json("thinking", number, turn=turn_id, text=visible(event.text))
        case ToolStarted() | ToolFinished() | TodoList() | Notice():
            return _step(number, turn_id, event, conversation.running.get(turn_id))
        case _:
            return b"id: %d\n" % number


def _step(
    number: int, turn_id: str, event: ToolStarted | ToolFinished | TodoList | Notice, running: RunningTurn | None
) -> bytes:
    """Return what is sent to a page for a step that has started or changed."""
    steps = Steps()
    if isinstance(event, ToolFinished) and running is not None:
        calls = [step for step in running.steps if isinstance(step, ToolStarted) and step.id == event.id]
        steps = Steps(calls[-1:])
    step = steps.add(event)
    if step is None:
        return b"id: %d\n" % number
    key = f"n{number}" if isinstance(event, Notice) else step.key
    html = rendered("step.html", step=step, key=key, turn=turn_id)
    doing = event.name if isinstance(event, ToolStarted) else None
    finishes = isinstance(event, ToolFinished)
    return _json("step", number, turn=turn_id, key=key, html=html, finishes=finishes, doing=doing)


def _json(event: str, number: int, **data: object) -> bytes:
    return server_sent(event, _ENCODE(data), number)
