"""The guard before every route: it checks Host, Origin, key and body size, and adds safe headers to responses.

It wraps the whole application, so that no route can bypass it. Paths that need no key are listed only here.
"""

from collections.abc import Iterable
from http import HTTPStatus

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bullpen.web.address import Place
from bullpen.web.credentials import Keys
from bullpen.web.responses import API, Problem, json, page

MOST_BODY_BYTES = 1024 * 1024
WITHOUT_KEY = ("/enter/", "/static/")
"""Where a ticket is exchanged for a cookie, and the styles and scripts of the page that says what to do without one."""
SAFE_METHODS = frozenset({"GET", "HEAD"})

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
    "This browser is not signed in. Open the address that `bullpen serve` printed last in its terminal; it works once. "
    "Or use “Invite” in a browser that is signed in.",
)
TOO_LARGE = Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request is larger than {MOST_BODY_BYTES // 1024} KiB.")


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
        refusal = self._refusal(scope["method"], scope["path"], Headers(scope=scope))
        if refusal is not None:
            await _refuse(refusal, scope, receive, _with_headers(send))
            return
        await self.app(scope, _Body(receive).receive, _with_headers(send))

    def _refusal(self, method: str, path: str, headers: Headers) -> Refusal | None:
        if not _is_one_of(headers.getlist("host"), self._place.hosts):
            return WRONG_HOST
        is_program = "authorization" in headers
        if not self._is_from_us(method, headers, is_program=is_program):
            return WRONG_ORIGIN
        if not path.startswith(WITHOUT_KEY) and not self._has_key(headers):
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

    def _has_key(self, headers: Headers) -> bool:
        if given := headers.getlist("authorization"):
            scheme, _, token = given[0].partition(" ")
            return len(given) == 1 and scheme.lower() == "bearer" and self._keys.knows_token(token.strip())
        return self._keys.knows_session(cookies_named(self._place.cookie, headers.getlist("cookie")))


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


def cookies_named(name: str, headers: Iterable[str]) -> list[str]:
    """Return the values of all cookies with that name."""
    pairs = [pair.strip().partition("=") for header in headers for pair in header.split(";")]
    return [value for key, _, value in pairs if key == name]


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
