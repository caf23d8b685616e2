"""The pages: the list of conversations, one conversation, and the parts of it that are fetched again."""

import asyncio
import io
import secrets
from http import HTTPStatus
from typing import cast

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.events import TurnEvent
from bullpen.exchange.files import FORMATS, Format, write_export
from bullpen.messages import ConversationMessage
from bullpen.store.base import Found, Store, StoredConversation
from bullpen.view.turn_lookup import turn_that_said
from bullpen.web.actions import ACTIONS, COMMANDS, command_in, read_form
from bullpen.web.address import Place
from bullpen.web.credentials import Keys
from bullpen.web.requests import checked_id, hub_of, id_in, number_in, state_asked_for
from bullpen.web.responses import done, form_of, page, sent_to
from bullpen.web.sse import EventStream, position
from bullpen.web.updates import server_sent

PAGE_MESSAGES = 50
LISTED = 100
FOUND = 50
MEDIA_TYPES = {"md": "text/markdown", "html": "text/html", "json": "application/json"}


class Shown(Struct, frozen=True, kw_only=True):
    """A message as a page shows it."""

    sequence: int
    message: ConversationMessage
    turn: str | None


async def enter(request: Request) -> Response:
    """Exchange a ticket for a cookie."""
    keys, place = cast(Keys, request.app.state.keys), cast(Place, request.app.state.place)
    if "prefetch" in request.headers.get("sec-purpose", "") or request.method == "HEAD":
        # A browser that only guesses where its person will go must not use up the ticket.
        raise HTTPException(HTTPStatus.FORBIDDEN, "This address is not to be opened ahead of time.")
    session = keys.redeem(request.path_params["ticket"])
    if session is None:
        raise HTTPException(HTTPStatus.UNAUTHORIZED, "This address was used before, or never was one. Ask for another.")
    answer = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
    answer.set_cookie(place.cookie, session, path="/", httponly=True, samesite="strict", secure=place.scheme == "https")
    request.app.state.on_entry()
    return answer


async def invite(request: Request) -> Response:
    """Make a ticket for another browser."""
    state = request.app.state
    url = f"{cast(Place, state.place).url}/enter/{cast(Keys, state.keys).new_ticket()}"
    return page("invite_part.html" if "hx-request" in request.headers else "invite.html", url=url)


async def conversations(request: Request) -> Response:
    """Show all conversations, or those in which something was said."""
    hub, query = hub_of(request), request.query_params.get("q", "").strip()
    listed = await hub.ask(lambda store: store.conversations())
    found = await hub.ask(lambda store: store.search(query, limit=FOUND)) if query else []
    template = "list_items.html" if request.headers.get("hx-target") == "list" else "list.html"
    return page(
        template,
        conversations=[one for one in listed if not query or _is_about(one, query, found)][:LISTED],
        more=max(0, len(listed) - LISTED) if not query else 0,
        found=found,
        query=query,
        team=hub.team,
        is_open={one.id: hub.get(one.id) is not None for one in listed},
    )


def _is_about(conversation: StoredConversation, query: str, found: list[Found]) -> bool:
    named = f"{conversation.id} {conversation.team} {conversation.team_task or ''}".lower()
    return query.lower() in named or any(one.conversation_id == conversation.id for one in found)


async def begin(request: Request) -> Response:
    """Begin a conversation."""
    room = await hub_of(request).begin()
    return sent_to(request, f"/c/{room.conversation.id}")


async def resume(request: Request) -> Response:
    """Continue a conversation here."""
    room = await hub_of(request).resume(id_in(request))
    return sent_to(request, f"/c/{room.conversation.id}")


async def let_go(request: Request) -> Response:
    """Close a conversation here, so that it can be continued elsewhere."""
    await hub_of(request).let_go(id_in(request))
    return sent_to(request, f"/c/{id_in(request)}")


async def conversation(request: Request) -> Response:
    """Show one conversation."""
    hub, conversation_id = hub_of(request), id_in(request)
    room = hub.get(conversation_id)
    # The number is taken before anything is read, so that nothing can happen in between and be missed.
    number = room.conversation.last_number if room else 0
    around = number_in(request, "at")
    before = None if around is None else around + PAGE_MESSAGES // 2
    # Counted before they are read: what comes in between is no reason to believe that there is more.
    stored = await hub.ask(lambda store: store.conversation(conversation_id))
    messages = await hub.ask(lambda store: _messages(store, conversation_id, before=before))
    state = await state_asked_for(request)
    people = [member for member in state.members if member.type == "human"]
    return page(
        "conversation.html",
        stored=stored,
        state=state,
        number=number,
        messages=messages,
        live=room.at_work() if room else [],
        read_only="" if room else await asyncio.to_thread(hub.why_read_only, stored),
        people=people,
        commands=COMMANDS,
        message_id=secrets.token_hex(8),
        formats=FORMATS,
        ends_early=around is not None and bool(messages) and messages[-1].sequence < stored.messages,
        colors=state.colors,
        id=conversation_id,
    )


