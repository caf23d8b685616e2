"""The JSON API: the same conversations for programs. Each row of CALLS has the input and output of a call."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bullpen.check_results import CheckResult
from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.events import ConversationEvent, old_event_json
from bullpen.errors import BullpenError
from bullpen.file_changes import MOST_SENT_FILES, ChangeRecord, FileChange
from bullpen.messages import ConversationMessage
from bullpen.view.activity import ActivityName
from bullpen.view.best_of import Results
from bullpen.view.change_reading import (
    MOST_FILES,
    MOST_PATCHES,
    MOST_RECORDS,
    change_files,
    change_page,
    turn_patch,
)
from bullpen.view.checks import MOST_RESULTS, check_page
from bullpen.view.commands import ACTIONS, Command, run_command
from bullpen.view.decided import Decision, decisions_in
from bullpen.view.entered import entered
from bullpen.view.listing import ConversationSummary, Hit, all_conversations
from bullpen.view.listing import search as search_messages
from bullpen.view.messages import plain_messages
from bullpen.view.state import ConversationView, QueuedTurn
from bullpen.web.access import CONVERSATION as ONE
from bullpen.web.access import OLD_ACTIONS, Endpoint
from bullpen.web.forking import ForkAt, fork_for_program
from bullpen.web.frames import server_sent
from bullpen.web.identity import Identity
from bullpen.web.invitations import Invitation
from bullpen.web.people import NewToken, SignedIn, invite, new_token, read_me, read_sessions, revoke_session
from bullpen.web.requests import checked_id, exact_number_in, hub_of, id_in, number_of, sender_in, truth_in, view_in
from bullpen.web.responses import json
from bullpen.web.results import read_results
from bullpen.web.shown_commands import address_of, lines_of
from bullpen.web.sse import EventStream, position

MOST_MESSAGES = 1_000
DEFAULT_MESSAGES = 50
DEFAULT_FOUND = 20
DEFAULT_CHANGES = 50
DIFF = "text/x-diff"
MOST_FOUND = 200


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
    title: str
    """What a person calls it, else how it begins."""
    first_words: str
    task: str | None
    activity: ActivityName
    """What it does now: it is working, waits for a person, is asleep, or has failed."""
    needs_you: bool
    """Whether it cannot continue without a person."""
    is_archived: bool


class Message(Struct, frozen=True, kw_only=True):
    """A message and its number; 1 is the first."""

    sequence: int
    message: ConversationMessage
    rebuilt: str = ""
    """Why its turn began a new session in the place of the agent's last one."""


