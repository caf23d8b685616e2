"""Strangers at the door for browsers: every route with every Host, Origin and key, and requests made of anything."""

import asyncio
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from random import Random
from unittest import mock

import httpx
from msgspec import Struct
from proofs.torture.anything import Anything
from proofs.torture.api_stage import staged
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import ALL_FOUND, Planted, each_found, in_words, one_line
from proofs.torture.socket_client import SocketClient
from starlette.requests import Request
from starlette.types import Receive, Scope, Send
from tests.web.test_guard import HOSTS, KEYS, ORIGINS, OWN_HOST, PLACE, address, expected, headers_for, server

from bullpen.testing.site import Site, site
from bullpen.web import guard
from bullpen.web.app import ROUTES
from bullpen.web.credentials import Keys, id_of
from bullpen.web.guard import Guard
from bullpen.web.identity import OWNER
from bullpen.web.sessions import Sessions

REQUESTS: dict[Size, int] = {"small": 400, "full": 20_000}
"""Requests of somebody who may ask, with anything in them."""
KNOCKS: dict[Size, int] = {"small": 3000, "full": 10**9}
"""At most so many of the table's, in the same process and again through a socket."""
BODIES = {
    "/invite": b"role=owner",
    "/api/tokens": b'{"role": "owner"}',
    "/api/invitations": b'{"role": "owner"}',
}
"""What makes new access, where that is possible."""
LEAST_READ = 0.5
"""Of the requests with a body, so many must get as far as having it read, or they prove little."""


class Knock(Struct, frozen=True):
    """One request of the table."""

    method: str
    path: str
    host: str
    origin: str
    key: str

    @property
    def body(self) -> bytes | None:
        """What it sends, if its method does."""
        return None if self.method != "POST" else b"{}" if self.path.startswith("/api/") else b"text=hi"

    def failure(self, answer: int) -> str:
        """Return what is wrong with an answer, if anything is."""
        wanted = expected(self.method, self.path, self.host, self.origin, self.key)
        asked = f"{self.method} {self.path}, Host {self.host}, Origin {self.origin}, key {self.key}"
        return "" if answer == wanted else f"{asked}: {answer}, not {wanted}"


def run(size: Size, seed: int) -> Outcome:
    """Knock in every way."""
    random = Random(seed)
    inside, outside = _knocks(KNOCKS[size], random), _knocks(KNOCKS[size], random)
    failures = [*asyncio.run(_in_process(inside)), *asyncio.run(_through_a_socket(outside))]
    held = asyncio.run(_revoked_meanwhile(failures))
    asked, read = asyncio.run(_anything(REQUESTS[size], seed, failures))
    if read < LEAST_READ * asked:
        failures.append(f"only {read} of {asked} bodies were read, so these requests prove little")
    return Outcome(
        tried=len(inside) + len(outside) + held + REQUESTS[size],
        unit="requests",
        failures=tuple(failures),
        figures={
            "routes": len(ROUTES),
            "from strangers and others, in the same process": len(inside),
            "from strangers and others, through a socket": len(outside),
            "from owners whose access ended before the body came": held,
            "made of anything, through a socket": REQUESTS[size],
            "of these with a body": asked,
            "whose body was read": read,
        },
    )


def run_with_fault(seed: int) -> Outcome:
    """Knock where nobody guards, and where the guard makes a mistake."""
    return each_found(FAULTS, seed)


async def _open_door(self: Guard, scope: Scope, receive: Receive, send: Send) -> None:
    await self.app(scope, receive, send)


