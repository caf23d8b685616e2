"""A running server with conversations in it, one in full swing, for whoever asks its API for everything."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bullpen.testing.site import Site, site

MEMBERS = ("max", "sarah")
SAID, SAID_AS = "Do it. [NEXT: max]", "my-own-id-1"
TEAM = """name = "stage"
[[member]]
name = "kim"
[[member]]
name = "max"
command = ["/bin/sh", "-c", "cat > /dev/null; sleep 0.05; echo Done."]
[[member]]
name = "sarah"
command = ["/bin/sh", "-c", "echo I cannot. >&2; exit 3"]
"""
WATCHED_SECONDS = 0.1
WAIT_SECONDS = 60


class Stage(Struct, frozen=True, kw_only=True):
    """A server, and what is on it."""

    served: Site
    loop: asyncio.AbstractEventLoop
    talk: str
    """A conversation with replies and a failed turn, which is always open again."""
    closed: str
    """One that nobody has open."""

    def open_again(self) -> None:
        """Open the conversation if it was closed; from another thread than the server's."""
        asyncio.run_coroutine_threadsafe(self.served.hub.resume(self.talk), self.loop).result(WAIT_SECONDS)


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    """Serve until the context is left."""
    team = folder / "team.toml"
    team.write_text(TEAM, encoding="utf-8")
    async with site(folder, team) as served:
        other = (await served.hub.begin()).conversation
        # One in which nothing was said would be gone.
        await other.note("This one is closed.")
        closed = other.id
        await served.hub.release(closed)
        conversation = (await served.hub.begin()).conversation
        for text, id_ in ((SAID, SAID_AS), ("And you? [NEXT: sarah]", None)):
            await conversation.say(text, message_id=id_)
            await asyncio.wait_for(conversation.until_quiet(), WAIT_SECONDS)
        yield Stage(served=served, loop=asyncio.get_running_loop(), talk=conversation.id, closed=closed)


def leaving_soon(app: ASGIApp) -> ASGIApp:
    """Return an application whose streams come to an end: they go on until somebody leaves, and here nobody would."""

    async def ending(scope: Scope, receive: Receive, send: Send) -> None:
        if not scope.get("path", "").endswith(("/events", "/watch")):
            await app(scope, receive, send)
            return
        is_open = False

        async def receive_soon() -> Message:
            await asyncio.sleep(WATCHED_SECONDS)
            return {"type": "http.disconnect"}

        async def sent(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or bool(message.get("more_body"))
            await send(message)

        await app(scope, receive_soon, sent)
        if is_open:
            await send({"type": "http.response.body", "body": b""})

    return ending


def faulty(app: ASGIApp) -> ASGIApp:
    """Return an application three answers of which are not as described."""
    answers = {
        "/queue": Response(json.dumps([{"turn": 1}]), media_type="application/json"),
        "/events": Response('event: event\nid: 1\ndata: {"number": "one"}\n\n', media_type="text/event-stream"),
        "/task": Response(json.dumps({"error": "Sorry."}), status_code=500, media_type="application/json"),
    }

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        answer = next((answer for end, answer in answers.items() if path.endswith(end)), app)
        await answer(scope, receive, send)

    return answering