class Say(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A message from a person."""

    text: str
    sender: str | None = None
    """Only for an owner, and needed only if the team has several people: everybody else speaks as themselves."""
    id: str | None = None
    """Your own id of 8 to 64 letters, digits and hyphens: sending the message again with the same id is safe."""


class TypedCommand(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command as people type it."""

    text: str
    """For example "/drop 3 4"."""
    sender: str | None = None


class CommandResult(Struct, frozen=True, kw_only=True):
    """What a command did."""

    told: str = ""
    """The text that a person would see."""
    see: str = ""
    """The page to open, if the command shows a page."""
    state: ConversationView


class Acted(ConversationView, frozen=True, kw_only=True):
    """The conversation after an action."""

    told: str = ""
    """The text that a person would see."""


class NumberedEvent(Struct, frozen=True, kw_only=True):
    """One event of a conversation, in the data of a server-sent event whose id is the number."""

    number: int
    event: ConversationEvent


class Watched(Struct, frozen=True, kw_only=True):
    """The same in the format of an earlier version."""

    number: int
    news: dict[str, Any]


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter in the query or in a header."""

    name: str
    purpose: str
    type: str = "integer"
    least: int = 0
    place: str = "query"


class Call(Struct, frozen=True, kw_only=True):
    """One call of the API."""

    method: str
    path: str
    summary: str
    endpoint: Endpoint
    gives: Any
    takes: Any = None
    parameters: tuple[Parameter, ...] = ()
    status: int = 200
    again: str = ""
    """What status 200 means, if it is not the usual status."""
    streams: str = ""
    """The name of each server-sent event, if the response is a stream of them."""
    deprecated: bool = False
    media_type: str = "application/json"


async def list_conversations(request: Request) -> Response:
    """Return all conversations."""
    hub = hub_of(request)
    return json([_summary(one, is_open=hub.get(one.id) is not None) for one in await hub.read(all_conversations)])


async def begin(request: Request) -> Response:
    """Start a conversation."""
    opened = await hub_of(request).begin()
    return json(opened.view(), HTTPStatus.CREATED)


async def read_state(request: Request) -> Response:
    """Return the state of a conversation."""
    return json(await view_in(request))


async def resume(request: Request) -> Response:
    """Continue a conversation here."""
    return json((await hub_of(request).resume(id_in(request))).view())


async def release(request: Request) -> Response:
    """Close a conversation here."""
    await hub_of(request).release(id_in(request))
    return await read_state(request)


async def read_messages(request: Request) -> Response:
    """Return messages."""
    after, before = exact_number_in(request, "after"), exact_number_in(request, "before")
    limit = exact_number_in(request, "limit", least=1)
    most = min(limit or DEFAULT_MESSAGES, MOST_MESSAGES)
    shown = await hub_of(request).read(plain_messages, id_in(request), after=after, before=before, limit=most)
    return json([Message(sequence=one.sequence, message=one.message, rebuilt=one.rebuilt) for one in shown])


async def say(request: Request) -> Response:
    """Send a message."""
    opened = await hub_of(request).require(id_in(request))
    given = msgspec.json.decode(await request.body() or b"{}", type=Say)
    sender = sender_in(opened.conversation, given.sender, given.text)
    stored = await opened.conversation.say(given.text, sender=sender, message_id=checked_id(given.id))
    message = Message(sequence=stored.sequence, message=stored.message)
    return json(message, HTTPStatus.OK if stored.already_stored else HTTPStatus.CREATED)


async def do_command(request: Request) -> Response:
    """Run a typed command."""
    opened = await hub_of(request).require(id_in(request))
    given = msgspec.json.decode(await request.body() or b"{}", type=TypedCommand)
    typed = entered(opened.conversation, given.text, opened.view().decisions).command
    if typed is None:
        raise BullpenError("This is a message, not a command. POST it to messages instead.")
    if typed.command.run is not None:
        told = await run_command(typed, opened.conversation, sender_in(opened.conversation, given.sender))
        return json(CommandResult(told=told, state=opened.view()))
    lines = lines_of(opened, typed)
    see = "" if lines else await address_of(opened.conversation, typed)
    return json(CommandResult(told="\n".join(lines), see=see, state=opened.view()))


async def stream_events(request: Request) -> Response:
    """Stream all events."""
    return await _stream(request, _encoded)


async def watch(request: Request) -> Response:
    """Stream all events in the format of an earlier version."""
    return await _stream(request, _encoded_as_before)


async def _stream(request: Request, encode: Callable[[list[Numbered]], Awaitable[bytes]]) -> Response:
    exact_number_in(request, "after")
    opened = await hub_of(request).require(id_in(request))
    return cast(Response, EventStream(opened.conversation.viewing(position(request)), encode))


async def _encoded(events: list[Numbered]) -> bytes:
    encoded = ((one.number, msgspec.json.encode(NumberedEvent(number=one.number, event=one.event))) for one in events)
    return b"".join(server_sent("event", data, number) for number, data in encoded)


async def _encoded_as_before(events: list[Numbered]) -> bytes:
    encoded = ((one.number, b'{"number":%d,"news":%s}' % (one.number, old_event_json(one.event))) for one in events)
    return b"".join(server_sent("news", data, number) for number, data in encoded)


async def read_queue(request: Request) -> Response:
    """Return the waiting turns."""
    return json((await view_in(request)).queue)


async def read_decisions(request: Request) -> Response:
    """Return what people decided."""
    return json(await hub_of(request).read(decisions_in, id_in(request)))


async def read_changes(request: Request) -> Response:
    """Return what was changed in files."""
    after, limit = exact_number_in(request, "after"), exact_number_in(request, "limit", least=1)
    records = await hub_of(request).read(
        change_page,
        id_in(request),
        turn_id=request.query_params.get("turn", ""),
        after=after or 0,
        limit=limit or DEFAULT_CHANGES,
        patches=truth_in(request, "patch"),
    )
    return json(records)


async def read_changed_files(request: Request) -> Response:
    """Return the files of one change."""
    number = number_of(request.path_params["number"])
    after, limit = exact_number_in(request, "after"), exact_number_in(request, "limit", least=1)
    if number is None:
        raise HTTPException(404)
    read = hub_of(request).read
    return json(await read(change_files, id_in(request), number, after=after or 0, limit=limit or MOST_FILES))


async def read_patch(request: Request) -> Response:
    """Return what a turn changed, as a patch."""
    patch = await hub_of(request).read(turn_patch, id_in(request), request.path_params["turn"])
    return Response(patch.encode(errors="replace"), media_type=DIFF)


async def read_checks(request: Request) -> Response:
    """Return what checks said after turns."""
    after, limit = exact_number_in(request, "after"), exact_number_in(request, "limit", least=1)
    results = await hub_of(request).read(
        check_page,
        id_in(request),
        turn_id=request.query_params.get("turn", ""),
        after=after or 0,
        limit=limit or DEFAULT_CHANGES,
    )
    return json(results)


async def search(request: Request) -> Response:
    """Return the messages that match a search."""
    query = request.query_params.get("q", "")
    limit = min(exact_number_in(request, "limit", least=1) or DEFAULT_FOUND, MOST_FOUND)
    return json(await hub_of(request).read(search_messages, query, limit=limit))


def _acting(command: Command) -> Endpoint:
    async def act(request: Request) -> Response:
        opened = await hub_of(request).require(id_in(request))
        given = msgspec.json.decode(await request.body() or b"{}", type=command.takes)
        told = ""
        if command.run is not None:
            told = await command.run(opened.conversation, given, sender_in(opened.conversation, None))
        return json(Acted(**asdict(opened.view()), told=told))

    act.__doc__ = command.purpose
    return act


def _summary(stored: ConversationSummary, *, is_open: bool) -> Summary:
    return Summary(
        id=stored.id,
        team=stored.team,
        state=stored.state,
        is_open=is_open,
        started_at=stored.started_at,
        last_at=stored.last_at,
        messages=stored.messages,
        title=stored.title,
        first_words=stored.first_words,
        task=stored.task,
        activity=stored.activity,
        needs_you=stored.needs_you,
        is_archived=stored.is_archived,
    )


OLD_NAMES = {old: ACTIONS[new] for old, new in OLD_ACTIONS.items()}
AFTER = Parameter(name="after", purpose="only those with a higher number")
LAST_SEEN = Parameter(
    name="Last-Event-ID",
    purpose="the same, sent by a browser that reconnects; it takes precedence",
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
        summary="Start a conversation with the team that the server was started with.",
        endpoint=begin,
        gives=ConversationView,
        status=201,
    ),
    Call(
        method="GET",
        path="/api/search",
        summary="Search messages.",
        endpoint=search,
        gives=list[Hit],
        parameters=(
            Parameter(
                name="q", purpose="words to find; a phrase in double quotes must occur as it is written", type="string"
            ),
            Parameter(name="limit", purpose=f"at most this many, up to {MOST_FOUND}", least=1),
        ),
    ),
    Call(method="GET", path="/api/me", summary="Read who you are here.", endpoint=read_me, gives=Identity),
    Call(
        method="POST",
        path="/api/invitations",
        summary="Make an address that lets one browser in, once, within an hour.",
        endpoint=invite,
        takes=Identity,
        gives=Invitation,
        status=201,
    ),
    Call(
        method="POST",
        path="/api/tokens",
        summary="Make a token for a program that acts for somebody. It is not shown again.",
        endpoint=new_token,
        takes=Identity,
        gives=NewToken,
        status=201,
    ),
    Call(
        method="GET",
        path="/api/sessions",
        summary="List the browsers and programs that have access, the latest first.",
        endpoint=read_sessions,
        gives=list[SignedIn],
    ),
    Call(
        method="POST",
        path="/api/sessions/{key}/revoke",
        summary="Take the access of a browser or program away.",
        endpoint=revoke_session,
        gives=list[SignedIn],
    ),
    Call(
        method="GET", path=ONE, summary="Read the state of a conversation.", endpoint=read_state, gives=ConversationView
    ),
    Call(
        method="POST",
        path=f"{ONE}/open",
        summary="Continue a conversation here.",
        endpoint=resume,
        gives=ConversationView,
    ),
    Call(
        method="POST",
        path=f"{ONE}/close",
        summary="Close a conversation here, so that another process can continue it.",
        endpoint=release,
        gives=ConversationView,
    ),
    Call(
        method="POST",
        path=f"{ONE}/fork",
        summary="Fork a conversation: begin a new one with its messages up to a number. Returns the state of that one.",
        endpoint=fork_for_program,
        takes=ForkAt,
        gives=ConversationView,
        status=201,
    ),
    Call(
        method="GET",
        path=f"{ONE}/messages",
        summary="Read messages, oldest first: the newest ones, or those after or before one.",
        endpoint=read_messages,
        gives=list[Message],
        parameters=(
            AFTER,
            Parameter(name="before", purpose="only messages with a lower number"),
            Parameter(name="limit", purpose=f"at most this many, up to {MOST_MESSAGES}", least=1),
        ),
    ),
    Call(
        method="POST",
        path=f"{ONE}/messages",
        summary="Send a message as a person. Returns when it is stored; with status 200 if it was stored before.",
        endpoint=say,
        takes=Say,
        gives=Message,
        status=201,
        again="It was stored before, with the same id.",
    ),
    Call(
        method="GET",
        path=f"{ONE}/events",
        summary="Watch a conversation as server-sent events. Last-Event-ID or after resumes after an event.",
        endpoint=stream_events,
        gives=NumberedEvent,
        parameters=(AFTER, LAST_SEEN),
        streams="event",
    ),
    Call(
        method="GET",
        path=f"{ONE}/watch",
        summary="Watch a conversation in the format of an earlier version. Use events instead.",
        endpoint=watch,
        gives=Watched,
        parameters=(AFTER, LAST_SEEN),
        streams="news",
        deprecated=True,
    ),
    Call(
        method="GET",
        path=f"{ONE}/queue",
        summary="List the waiting turns, and what each waits for.",
        endpoint=read_queue,
        gives=list[QueuedTurn],
    ),
    Call(
        method="GET",
        path=f"{ONE}/decisions",
        summary="List what people decided besides speaking, and who did, oldest first.",
        endpoint=read_decisions,
        gives=list[Decision],
    ),
    Call(
        method="GET",
        path=f"{ONE}/changes",
        summary="List what turns and people changed in files and what was taken back, in the order of its numbers.",
        endpoint=read_changes,
        gives=list[ChangeRecord],
        parameters=(
            AFTER,
            Parameter(
                name="turn", purpose="only what is about this turn: its changes, and undoing them", type="string"
            ),
            Parameter(
                name="patch",
                purpose=f"also with the changed lines as a patch; then at most {MOST_PATCHES} at once",
                type="boolean",
            ),
            Parameter(name="limit", purpose=f"at most this many, up to {MOST_RECORDS}", least=1),
        ),
    ),
    Call(
        method="GET",
        path=f"{ONE}/changes/{{number}}/files",
        summary=f"List the files of one change, which may be more than the {MOST_SENT_FILES} that it is listed with.",
        endpoint=read_changed_files,
        gives=list[FileChange],
        parameters=(
            Parameter(name="after", purpose="without this many, which are known already"),
            Parameter(name="limit", purpose=f"at most this many, up to {MOST_FILES}", least=1),
        ),
    ),
    Call(
        method="GET",
        path=f"{ONE}/checks",
        summary="List what checks said after turns that changed files, in the order of their numbers.",
        endpoint=read_checks,
        gives=list[CheckResult],
        parameters=(
            AFTER,
            Parameter(name="turn", purpose="only those after this turn", type="string"),
            Parameter(name="limit", purpose=f"at most this many, up to {MOST_RESULTS:,}", least=1),
        ),
    ),
    Call(
        method="GET",
        path=f"{ONE}/results",
        summary="Read what several did who were asked with [NEXT: a | b]; 409 if nobody was.",
        endpoint=read_results,
        gives=Results,
        parameters=(
            Parameter(name="turn", purpose="the task that this turn belongs to, else the last", type="string"),
        ),
    ),
    Call(
        method="GET",
        path=f"{ONE}/turns/{{turn}}/patch",
        summary="Read what a turn changed as a patch, as git writes it; empty if it changed nothing.",
        endpoint=read_patch,
        gives=str,
        media_type=DIFF,
    ),
    Call(
        method="POST",
        path=f"{ONE}/commands",
        summary="Run a typed command, for example /drop 3 4.",
        endpoint=do_command,
        takes=TypedCommand,
        gives=CommandResult,
    ),
    *(
        Call(
            method="POST",
            path=f"{ONE}/{name}",
            summary=f"{command.purpose[:1].upper()}{command.purpose[1:]}.",
            endpoint=_acting(command),
            takes=command.takes,
            gives=Acted,
            deprecated=name in OLD_NAMES,
        )
        for name, command in {**ACTIONS, **OLD_NAMES}.items()
    ),
)
