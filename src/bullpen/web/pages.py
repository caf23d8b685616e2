"""The pages: the list of conversations, one conversation, and the parts of it that are updated."""

import asyncio
import secrets
from collections.abc import Sequence
from http import HTTPStatus
from typing import cast

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from bullpen.errors import UnknownConversation
from bullpen.exchange.files import FORMATS, Format, export_pieces
from bullpen.view.change_reading import ChangeLines, late_checks, late_lines, lines_beside
from bullpen.view.choices import Decision
from bullpen.view.commands import ACTIONS, read_form, run_command
from bullpen.view.completion import names_of, options_for
from bullpen.view.entered import entered
from bullpen.view.listing import ConversationSummary, Hit, all_conversations, by_urgency, conversation_summary, search
from bullpen.view.messages import message_text, shown_messages
from bullpen.web.downloads import download
from bullpen.web.frames import server_sent
from bullpen.web.identity import takes_part
from bullpen.web.requests import checked_id, hub_of, id_in, number_in, number_of, sender_in, view_in
from bullpen.web.responses import done, form_of, json, page, sent_to
from bullpen.web.shown_commands import shown_at
from bullpen.web.sidebar import sidebar_of
from bullpen.web.sse import EventStream, joined, position
from bullpen.web.teams import path_of

HALF_A_PAGE = 25
LISTED = 100
FOUND = 50
MEDIA_TYPES = {"md": "text/markdown", "html": "text/html", "json": "application/json"}


async def conversations(request: Request) -> Response:
    """Show all conversations, or those that match a search."""
    hub, query = hub_of(request), request.query_params.get("q", "").strip()
    # One in which nothing was said is gone as soon as it is closed.
    everything = [one for one in await hub.read(all_conversations) if one.messages or one.own_title]
    archived = [one for one in everything if one.is_archived]
    is_archive = "archived" in request.query_params
    listed = everything if query else archived if is_archive else by_urgency(everything)
    found = await hub.read(search, query, limit=FOUND) if query else []
    template = "list_items.html" if request.headers.get("hx-target") == "list" else "list.html"
    return page(
        template,
        conversations=[one for one in listed if not query or _is_about(one, query, found)][:LISTED],
        more=max(0, len(listed) - LISTED) if not query else 0,
        found=found,
        titles={hit.conversation: hit.conversation for hit in found} | {one.id: one.title for one in everything},
        query=query,
        team=hub.team,
        archived=0 if query or is_archive else len(archived),
        is_archive=is_archive,
        is_open={one.id: hub.get(one.id) is not None for one in listed},
    )


def _is_about(conversation: ConversationSummary, query: str, found: list[Hit]) -> bool:
    named = f"{conversation.id} {conversation.team} {conversation.title} {conversation.task or ''}".lower()
    return query.lower() in named or any(hit.conversation == conversation.id for hit in found)


async def begin(request: Request) -> Response:
    """Start a conversation, with the server's team or with another one that is known here."""
    key = _field(await form_of(request), "team")
    opened = await hub_of(request).begin(await path_of(hub_of(request), key) if key else None)
    return sent_to(request, f"/c/{opened.conversation.id}")


async def resume(request: Request) -> Response:
    """Continue a conversation here."""
    opened = await hub_of(request).resume(id_in(request))
    return sent_to(request, f"/c/{opened.conversation.id}")


async def release(request: Request) -> Response:
    """Close a conversation here, so that it can be continued elsewhere."""
    hub, conversation_id = hub_of(request), id_in(request)
    await hub.release(conversation_id)
    try:
        await hub.read(conversation_summary, conversation_id)
    except UnknownConversation:
        # Nothing is left of one in which nothing was said.
        return sent_to(request, "/")
    return sent_to(request, f"/c/{conversation_id}")


async def conversation(request: Request) -> Response:
    """Show one conversation."""
    hub, conversation_id = hub_of(request), id_in(request)
    opened = hub.get(conversation_id)
    # The number is read first, so that no event in between can be missed.
    number = opened.feed.number if opened else 0
    around = number_in(request, "at")
    before = None if around is None else around + HALF_A_PAGE
    # Counted before they are read: a message that arrives in between does not mean that there are more.
    stored = await hub.read(conversation_summary, conversation_id)
    messages = await hub.read(shown_messages, conversation_id, before=before)
    changed = await hub.read(lines_beside, conversation_id, messages)
    view = await view_in(request)
    people = [member for member in view.members if member.type == "human"]
    return page(
        "conversation.html",
        stored=stored,
        state=view,
        number=number,
        messages=messages,
        live=await opened.feed.running_turns() if opened else [],
        read_only="" if opened else await asyncio.to_thread(hub.why_read_only, stored),
        people=people,
        takes_part=takes_part([person.name for person in people]),
        message_id=secrets.token_hex(8),
        formats=FORMATS,
        sidebar=await sidebar_of(hub, conversation_id),
        ends_early=around is not None and bool(messages) and messages[-1].sequence < stored.messages,
        changed=changed,
        colors=view.colors,
        id=conversation_id,
    )


