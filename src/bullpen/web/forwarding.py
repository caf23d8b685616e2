"""Forwarding: a request about a conversation of another node is passed on to that node, once.

If the node dies meanwhile, what may be done twice is asked again where the conversation is then.
"""

import asyncio
import re
from contextlib import aclosing, suppress
from http import HTTPStatus
from time import monotonic
from urllib.parse import parse_qs

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bullpen.clock import sleep
from bullpen.errors import BullpenError, ConversationInUse, UnknownConversation
from bullpen.web.conversations import Hub
from bullpen.web.identity import ROLES, visitor
from bullpen.web.nodes import Nodes, Peer
from bullpen.web.passing import Answer, Broken, Kept, NotReached, passed_on
from bullpen.web.responses import problem

PATIENCE_SECONDS = 15.0
"""A frozen node is given up after 5 seconds, and then another one needs a moment."""
PAUSE_SECONDS = 0.1
STREAM = b"text/event-stream"

_CONVERSATION = re.compile(r"/(?:c|api/conversations)/(?P<id>[^/]+)(?P<rest>/.*)?")

NO_ANSWER = "The node that has this conversation does not answer. Try again in a few seconds."
UNKNOWN_END = (
    "The node that has this conversation died before it answered. Look whether what you wanted was done, and try again."
)


def conversation_in(path: str) -> str | None:
    """Return which conversation a path is about."""
    found = _CONVERSATION.fullmatch(path)
    return None if found is None else found["id"]


class Forwarding:
    """An ASGI application around another one, on a node of a cluster."""

    def __init__(self, app: ASGIApp, hub: Hub, nodes: Nodes, kept: Kept) -> None:
        self._app = app
        self._hub = hub
        self._nodes = nodes
        self._kept = kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer here what is here, and pass on what is not."""
        conversation_id = conversation_in(scope["path"]) if scope["type"] == "http" else None
        if conversation_id is None or self._hub.get(conversation_id) is not None:
            await self._app(scope, receive, send)
            return
        peer = await self._elsewhere(conversation_id)
        if peer is None:
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        gone = asyncio.ensure_future(_disconnected(receive))
        passing = asyncio.ensure_future(self._pass_on(conversation_id, peer, scope, body, send))
        try:
            await asyncio.wait([gone, passing], return_when=asyncio.FIRST_COMPLETED)
            if passing.done():
                passing.result()
        finally:
            for task in (gone, passing):
                task.cancel()
            await asyncio.gather(gone, passing, return_exceptions=True)

    async def _pass_on(self, conversation_id: str, peer: Peer, scope: Scope, body: bytes, send: Send) -> None:
        """Ask the node that has the conversation, until one answers."""
        until, told = monotonic() + PATIENCE_SECONDS, NO_ANSWER
        asked: Peer | None = peer
        while monotonic() < until:
            if asked is None:
                await self._app(scope, _whole(body), send)
                return
            try:
                if await self._ask(asked, scope, body, send):
                    return
            except NotReached:
                pass
            except Broken:
                if not may_be_repeated(scope, body):
                    told = UNKNOWN_END
                    break
            before, asked = asked, await self._elsewhere(conversation_id, doubted=asked.number)
            if asked == before:
                await sleep(PAUSE_SECONDS)
        refusal = problem(Request(scope), HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, told))
        await refusal(scope, _whole(b""), send)

    async def _ask(self, peer: Peer, scope: Scope, body: bytes, send: Send) -> bool:
        """Ask a node, and send its answer; return whether it had one."""
        answering = asyncio.ensure_future(self._answer(peer, scope, body, send))
        gone = asyncio.ensure_future(self._nodes.until_gone(peer.number))
        try:
            await asyncio.wait([answering, gone], return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                return answering.result()
        finally:
            for task in (answering, gone):
                task.cancel()
            await asyncio.gather(answering, gone, return_exceptions=True)
        if not scope["state"].get("has_begun"):
            raise Broken("the node is gone")
        await _end(scope, send)
        return True

    async def _answer(self, peer: Peer, scope: Scope, body: bytes, send: Send) -> bool:
        kept = self._kept if may_be_repeated(scope, body) else None
        async with passed_on(peer, scope, body, visitor(), kept) as answer:
            if answer.is_not_here:
                return False
            state = scope.setdefault("state", {})
            state["has_begun"] = True
            _note_stream(scope, answer)
            await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers})
            try:
                async with aclosing(answer.body) as pieces:
                    async for piece in pieces:
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
            except Broken:
                await _end(scope, send)
            else:
                await send({"type": "http.response.body", "body": b""})
        return True

    async def _elsewhere(self, conversation_id: str, *, doubted: int = 0) -> Peer | None:
        """Return the node that has a conversation; None: this one, or nobody."""
        until = monotonic() + PATIENCE_SECONDS
        while monotonic() < until:
            found = await self._nodes.owner_of(conversation_id, doubted=doubted)
            match found:
                case "here" | "nobody":
                    return None
                case "left":
                    try:
                        await self._hub.take_over(conversation_id)
                    except ConversationInUse:
                        await sleep(PAUSE_SECONDS)
                        continue
                    except (BullpenError, UnknownConversation):
                        # It can be read.
                        pass
                    return None
                case "unknown":
                    await sleep(PAUSE_SECONDS)
                case _:
                    return found
        return None


def may_be_repeated(scope: Scope, body: bytes) -> bool:
    """Return whether a request changes nothing the second time: it reads, or says something that has an id."""
    if scope["method"] in ("GET", "HEAD"):
        return True
    found = _CONVERSATION.fullmatch(scope["path"])
    if found is None or found["rest"] != "/messages":
        return False
    if scope["path"].startswith("/api/"):
        with suppress(msgspec.MsgspecError):
            return bool(msgspec.json.decode(body, type=dict[str, object]).get("id"))
        return False
    form = parse_qs(body.decode(errors="replace"))
    is_command = form.get("text", [""])[-1].lstrip().startswith("/")
    return bool(form.get("id", [""])[-1]) and not is_command


def _note_stream(scope: Scope, answer: Answer) -> None:
    """Let the connection know whose stream it is, as for a stream of our own."""
    who = visitor()
    if any(name == b"content-type" and value.startswith(STREAM) for name, value in answer.headers):
        scope["state"]["stream_of"] = (ROLES.index(who.role), who.session) if who else (0, "")


async def _end(scope: Scope, send: Send) -> None:
    """End an answer early. A page opens a stream again by itself; anything else must not look whole."""
    if "stream_of" in scope["state"]:
        await send({"type": "http.response.body", "body": b""})


def _whole(body: bytes) -> Receive:
    """Return what gives a request that was read before once more."""
    waiting = [body]

    async def receive() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        await asyncio.Event().wait()
        raise AssertionError

    return receive


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
