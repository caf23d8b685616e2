"""The guard before every route: it checks Host, Origin, key and body size, and adds safe headers to responses.

It wraps the whole application, so that no route can bypass it. It knows who asks; access.py says what they may do.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from ipaddress import ip_address
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bullpen.callers import UNKNOWN, is_agents_connection
from bullpen.web.access import METRICS, WITHOUT_KEY
from bullpen.web.address import Place
from bullpen.web.credentials import Keys
from bullpen.web.identity import Visitor, set_visitor
from bullpen.web.responses import API, Problem, json, page

MOST_BODY_BYTES = 1024 * 1024
MOST_COOKIES = 4
"""How many with our name are looked at: a browser has one, and a few if other servers of this machine set it, too."""
SAFE_METHODS = frozenset({"GET", "HEAD"})
ENTRANCE = "/enter/"
OF_PROXIES = ("forwarded", "via", "x-forwarded-for", "x-real-ip")
"""Headers that proxies add."""

POLICY = "; ".join(
    [
        "default-src 'none'",
        *("script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'", "form-action 'self'"),
        *("base-uri 'none'", "frame-ancestors 'none'"),
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Not no-referrer: with that, browsers send "Origin: null" for our own forms.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Refusal(Struct, frozen=True):
    """Why a request is refused."""

    status: HTTPStatus
    text: str


WRONG_HOST = Refusal(HTTPStatus.MISDIRECTED_REQUEST, "This server is not at that address.")
WRONG_ORIGIN = Refusal(HTTPStatus.FORBIDDEN, "This was not sent by a page of this server.")
NO_KEY = Refusal(
    HTTPStatus.UNAUTHORIZED,
    "This browser is not signed in. Run `bullpen serve --new-address` where the server runs, and open what it prints; "
    "or ask its owner for an invitation.",
)
TOO_LARGE = Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request is larger than {MOST_BODY_BYTES // 1024} KiB.")


FROM_AGENT = Refusal(
    HTTPStatus.FORBIDDEN, "An agent's program sent this. Only people decide here, in a browser or in a terminal."
)
FROM_NOBODY = Refusal(HTTPStatus.FORBIDDEN, UNKNOWN)


class SignedOut(Exception):
    """Access was taken away while an answer was being sent."""


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: ASGIApp, *, keys: Keys, place: Place) -> None:
        self.app = app
        self._keys = keys
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        headers = Headers(scope=scope)
        who = self._visitor(headers, scope)
        # Another node may have given a key a moment ago.
        if who is None and self._shows_key(headers, scope) and await self._keys.catch_up():
            who = self._visitor(headers, scope)
        set_visitor(who)
        refusal = self._refusal(scope["method"], scope["path"], headers, who)
        if refusal is None and _is_for_people(scope):
            # What has been sent is looked at before who has it in hand: that may change while it is on its way.
            first = await receive()
            refusal = await _refusal_of_sender(scope)
            receive = _Change(first, receive, scope).receive
        if refusal is not None:
            await _refuse(refusal, scope, receive, _with_headers(send))
            return
        known = _Known(self._keys, who, scope, receive, _with_headers(send))
        with contextlib.suppress(SignedOut):
            await self.app(scope, _Body(known.receive).receive, known.send)

    def _refusal(self, method: str, path: str, headers: Headers, who: Visitor | None) -> Refusal | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._place.is_known(hosts[0]):
            return WRONG_HOST
        is_program = "authorization" in headers
        if not self._is_from_us(method, headers, is_program=is_program):
            return WRONG_ORIGIN
        if not path.startswith(WITHOUT_KEY) and who is None:
            return NO_KEY
        length = headers.get("content-length", "0")
        return TOO_LARGE if not length.isdecimal() or int(length) > MOST_BODY_BYTES else None

    def _is_from_us(self, method: str, headers: Headers, *, is_program: bool) -> bool:
        """Return whether one of our pages, a person or a program sent this, and not another site's page."""
        if origins := headers.getlist("origin"):
            return _is_one_of(origins, self._place.origins)
        if method not in SAFE_METHODS:
            # Every browser sends an Origin header with unsafe methods.
            return is_program
        site = headers.get("sec-fetch-site", "none")
        is_visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        return site in ("same-origin", "none") or is_visit

    def _visitor(self, headers: Headers, scope: Scope) -> Visitor | None:
        if given := headers.getlist("authorization"):
            scheme, _, token = given[0].partition(" ")
            if len(given) != 1 or scheme.lower() != "bearer":
                return None
            who = self._keys.of_token(token.strip())
            return self._keys.of_metrics_token(token.strip()) if who is None and scope["path"] == METRICS else who
        who = self._keys.of_cookies(cookies_named(self._place.cookie, headers.getlist("cookie")))
        return None if who is None else replace(who, is_here=is_local(scope) and not self._is_proxied(headers))

    def _shows_key(self, headers: Headers, scope: Scope) -> bool:
        cookies = cookies_named(self._place.cookie, headers.getlist("cookie"))
        return "authorization" in headers or any(cookies) or scope["path"].startswith(ENTRANCE)

    def _is_proxied(self, headers: Headers) -> bool:
        """Return whether a request came through a proxy: that may be here, and the browser elsewhere."""
        return self._place.is_public(headers.get("host", "")) or any(name in headers for name in OF_PROXIES)