async def older(request: Request) -> Response:
    """Show the messages before one."""
    hub, conversation_id = hub_of(request), id_in(request)
    messages = await hub.read(shown_messages, conversation_id, before=number_in(request, "before"))
    changed = await hub.read(lines_beside, conversation_id, messages)
    view = await view_in(request)
    return page("older.html", messages=messages, changed=changed, id=conversation_id, colors=view.colors)


async def newer(request: Request) -> Response:
    """Show the messages after one, for a page that has missed some or watches another process."""
    hub, conversation_id = hub_of(request), id_in(request)
    after = number_in(request, "after") or 0
    # With the last one that the page has: turns may have ended after it without a reply.
    messages = await hub.read(shown_messages, conversation_id, after=max(0, after - 1))
    ended = [turn for shown in messages if shown.sequence <= after for turn in shown.unanswered]
    messages = [shown for shown in messages if shown.sequence > after]
    view = await view_in(request)
    opened = hub.get(conversation_id)
    live = await opened.feed.running_turns() if opened else []
    return page(
        "newer.html",
        messages=messages,
        changed=ChangeLines(),
        changes_since=await hub.read(late_lines, conversation_id, after),
        checks_since=await hub.read(late_checks, conversation_id, after),
        ended_since=ended,
        state=view,
        live=live,
        id=conversation_id,
        colors=view.colors,
    )


async def text(request: Request) -> Response:
    """Return what was said in one message, to copy or quote it."""
    sequence = number_of(request.path_params["sequence"])
    if sequence is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    return PlainTextResponse(await hub_of(request).read(message_text, id_in(request), sequence))


async def stream(request: Request) -> Response:
    """Stream all events of a conversation to a page."""
    opened = await hub_of(request).require(id_in(request))
    if request.query_params.get("epoch", opened.epoch) != opened.epoch:
        # It was reopened since the page was rendered, so the page's numbers are no longer valid.
        return Response(server_sent("reload", b"{}"), media_type="text/event-stream")

    return cast(Response, EventStream(opened.feed.reading(position(request)), joined))


async def attention(request: Request) -> Response:
    """Stream where a person is needed, to all tabs of a browser."""
    hub = hub_of(request)
    # Other nodes know of the rest themselves.
    feed = hub.attention if request.scope.get("state", {}).get("is_of_node") else hub.everywhere
    return cast(Response, EventStream(feed.frames.reading(first=feed.snapshot()), joined))


async def say(request: Request) -> Response:
    """Send a message, or run a command."""
    opened = await hub_of(request).require(id_in(request))
    talk = opened.conversation
    form = await form_of(request)
    text, sender, message_id = (_field(form, name) for name in ("text", "sender", "id"))
    seen = _seen(opened.view().decisions, _field(form, "asked"))
    typed = entered(talk, text, seen, sender_in(talk, sender, text)).command
    if typed is None:
        await talk.say(text, sender=sender_in(talk, sender, text), message_id=checked_id(message_id))
        return done(request, f"/c/{talk.id}")
    if typed.command.run is None:
        return await shown_at(request, opened, typed)
    return done(request, f"/c/{talk.id}", told=await run_command(typed, talk, sender_in(talk, sender)))


async def complete(request: Request) -> Response:
    """Return completions for what a person has typed."""
    talk = (await hub_of(request).require(id_in(request))).conversation
    return json(options_for(request.query_params.get("before", ""), names_of(talk.team)))


async def asks(request: Request) -> Response:
    """Return what Enter would do with what a person has typed: whom it asks, or a line about a command or an answer."""
    opened = await hub_of(request).require(id_in(request))
    talk, form = opened.conversation, await form_of(request)
    text = _field(form, "text")
    seen = _seen(opened.view().decisions, _field(form, "asked"))
    would = entered(talk, text, seen, sender_in(talk, _field(form, "sender"), text))
    return json(would.asked or {"line": would.line, "problem": would.problem is not None})


async def act(request: Request) -> Response:
    """Run the action of a button."""
    talk = (await hub_of(request).require(id_in(request))).conversation
    command = ACTIONS.get(request.path_params["action"])
    if command is None or command.run is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    form = await form_of(request)
    given = {name: values if name == "turns" else values[-1] for name, values in form.items() if name != "sender"}
    told = await command.run(talk, read_form(command.takes, given), sender_in(talk, _field(form, "sender")))
    return done(request, f"/c/{talk.id}", told=told)


async def export(request: Request) -> Response:
    """Send a conversation as a file."""
    hub, conversation_id = hub_of(request), id_in(request)
    file_format = request.path_params["format"]
    if file_format not in FORMATS:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    pieces = export_pieces(hub.database, conversation_id, cast(Format, file_format))
    return await download(pieces, f"{conversation_id}.{file_format}", MEDIA_TYPES[file_format])


def _seen(now: Sequence[Decision], asked: str) -> Sequence[Decision]:
    """Return what a page showed: what of it is open, else the last question. A page that does not say: all."""
    if not asked:
        return now
    try:
        shown = msgspec.json.decode(asked, type=list[tuple[str, str]])
    except msgspec.MsgspecError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from error
    closed = [Decision(kind="question", text="", turn=turn, question=question) for turn, question in shown[-1:]]
    return [one for one in now if (one.turn, one.question) in shown] or closed


def _field(form: dict[str, list[str]], name: str) -> str:
    return form.get(name, [""])[-1]
