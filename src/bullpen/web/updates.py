"""Updates of a page: every event of a conversation as a server-sent event, rendered once for all pages.

Everything is HTML that is ready to insert; only what a page appends to, such as a thought, is text.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
from markupsafe import Markup
from msgspec import Struct

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import (
    Answered,
    Asked,
    Checked,
    FilesChanged,
    Lagged,
    Said,
    Trouble,
    TroubleOver,
    TurnBegan,
    TurnEnded,
    TurnEvent,
)
from bullpen.conversation.running_turn import RunningTurn
from bullpen.exchange.visible import visible
from bullpen.file_changes import ChangeRecord
from bullpen.team.team import colours_of
from bullpen.text.numbers import spent
from bullpen.turn_events import Event, Notice, Thinking, TodoList, ToolFinished, ToolStarted
from bullpen.view.activity import WAITS
from bullpen.view.answers import answer_key, answered_words
from bullpen.view.change_reading import ChangeLines, change_line
from bullpen.view.checks import check_shown
from bullpen.view.state import ConversationView, working_view
from bullpen.view.steps import Step, Steps
from bullpen.view.unanswered import unanswered_turn
from bullpen.web.growing_markdown import GrowingMarkdown, Growth
from bullpen.web.templates import rendered

QUICK_CHARACTERS = 4_000
"""A longer message is rendered in a thread, so as not to block the event loop."""

_ENCODE = msgspec.json.Encoder(enc_hook=str).encode


class Update(Struct, frozen=True):
    """A server-sent event for pages."""

    event: str
    data: bytes


async def update(numbered: Numbered, conversation: Conversation) -> Update | None:
    """Return what pages are sent for an event, or None if it changes nothing but the state or a running text."""
    event = numbered.event
    match event:
        case Said() if len(event.message.content) > QUICK_CHARACTERS:
            return await asyncio.to_thread(_said, event, conversation)
        case Said():
            return _said(event, conversation)
        case TurnBegan():
            live = live_turn(RunningTurn(event.turn), GrowingMarkdown(), conversation, ())
            return _json("began", turn=event.turn.id, html=live)
        case TurnEvent():
            return _turn_event(numbered.number, event.turn_id, event.event, conversation)
        case TurnEnded():
            words = spent(event.seconds, event.usage)
            html = "" if event.state == "done" else await _unanswered(event.turn_id, conversation)
            return _json("ended", turn=event.turn_id, state=event.state, spent=words, html=html)
        case Asked():
            return _json("step", turn=event.turn_id, key="", html="", finishes=False, doing=WAITS.word)
        case Answered(was_waiting=True):
            return _answered(event)
        case FilesChanged():
            return _changed(event.record, conversation)
        case Checked(result=result):
            return _json("checked", html=rendered("check.html", one=check_shown(result)))
        case Trouble():
            return Update(
                "trouble", rendered("problem.html", text=event.text, about=event.about, id=conversation.id).encode()
            )
        case TroubleOver(about=about):
            return _json("over", about=about)
        case Lagged():
            return Update("lagged", b"{}")
        case _:
            return None


def live_turn(
    running: RunningTurn, text: GrowingMarkdown, conversation: Conversation, answers: Sequence[Step]
) -> Markup:
    """Return a running turn as a page shows it, with who answered what it asked."""
    steps = [*Steps([*([running.todo] if running.todo else []), *running.steps]), *answers]
    # The page changes the open part as it was sent, so it gets that as text, too.
    said = {"done": Markup("".join(text.done_html)), "open": Markup(text.open_html), "version": text.version}  # noqa: S704
    now = working_view(conversation, running)
    return rendered("live.html", running=running, now=now, steps=steps, **said, **_where(conversation))


def growth_json(turn_id: str, growth: Growth) -> bytes:
    """Return how the text of a running turn has grown."""
    return _ENCODE({"turn": turn_id, **msgspec.structs.asdict(growth)})


def state_html(view: ConversationView) -> Markup:
    """Return the parts of a page that change with the state."""
    return rendered("state.html", state=view)


def _where(conversation: Conversation) -> dict[str, Any]:
    return {"id": conversation.id, "colors": colours_of(conversation.team)}


def _said(said: Said, conversation: Conversation) -> Update:
    html = rendered(
        "message.html",
        sequence=said.sequence,
        message=said.message,
        turn=said.turn_id,
        notes=said.notes,
        # Told when the turn ends.
        spent="",
        unanswered=(),
        rebuilt=said.rebuilt,
        # Known when the folder was looked at.
        changed=ChangeLines(),
        **_where(conversation),
    )
    return _json("said", turn=said.turn_id, sequence=said.sequence, html=html)


def _answered(answered: Answered) -> Update:
    """Return a line below what the turn did: who answered what it asked."""
    key = answer_key(answered.question)
    html = rendered("answered.html", words=answered_words(answered), key=key)
    return _json("step", turn=answered.turn_id, key=key, html=html, finishes=False, doing="thinking")


def _changed(record: ChangeRecord, conversation: Conversation) -> Update | None:
    line = change_line(record)
    return None if line is None else _json("changed", html=rendered("change.html", one=line, id=conversation.id))


async def _unanswered(turn_id: str, conversation: Conversation) -> Markup:
    ended = await conversation.read(unanswered_turn, turn_id)
    return rendered("unanswered.html", ended=ended, id=conversation.id)


def _turn_event(number: int, turn_id: str, event: Event, conversation: Conversation) -> Update | None:
    match event:
        case Thinking():
            return _json("thinking", turn=turn_id, text=visible(event.text))
        case ToolStarted() | ToolFinished() | TodoList() | Notice():
            return _step(number, turn_id, event, conversation.running.get(turn_id))
        case _:
            return None


def _step(
    number: int, turn_id: str, event: ToolStarted | ToolFinished | TodoList | Notice, running: RunningTurn | None
) -> Update | None:
    """Return what is sent to a page for a step that has started or changed."""
    steps = Steps()
    if isinstance(event, ToolFinished) and running is not None:
        calls = [step for step in running.steps if isinstance(step, ToolStarted) and step.id == event.id]
        steps = Steps(calls[-1:])
    step = steps.add(event)
    if step is None:
        return None
    key = f"n{number}" if isinstance(event, Notice) and not event.since else step.key
    html = rendered("step.html", step=step, key=key, turn=turn_id)
    doing = event.name if isinstance(event, ToolStarted) else None
    if step.attempts and running is not None:
        doing = running.doing
    finishes = isinstance(event, ToolFinished)
    return _json("step", turn=turn_id, key=key, html=html, finishes=finishes, doing=doing)


def _json(event: str, **data: object) -> Update:
    return Update(event, _ENCODE(data))