async def older(request: Request) -> Response:
    """Show the messages before one."""
    hub, conversation_id = hub_of(request), id_in(request)
    before = number_in(request, "before")
    messages = await hub.ask(lambda store: _messages(store, conversation_id, before=before))
    state = await state_asked_for(request)
    return page("older.html", messages=messages, id=conversation_id, colors=state.colors)


async def newer(request: Request) -> Response:
    """Show what was said after a message: for a page that has missed something, or looks at another process's work."""
    hub, conversation_id = hub_of(request), id_in(request)
    after = number_in(request, "after") or 0
    messages = await hub.ask(lambda store: _messages(store, conversation_id, after=after))
    state = await state_asked_for(request)
    room = hub.get(conversation_id)
    live = room.at_work() if room else []
    return page("newer.html", messages=messages, state=state, live=live, id=conversation_id, colors=state.colors)


async def live(request: Request) -> Response:
    """Show a turn at work as it stands."""
    room = await hub_of(request).need(id_in(request))
    return Response(room.live(request.path_params["turn"]), media_type="text/html")


async def stream(request: Request) -> Response:
    """Send a page everything that happens in a conversation."""
    room = await hub_of(request).need(id_in(request))
    if request.query_params.get("epoch", room.epoch) != room.epoch:
        # It was opened anew since the page was made, so the page's numbers mean nothing any more.
        return Response(server_sent("reload", b"{}"), media_type="text/event-stream")

    async def encode(news: list[Numbered]) -> bytes:
        frames = [await room.frame(numbered) for numbered in news]
        if any(changes_state(numbered) for numbered in news):
            frames.append(await room.state_frame())
        return b"".join(frames)

    return cast(Response, EventStream(room.conversation, encode, after=position(request)))


async def say(request: Request) -> Response:
    """Say something, or do what a command says."""
    room = await hub_of(request).need(id_in(request))
    form = await form_of(request)
    text, sender, message_id = (_field(form, name) for name in ("text", "sender", "id"))
    command = command_in(text)
    if command is None:
        await room.conversation.say(text, sender=sender or None, message_id=checked_id(message_id))
    else:
        action, given = command
        await action.act(room.conversation, given)
    return done(request, f"/c/{room.conversation.id}")


async def act(request: Request) -> Response:
    """Do what a button says."""
    room = await hub_of(request).need(id_in(request))
    action = ACTIONS.get(request.path_params["action"])
    if action is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    form = await form_of(request)
    given = {name: values if name == "turns" else values[-1] for name, values in form.items()}
    await action.act(room.conversation, read_form(action.takes, given))
    return done(request, f"/c/{room.conversation.id}")


async def export(request: Request) -> Response:
    """Send a conversation as a file."""
    hub, conversation_id = hub_of(request), id_in(request)
    file_format = request.path_params["format"]
    if file_format not in FORMATS:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    file = io.StringIO()
    # Not in the store's thread: that would keep the agents waiting.
    await asyncio.to_thread(write_export, hub.store, conversation_id, file, cast(Format, file_format))
    name = f"{conversation_id}.{file_format}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(file.getvalue(), media_type=MEDIA_TYPES[file_format], headers=headers)


def changes_state(numbered: Numbered) -> bool:
    """Return whether the side of the page shows something else after news."""
    return not isinstance(numbered.event, TurnEvent)


def _messages(
    store: Store, conversation_id: str, *, before: int | None = None, after: int | None = None
) -> list[Shown]:
    stored = store.messages(conversation_id, before=before, after=after, limit=PAGE_MESSAGES)
    turns = [turn_that_said(store, conversation_id, one.message) for one in stored]
    return [
        Shown(sequence=one.sequence, message=one.message, turn=None if turn is None else turn.id)
        for one, turn in zip(stored, turns, strict=True)
    ]


def _field(form: dict[str, list[str]], name: str) -> str:
    return form.get(name, [""])[-1]