class _Known:
    """What is received from somebody and sent to them, as long as they have access: it can be taken away meanwhile."""

    def __init__(self, keys: Keys, who: Visitor | None, scope: Scope, receive: Receive, send: Send) -> None:
        self._keys = keys
        self._who = who
        self._scope = scope
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """Return the next part of a request; it may have taken a minute to come."""
        message = await self._receive()
        if message["type"] == "http.request" and self._is_over():
            raise HTTPException(NO_KEY.status, NO_KEY.text)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer, or end it."""
        if not self._is_over():
            await self._send(message)
            return
        if message["type"] == "http.response.start":
            await _refuse(NO_KEY, self._scope, self._receive, self._send)
        else:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        raise SignedOut

    def _is_over(self) -> bool:
        return self._who is not None and not self._keys.still_knows(self._who)


class _Change:
    """What is received of a request that a person must have sent, to the end."""

    def __init__(self, first: Message, receive: Receive, scope: Scope) -> None:
        self._first: Message | None = first
        self._receive = receive
        self._scope = scope

    async def receive(self) -> Message:
        """Return the next part; the first one is there already."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        message = await self._receive()
        is_last = message["type"] == "http.request" and not message.get("more_body", False)
        if is_last and (refusal := await _refusal_of_sender(self._scope)):
            raise HTTPException(refusal.status, refusal.text)
        return message


class _Body:
    """Counts the bytes received; a request may lack its length, or give a wrong one."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = MOST_BODY_BYTES

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise HTTPException(TOO_LARGE.status, TOO_LARGE.text)
        return message


def is_local(scope: Scope) -> bool:
    """Return whether a request comes from the machine of the server."""
    client, server = scope.get("client"), scope.get("server")
    if client is None:
        return False
    # A browser with the address that the server listens on is on the same machine.
    is_same = server is not None and client[0] == server[0]
    return is_same or ip_address(client[0]).is_loopback


def _is_for_people(scope: Scope) -> bool:
    """Return whether a request on this machine changes anything, or wants to come in."""
    changes = scope["method"] not in SAFE_METHODS or scope["path"].startswith(ENTRANCE)
    return changes and is_local(scope)


async def _refusal_of_sender(scope: Scope) -> Refusal | None:
    """Return why nothing is taken from the program that sends this; None: it is not an agent's."""
    client, server = scope["client"], scope["server"]
    is_agents = await asyncio.to_thread(is_agents_connection, client[1], server[1])
    return FROM_NOBODY if is_agents is None else FROM_AGENT if is_agents else None


def cookies_named(name: str, headers: Iterable[str]) -> Iterator[str]:
    """Yield the values of the first cookies with that name."""
    pairs = (pair.strip().partition("=") for header in headers for pair in header.split(";"))
    return islice((value for key, _, value in pairs if key == name), MOST_COOKIES)


def _is_one_of(given: list[str], allowed: Iterable[str]) -> bool:
    return len(given) == 1 and given[0] in allowed


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    headers = Headers(scope=scope)
    answer: Response = PlainTextResponse(f"{refusal.text}\n", status_code=refusal.status)
    if scope["path"].startswith(API):
        answer = json(Problem(error=refusal.text), refusal.status)
    elif "hx-request" in headers:
        answer = page("problem.html", refusal.status, text=refusal.text)
    elif refusal is NO_KEY and "text/html" in headers.get("accept", ""):
        answer = page("sign_in.html", refusal.status)
    if refusal is NO_KEY:
        answer.headers["WWW-Authenticate"] = "Bearer"
    await answer(scope, receive, send)


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return send_with_headers
