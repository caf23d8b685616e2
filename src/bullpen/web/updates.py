"""ConversationEvent as a page is sent them: server-sent events, each made once for everybody.

A page gets pieces of text as JSON, and everything else as HTML that is ready to be put in its place.
"""

import asyncio
from typing import Any

import msgspec
from markupsafe import Markup

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Lagged, Said, Trouble, TurnBegan, TurnEnded, TurnEvent
from bullpen.conversation.running_turn import RunningTurn
from bullpen.team.colors import colours_of
from bullpen.turn_events import Event, Notice, TextDelta, Thinking, TodoList, ToolFinished, ToolStarted, Usage
from bullpen.web.state import State, used
from bullpen.web.steps import steps_of
from bullpen.web.templates import rendered
from bullpen.web.visible import visible

QUICK_CHARACTERS = 4_000
"""A longer message is rendered in a thread, so that nobody waits for it."""

_ENCODE = msgspec.json.Encoder(enc_hook=str).encode


def server_sent(event: str, data: bytes, number: int | None = None) -> bytes:
    """Return one server-sent event."""
    # https://html.spec.whatwg.org/multipage/server-sent-events.html
    head = f"event: {event}\n".encode() + (b"" if number is None else b"id: %d\n" % number)
    # All three ends of line would end the data.
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return head + b"".join(b"data: %s\n" % line for line in lines) + b"\n"


def quick_frame(numbered: Numbered, conversation: Conversation) -> bytes | None:
    """Return what a page is sent for one news; None if that takes longer: then it is for message_frame."""
    news = numbered.event
    match news:
        case Said() if len(news.message.content) > QUICK_CHARACTERS:
            return None
        case Said():
            return _said(numbered.number, news, conversation)
        case TurnBegan():
            live = live_turn(RunningTurn(news.turn), numbered.number, conversation)
            return _json("began", numbered.number, turn=news.turn.id, html=live)
        case TurnEvent():
            return _turn_event(numbered.number, news.turn_id, news.event)
        case TurnEnded():
            return _json("ended", numbered.number, turn=news.turn_id, state=news.state)
        case Trouble():
            return server_sent("trouble", rendered("problem.html", text=news.text).encode(), numbered.number)
        case Lagged():
            return server_sent("lagged", b"{}", numbered.number)
        case _:
            # Only the state changes, which follows.
            return b"id: %d\n" % numbered.number


async def message_frame(numbered: Numbered, conversation: Conversation) -> bytes:
    """Return what a page is sent for a long message."""
    assert isinstance(numbered.event, Said)  # noqa: S101 (quick_frame makes all others)
    return await asyncio.to_thread(_said, numbered.number, numbered.event, conversation)


def live_turn(running: RunningTurn, number: int, conversation: Conversation) -> Markup:
    """Return a turn at work as a page shows it, with everything up to a number of news."""
    steps = steps_of([*running.steps, *([running.todo] if running.todo else [])])
    # Half a line is not Markdown yet: it is shown as it was typed.
    lines, line_end, rest = running.text.rpartition("\n")
    said = {"lines": lines + line_end, "rest": rest, "in_code": lines.count("\n```") + lines.startswith("```")}
    return rendered("live.html", running=running, steps=steps, number=number, **said, **_where(conversation))


def state_frame(state: State) -> bytes:
    """Return what a page is sent of the state."""
    return server_sent("state", rendered("state.html", state=state).encode())


def _where(conversation: Conversation) -> dict[str, Any]:
    return {"id": conversation.id, "colors": colours_of(conversation.team)}


def _said(number: int, news: Said, conversation: Conversation) -> bytes:
    html = rendered(
        "message.html",
        sequence=news.sequence,
        message=news.message,
        turn=news.turn_id,
        news=news,
        **_where(conversation),
    )
    return _json("said", number, turn=news.turn_id, sequence=news.sequence, html=html)


def _turn_event(number: int, turn_id: str, event: Event) -> bytes:
    match event:
        case TextDelta():
            return _json("text", number, turn=turn_id, text=visible(event.text))
        case Thinking():
            return _json("thinking", number, turn=turn_id, text=visible(event.text))
        case ToolStarted() | ToolFinished() | TodoList() | Notice():
            step = steps_of([event])[0]
            step.key = step.key if step.key.startswith("t") else f"n{number}"
            doing = event.name if isinstance(event, ToolStarted) else None
            html = rendered("step.html", step=step, turn=turn_id)
            part = isinstance(event, ToolFinished)
            return _json("step", number, turn=turn_id, key=step.key, html=html, finishes=part, doing=doing)
        case Usage():
            spent = used(event)
            return _json("usage", number, turn=turn_id, tokens=spent.tokens, cost=spent.cost_usd)
        case _:
            return b"id: %d\n" % number


def _json(event: str, number: int, **data: object) -> bytes:
    return server_sent(event, _ENCODE(data), number)
