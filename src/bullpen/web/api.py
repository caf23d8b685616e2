"""The JSON API: the same conversations for programs. Each call is a row that says what it takes and what it gives."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.events import ConversationEvent
from bullpen.messages import ConversationMessage
from bullpen.store.base import StoredConversation, StoredMessage
from bullpen.web.actions import ACTIONS, Action
from bullpen.web.requests import checked_id, exact_number_in, hub_of, id_in, state_asked_for
from bullpen.web.responses import json
from bullpen.web.sse import EventStream, position
from bullpen.web.state import InQueue, State
from bullpen.web.updates import server_sent

MOST_MESSAGES = 1_000
DEFAULT_MESSAGES = 50
DEFAULT_FOUND = 20
MOST_FOUND = 200

Endpoint = Callable[[Request], Awaitable[Response]]


class Summary(Struct, frozen=True, kw_only=True):
    """A conversation in a list."""

    id: str
    team: str
    state: str
    is_open: bool
    """Whether this server runs its turns."""
    started_at: int
    last_at: int
    messages: int
    first_words: str
    task: str | None


class Message(Struct, frozen=True, kw_only=True):
    """A message and its place; 1 is the first."""

    sequence: int
    message: ConversationMessage


class Say(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person says."""

    text: str
    sender: str | None = None
    """Needed only if the team has several people."""
    id: str | None = None
    """8 to 64 letters, digits and hyphens of your own: sending it again with the same id is harmless."""


class Hit(Struct, frozen=True, kw_only=True):
    """A message that a search found."""

    conversation: str
    sequence: int
    speaker: str
    timestamp: int
    snippet: str


class Watched(Struct, frozen=True, kw_only=True):
    """One event of a watched conversation, in the data of a server-sent event whose id is the number."""

    number: int
    news: ConversationEvent


class Parameter(Struct, frozen=True, kw_only=True):
    """Something in the query of an address, or in a header."""

    name: str
    purpose: str
    type: str = "integer"
    least: int = 0
    place: str = "query"


class Call(Struct, frozen=True, kw_only=True):
    """One thing that a program can ask for."""

    method: str
    path: str
    summary: str
    endpoint: Endpoint
    gives: Any
    takes: Any = None
    parameters: tuple[Parameter, ...] = ()
    status: int = 200
    again: str = ""
    """What it means that this call is answered with 200, where that is not what it usually is."""
    streams: bool = False


async def list_conversations(request: Request) -> Response:
    """Answer with all conversations."""
    hub = hub_of(request)
    stored = await hub.ask(lambda store: store.conversations())
    return json([_summary(one, is_open=hub.get(one.id) is not None) for one in stored])


async def begin(request: Request) -> Response:
    """Begin a conversation."""
    room = await hub_of(request).begin()
    return json(await room.state(), HTTPStatus.CREATED)


async def read_state(request: Request) -> Response:
    """Answer with how a conversation stands."""
    return json(await state_asked_for(request))


async def resume(request: Request) -> Response:
    """Continue a conversation here."""
    return json(await (await hub_of(request).resume(id_in(request))).state())


async def let_go(request: Request) -> Response:
    """Close a conversation here."""
    await hub_of(request).let_go(id_in(request))
    return await read_state(request)


async def read_messages(request: Request) -> Response:
    """Answer with messages."""
    after, before = exact_number_in(request, "after"), exact_number_in(request, "before")
    limit = exact_number_in(request, "limit", least=1)
    most = min(limit or DEFAULT_MESSAGES, MOST_MESSAGES)
    stored = await hub_of(request).ask(
        lambda store: store.messages(id_in(request), after=after, before=before, limit=most)
    )
    return json([_message(one) for one in stored])


async def say(request: Request) -> Response:
    """Say something."""
    room = await hub_of(request).need(id_in(request))
    given = msgspec.json.decode(await request.body() or b"{}", type=Say)
    stored = await room.conversation.say(given.text, sender=given.sender, message_id=checked_id(given.id))
    return json(_message(stored), HTTPStatus.OK if stored.already_stored else HTTPStatus.CREATED)


async def watch(request: Request) -> Response:
    """Send everything that happens."""
    exact_number_in(request, "after")
    room = await hub_of(request).need(id_in(request))
    return cast(Response, EventStream(room.conversation, _watched, after=position(request)))


async def read_queue(request: Request) -> Response:
    """Answer with the turns that wait."""
    return json((await state_asked_for(request)).queue)