def _unguarded(seed: int) -> list[str]:
    knocks = _knocks(KNOCKS["small"] // 10, Random(seed))
    return [*asyncio.run(_in_process(knocks)), *asyncio.run(_through_a_socket(knocks))]


def _knocked_on_two_routes(_: int) -> list[str]:
    """Knock with every Origin and key."""
    routes, hosts = (("GET", "/people"), ("POST", "/c")), ("own", "prefix")
    ways = product(routes, hosts, ORIGINS, KEYS)
    return asyncio.run(_in_process([Knock(*route, host, origin, key) for route, host, origin, key in ways]))


def _kept_after_revoking(_: int) -> list[str]:
    failures: list[str] = []
    asyncio.run(_revoked_meanwhile(failures))
    return failures


def _knocks(most: int, random: Random) -> list[Knock]:
    """Return the table, or as much of it as wanted."""
    ways = product(ROUTES, HOSTS, ORIGINS, KEYS)
    table = [Knock(method, path, host, origin, key) for (method, path, _), host, origin, key in ways]
    return table if len(table) <= most else random.sample(table, most)


async def _in_process(knocks: list[Knock]) -> list[str]:
    failures = []
    # These come over no connection whose other end could be looked at.
    persons = mock.patch.object(guard, "is_agents_connection", return_value=False)
    with persons, tempfile.TemporaryDirectory(prefix="torture-") as folder:
        async with server(Path(folder)) as (door, keys):
            session = keys.redeem(keys.new_ticket()) or ""
            transport = httpx.ASGITransport(door, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{OWN_HOST}") as client:
                for knock in knocks:
                    # What an earlier answer set must not let this one in.
                    client.cookies.clear()
                    headers = headers_for(keys, session, knock.host, knock.origin, knock.key)
                    url = address(knock.path, keys)
                    answer = await client.request(knock.method, url, headers=headers, content=knock.body)
                    failures.append(knock.failure(answer.status_code))
                    if knock.method == "GET" and "set-cookie" in answer.headers:
                        failures.append(f"{knock.method} {knock.path} lets in whoever looks at it")
    return [f"in process: {failure}" for failure in failures if failure]


async def _through_a_socket(knocks: list[Knock]) -> list[str]:
    """Ask the server that `bullpen serve` runs, over TCP."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        async with site(Path(folder)) as served:
            session = served.keys.redeem(served.keys.new_ticket()) or ""
            return await asyncio.to_thread(_knocked, served, session, knocks)


def _knocked(served: Site, session: str, knocks: list[Knock]) -> list[str]:
    client = SocketClient(served.place.port)
    failures = []
    for knock in knocks:
        headers = _headers(served.keys, session, served.place.port, knock)
        answer = client.ask(knock.method, address(knock.path, served.keys), headers, knock.body)
        failures.append(knock.failure(answer))
    client.close()
    return [f"through a socket: {failure}" for failure in failures if failure]


async def _revoked_meanwhile(failures: list[str]) -> int:
    """Take an owner's access away between the head and the body of a request, on every route; return how many."""
    routes = [(path, endpoint) for method, path, endpoint in ROUTES if method == "POST"]
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        async with site(Path(folder)) as served:
            for path, _ in routes:
                token = served.keys.new_token(OWNER)
                knock = Knock("POST", path, "own", "own", "token")
                status = await _held(served, token, path.format_map(Anyhow()), knock.body or b"")
                left = [*served.keys.sessions(), *served.keys.tickets()]
                if left:
                    failures.append(f"POST {path}: who was revoked meanwhile got {status} and made new access")
                    served.keys.revoke_all()
    return len(routes)


class Anyhow(dict[str, str]):
    """Any name for whatever a path has a place for."""

    def __missing__(self, name: str) -> str:
        return "no-such"


async def _held(served: Site, token: str, path: str, body: bytes) -> str:
    """Send all but the last byte, take the access away, and send that; return the status, if there is an answer."""
    form = BODIES.get(path, body)
    head = f"POST {path} HTTP/1.1\r\nHost: {served.place.hosts[0]}\r\nAuthorization: Bearer {token}\r\n"
    length = f"Content-Length: {len(form)}\r\nConnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", served.place.port)
    writer.write(f"{head}{length}".encode() + form[:-1])
    await writer.drain()
    # Answered on another connection, so the head of this one was read.
    async with httpx.AsyncClient() as client:
        await client.get(f"{served.url}/api/me", headers=served.headers)
    if id_of(token) in served.keys.sessions():
        served.keys.revoke(id_of(token))
    answer = b""
    # What does not read the body was answered, and the connection closed.
    with suppress(OSError):
        writer.write(form[-1:])
        await writer.drain()
        answer = await reader.read()
    writer.close()
    return answer[9:12].decode(errors="replace")


def _headers(keys: Keys, session: str, port: int, knock: Knock) -> dict[str, str]:
    """Return the headers as the table has them, for the port of this server."""
    told = headers_for(keys, session, knock.host, knock.origin, knock.key)
    there = OWN_HOST.rpartition(":")[2]
    moved = {"Cookie": PLACE.cookie, "Host": there, "Origin": there}
    for name, old in moved.items():
        if name in told:
            told[name] = told[name].replace(old, old.replace(there, str(port)))
    return told


async def _anything(requests: int, seed: int, failures: list[str]) -> tuple[int, int]:
    """Send anything about conversations that exist; return how many had a body, and how many of those were read."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, _counting_bodies() as read:
        async with staged(Path(folder)) as stage:
            anything = Anything(stage, seed)
            failures += await asyncio.to_thread(anything.ask, requests)
            with suppress(Exception):
                await stage.served.hub.release(stage.talk)
    return anything.bodies, len(read)


@contextmanager
def _counting_bodies() -> Iterator[list[str]]:
    """Yield the addresses of requests whose body was read, as they come."""
    read: list[str] = []
    original = Request.stream

    def stream(self: Request) -> object:
        if self.method == "POST":
            read.append(self.url.path)
        return original(self)

    with mock.patch.object(Request, "stream", stream):
        yield read


OTHERWISE = r": \d+, not \d+"
FAULTS = {
    "nobody guards the door": Planted(lambda: mock.patch.object(Guard, "__call__", _open_door), _unguarded, OTHERWISE),
    "a Host or an Origin need only begin as ours": Planted(
        one_line(guard._is_one_of, "given[0] in allowed", "given[0].startswith(tuple(allowed))"),
        _knocked_on_two_routes,
        OTHERWISE,
    ),
    "what changes something needs no Origin": Planted(
        one_line(Guard._is_from_us, "return is_program", "return True"), _knocked_on_two_routes, OTHERWISE
    ),
    "a token counts in any header for keys": Planted(
        one_line(Guard._visitor, 'scheme.lower() != "bearer"', "not scheme"), _knocked_on_two_routes, OTHERWISE
    ),
    "every cookie is looked at": Planted(
        one_line(guard.cookies_named, "MOST_COOKIES)", "None)"), _knocked_on_two_routes, OTHERWISE
    ),
    "who is revoked stays": Planted(
        one_line(Sessions.revoke, "sessions=_without(record.sessions, gone), ", ""), _knocked_on_two_routes, OTHERWISE
    ),
    "nobody looks again when the body comes": Planted(
        one_line(guard._Known.receive, "and self._is_over()", "and False"), _kept_after_revoking, "made new access"
    ),
}

TORTURE = Torture(
    name="strangers at the web's door",
    does="Every route is asked with every kind of Host, Origin and key, in the same process and again through a socket "
    "of the running server; then owners lose their access between the head and the body of a request; then somebody "
    "who may ask sends anything about conversations that exist.",
    promise="each gets exactly the answer that is meant for them, nobody gets in by looking at an address, who was "
    "revoked makes no new access, and nothing makes the server fail.",
    run=run,
    fault=in_words(FAULTS),
    seen_as=ALL_FOUND,
    run_with_fault=run_with_fault,
    order=80,
)