async def search(request: Request) -> Response:
    """Answer with messages in which something was said."""
    query = request.query_params.get("q", "")
    limit = min(exact_number_in(request, "limit", least=1) or DEFAULT_FOUND, MOST_FOUND)
    found = await hub_of(request).ask(lambda store: store.search(query, limit=limit) if query.strip() else [])
    return json(
        [
            Hit(
                conversation=one.conversation_id,
                sequence=one.sequence,
                speaker=one.speaker.role_name,
                timestamp=one.timestamp,
                snippet=one.snippet,
            )
            for one in found
        ]
    )


def _acting(action: Action) -> Endpoint:
    async def act(request: Request) -> Response:
        room = await hub_of(request).need(id_in(request))
        given = msgspec.json.decode(await request.body() or b"{}", type=action.takes)
        await action.act(room.conversation, given)
        return json(await room.state())

    act.__doc__ = action.summary
    return act


async def _watched(news: list[Numbered]) -> bytes:
    return b"".join(
        server_sent("news", msgspec.json.encode(Watched(number=one.number, news=one.event)), one.number) for one in news
    )


def _summary(stored: StoredConversation, *, is_open: bool) -> Summary:
    return Summary(
        id=stored.id,
        team=stored.team,
        state=stored.state,
        is_open=is_open,
        started_at=stored.started_at,
        last_at=stored.last_at,
        messages=stored.messages,
        first_words=stored.first_words,
        task=stored.team_task,
    )


def _message(stored: StoredMessage) -> Message:
    return Message(sequence=stored.sequence, message=stored.message)


ONE = "/api/conversations/{id}"
AFTER = Parameter(name="after", purpose="only what has a higher number")
LAST_SEEN = Parameter(
    name="Last-Event-ID",
    purpose="the same, said by a browser that comes back; it goes first",
    type="string",
    place="header",
)

CALLS = (
    Call(
        method="GET",
        path="/api/conversations",
        summary="List all conversations, the latest first.",
        endpoint=list_conversations,
        gives=list[Summary],
    ),
    Call(
        method="POST",
        path="/api/conversations",
        summary="Begin a conversation of the team that the server was started with.",
        endpoint=begin,
        gives=State,
        status=201,
    ),
    Call(
        method="GET",
        path="/api/search",
        summary="Find what was said.",
        endpoint=search,
        gives=list[Hit],
        parameters=(
            Parameter(
                name="q", purpose="words; what stands in double quotes must occur as it is written", type="string"
            ),
            Parameter(name="limit", purpose=f"at most so many, up to {MOST_FOUND}", least=1),
        ),
    ),
    Call(method="GET", path=ONE, summary="Say how a conversation stands.", endpoint=read_state, gives=State),
    Call(method="POST", path=f"{ONE}/open", summary="Continue a conversation here.", endpoint=resume, gives=State),
    Call(method="POST", path=f"{ONE}/close", summary="Let others continue it.", endpoint=let_go, gives=State),
    Call(
        method="GET",
        path=f"{ONE}/messages",
        summary="Read messages, oldest first: the newest ones, or those after or before one.",
        endpoint=read_messages,
        gives=list[Message],
        parameters=(
            AFTER,
            Parameter(name="before", purpose="only what has a lower number"),
            Parameter(name="limit", purpose=f"at most so many, up to {MOST_MESSAGES}", least=1),
        ),
    ),
    Call(
        method="POST",
        path=f"{ONE}/messages",
        summary="Say something as a person. The answer comes when it is stored; 200 if it was stored before.",
        endpoint=say,
        takes=Say,
        gives=Message,
        status=201,
        again="It was stored before, under the same id.",
    ),
    Call(
        method="GET",
        path=f"{ONE}/watch",
        summary="Watch a conversation: server-sent events. Last-Event-ID or after takes it up again.",
        endpoint=watch,
        gives=Watched,
        parameters=(AFTER, LAST_SEEN),
        streams=True,
    ),
    Call(
        method="GET", path=f"{ONE}/queue", summary="List the turns that wait.", endpoint=read_queue, gives=list[InQueue]
    ),
    *(
        Call(
            method="POST",
            path=f"{ONE}/{action.name}",
            summary=action.summary,
            endpoint=_acting(action),
            takes=action.takes,
            gives=State,
        )
        for action in ACTIONS.values()
    ),
)
