"""Nothing is answered to a stranger: every route, with every Host, Origin and key there can be."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from bullpen.app import open_store
from bullpen.database import SharedDatabase
from bullpen.testing.site import site
from bullpen.testing.stage import write_team
from bullpen.web.access import NEEDS
from bullpen.web.address import Place, place_of
from bullpen.web.app import ROUTES, create_app
from bullpen.web.conversations import Hub
from bullpen.web.credentials import Keys, id_of
from bullpen.web.guard import HEADERS, MOST_BODY_BYTES, MOST_COOKIES, Guard
from bullpen.web.identity import OWNER

PLACE = place_of("127.0.0.1", "127.0.0.1", 8423, tls=False)
OWN_HOST = "127.0.0.1:8423"

# What each route says to whoever may ask, on a server without a team and without conversations.
ANSWERS: dict[tuple[str, str], int] = {
    ("GET", "/"): 200,
    ("POST", "/c"): 409,
    ("GET", "/enter/{ticket}"): 200,
    ("POST", "/enter/{ticket}"): 303,
    ("POST", "/invite"): 200,
    ("GET", "/people"): 200,
    ("GET", "/usage"): 200,
    ("POST", "/people/{key}/revoke"): 404,
    ("GET", "/static/{name}"): 404,
    ("GET", "/metrics"): 404,
    ("GET", "/attention"): 200,
    ("GET", "/sidebar"): 200,
    ("GET", "/teams"): 200,
    ("GET", "/teams/{key}"): 404,
    ("POST", "/teams/{key}"): 404,
    ("POST", "/teams/{key}/check"): 404,
    ("GET", "/api/openapi.json"): 200,
    ("GET", "/api/conversations"): 200,
    ("POST", "/api/conversations"): 409,
    ("GET", "/api/search"): 200,
    ("GET", "/api/me"): 200,
    # Without a body they are for nobody.
    ("POST", "/api/invitations"): 400,
    ("POST", "/api/tokens"): 400,
    ("GET", "/api/sessions"): 200,
    ("POST", "/api/sessions/{key}/revoke"): 404,
}
NO_SUCH_CONVERSATION = 404
ONE_OF_EACH_KIND = {
    *(("GET", "/"), ("POST", "/c"), ("POST", "/enter/{ticket}"), ("GET", "/static/{name}"), ("POST", "/invite")),
    *(("GET", "/api/me"), ("POST", "/api/tokens"), ("POST", "/api/conversations")),
}
ASKED_BY_ALL = {("GET", "/"), ("POST", "/c")}

HOSTS = {
    "own": OWN_HOST,
    "localhost": "localhost:8423",
    "other": "evil.example",
    "rebound": "evil.example:8423",
    "other port": "127.0.0.1:8424",
    "no port": "127.0.0.1",
    "with a dot": "localhost.:8423",
    "upper case": "LOCALHOST:8423",
    "prefix": "127.0.0.1:8423.evil.example",
    "none": "",
}
GOOD_HOSTS = {"own", "localhost"}
ORIGINS = {
    "absent": None,
    "own": f"http://{OWN_HOST}",
    "localhost": "http://localhost:8423",
    "other": "http://evil.example",
    "null": "null",
    "other port": "http://127.0.0.1:3000",
    "other scheme": f"https://{OWN_HOST}",
    "with path": f"http://{OWN_HOST}/",
}
GOOD_ORIGINS = {"own", "localhost"}
KEYS = (
    *("none", "token", "wrong token", "empty token", "basic", "session", "wrong session", "token as session"),
    *("revoked token", "session after many"),
)
GOOD_KEYS = {"token", "session"}
BROWSERS = {"session"}
PROGRAMS = {"token", "wrong token", "empty token", "basic", "revoked token"}
"""They send an Authorization header, which no browser adds by itself."""


@asynccontextmanager
async def server(folder: Path, keys: Keys | None = None) -> AsyncIterator[tuple[Guard, Keys]]:
    async with open_store(folder / "c.db") as (store, thread):
        keys = keys or Keys()
        hub = Hub(SharedDatabase(store, thread))
        # Its stream would never end.
        hub.attention.frames.close()
        yield create_app(hub, keys, PLACE), keys


def headers_for(keys: Keys, session: str, host: str, origin: str, key: str) -> dict[str, str]:
    headers = {"Host": HOSTS[host]}
    if ORIGINS[origin] is not None:
        headers["Origin"] = ORIGINS[origin] or ""
    cookie = PLACE.cookie
    headers |= {
        "none": {},
        "token": {"Authorization": f"Bearer {keys.token}"},
        "wrong token": {"Authorization": f"Bearer {keys.token[:-1]}"},
        "empty token": {"Authorization": "Bearer "},
        "basic": {"Authorization": f"Basic {keys.token}"},
        "session": {"Cookie": f"a=b; {cookie}={session}"},
        "wrong session": {"Cookie": f"{cookie}={session}x"},
        "token as session": {"Cookie": f"{cookie}={keys.token}"},
        "revoked token": {"Authorization": f"Bearer {revoked(keys) if key == 'revoked token' else ''}"},
        "session after many": {"Cookie": f"{cookie}=x; " * MOST_COOKIES + f"{cookie}={session}"},
    }[key]
    return headers


def revoked(keys: Keys) -> str:
    token = keys.new_token(OWNER)
    keys.revoke(id_of(token))
    return token


def expected(method: str, path: str, host: str, origin: str, key: str) -> int:
    if host not in GOOD_HOSTS:
        return 421
    if origin != "absent" and origin not in GOOD_ORIGINS:
        return 403
    if method == "POST" and origin == "absent" and key not in PROGRAMS:
        return 403
    if not path.startswith(("/enter/", "/static/")) and key not in GOOD_KEYS:
        return 401
    if NEEDS[method, path] == "owner here" and key not in BROWSERS:
        return 403
    return ANSWERS.get((method, path), NO_SUCH_CONVERSATION)


def address(path: str, keys: Keys) -> str:
    return path.format(
        ticket=keys.new_ticket() if "{ticket}" in path else "",
        id="no-such",
        turn="1",
        view="turn-1",
        format="md",
        action="cancel",
        name="no.css",
        sequence="1",
        key="no-such",
        number="1",
        file="0",
    )


def askers(method: str, path: str) -> Iterator[tuple[str, str, str]]:
    """Yield everybody who could ask: with one thing amiss, for one route of each kind two, for two routes anything."""
    most = 3 if (method, path) in ASKED_BY_ALL else 2 if (method, path) in ONE_OF_EACH_KIND else 1
    for one in product(HOSTS, ORIGINS, KEYS):
        amiss = sum(is_ != should for is_, should in zip(one, ("own", "own", "token"), strict=True))
        if amiss <= most:
            yield one


@pytest.mark.usefixtures("connectionless")
@pytest.mark.parametrize("is_full", [False, True])
def test_every_route_answers_exactly_those_who_may_ask(is_full: bool, tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            server(tmp_path) as (app, keys),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{OWN_HOST}") as client,
        ):
            session = keys.redeem(keys.new_ticket())
            assert session is not None
            for method, path, _ in ROUTES:
                # What the last route gave is not to be shown to this one.
                client.cookies.clear()
                if ((method, path) in ONE_OF_EACH_KIND) == is_full:
                    await ask_in_every_way(client, keys, session, method, path)

    asyncio.run(story())


async def ask_in_every_way(client: httpx.AsyncClient, keys: Keys, session: str, method: str, path: str) -> None:
    for host, origin, key in askers(method, path):
        headers = headers_for(keys, session, host, origin, key)
        body = b"{}" if path.startswith("/api/") else b"text=hi"
        request = client.build_request(
            method, address(path, keys), headers=headers, content=body if method == "POST" else None
        )
        answer = await client.send(request)
        assert answer.status_code == expected(method, path, host, origin, key), (method, path, host, origin, key)
        assert HEADERS.items() <= {name: answer.headers.get(name) for name in HEADERS}.items(), (method, path)


def routes_of(app: Guard) -> Iterator[tuple[str, str]]:
    inner = app.app
    assert isinstance(inner, Starlette)
    for route in inner.routes:
        assert isinstance(route, Route), f"{route} is not in the table, so no test knows it"
        yield from ((method, route.path) for method in (route.methods or set()) - {"HEAD"})


def test_the_application_has_no_route_beside_the_table(tmp_path: Path) -> None:
    async def story() -> None:
        async with server(tmp_path) as (app, _):
            assert sorted(routes_of(app)) == sorted((method, path) for method, path, _ in ROUTES)

    asyncio.run(story())


def test_only_what_names_a_conversation_is_unknown_here() -> None:
    unlisted = {path for method, path, _ in ROUTES if (method, path) not in ANSWERS}

    assert all("{id}" in path for path in unlisted)


@pytest.mark.usefixtures("connectionless")
@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "TRACE", "PATCH"])
def test_no_other_method_does_anything(method: str, tmp_path: Path) -> None:
    async def story() -> int:
        async with (
            server(tmp_path) as (app, keys),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{OWN_HOST}") as client,
        ):
            return (await client.request(method, "/", headers={"Authorization": f"Bearer {keys.token}"})).status_code

    assert asyncio.run(story()) == 405


@pytest.mark.usefixtures("connectionless")
@pytest.mark.parametrize(
    ("site_name", "mode", "destination", "status"),
    [
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
        ("cross-site", "navigate", "document", 200),
        ("same-site", "no-cors", "image", 403),
        ("same-site", "cors", "empty", 403),
        ("cross-site", "no-cors", "script", 403),
        ("same-site", "navigate", "iframe", 403),
    ],
)
def test_another_page_can_lead_here_but_not_look(
    site_name: str, mode: str, destination: str, status: int, tmp_path: Path
) -> None:
    """A page on another port of this machine is the "same site", so its requests carry our cookie."""

    async def story() -> int:
        async with (
            server(tmp_path) as (app, keys),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{OWN_HOST}") as client,
        ):
            session = keys.redeem(keys.new_ticket())
            sent = {"Sec-Fetch-Site": site_name, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": destination}
            answer = await client.get("/", headers={"Cookie": f"{PLACE.cookie}={session}", **sent})
            return answer.status_code

    assert asyncio.run(story()) == status


@pytest.mark.parametrize(
    "path", ["/enter/../", "/enter/../c/x", "/enter/..%2f", "/enter//c/x", "/enter/", "/Enter/x", "//"]
)
def test_no_spelling_of_the_entrance_leads_past_the_guard(path: str, tmp_path: Path) -> None:
    async def story() -> bytes:
        async with site(tmp_path) as served:
            host = served.place.hosts[0]
            reader, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            return answer

    answer = asyncio.run(story())

    assert answer.split()[1] in (b"401", b"404")
    assert b"set-cookie" not in answer.lower()


@pytest.mark.usefixtures("connectionless")
def test_a_ticket_lets_one_browser_in_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with server(tmp_path) as (app, keys):
            ticket = keys.new_ticket()
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url=PLACE.url) as first:
                early = await first.get(f"/enter/{ticket}")
                stranger = await first.get("/")
                entered = await first.post(f"/enter/{ticket}", headers={"Origin": PLACE.url})
                home = await first.get("/")
            async with httpx.AsyncClient(transport=transport, base_url=PLACE.url) as second:
                again = await second.post(f"/enter/{ticket}", headers={"Origin": PLACE.url})
                late = await second.get(f"/enter/{ticket}")
            answers = (early, stranger, entered, home, again, late)
            assert [one.status_code for one in answers] == [200, 401, 303, 200, 401, 401]
            assert "set-cookie" not in early.headers
            cookie = entered.headers["set-cookie"].lower()
            assert "httponly" in cookie
            assert "samesite=strict" in cookie
            assert keys.token not in entered.headers["set-cookie"]

    asyncio.run(story())


def test_a_body_may_be_large_but_not_endless(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"answer": True}]})

    async def story() -> list[int]:
        async with (
            site(tmp_path, team) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers) as client,
        ):

            async def endless() -> AsyncIterator[bytes]:
                for _ in range(2 * MOST_BODY_BYTES // 65536):
                    yield b"x" * 65536

            said = await client.post("/c/none/messages", content=b"x" * (MOST_BODY_BYTES + 1))
            unread = await client.post("/api/conversations", content=endless())
            begun = (await client.post("/api/conversations")).json()["id"]
            counted = await client.post(f"/api/conversations/{begun}/messages", content=endless())
            return [said.status_code, unread.status_code, counted.status_code]

    assert asyncio.run(story()) == [413, 201, 413]


@pytest.mark.parametrize(
    "request_text",
    [
        "GET / HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n{key}\r\n\r\n",
        "GET / HTTP/1.0\r\n{key}\r\n\r\n",
        "GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n{key}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nOrigin: http://evil.example\r\n{key}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\n{key}\r\n{key}x\r\n\r\n",
    ],
)
def test_doubled_and_missing_headers_are_refused(request_text: str, tmp_path: Path) -> None:
    async def story() -> bytes:
        async with site(tmp_path) as served:
            host = served.place.hosts[0]
            reader, writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
            key = f"Authorization: Bearer {served.keys.token}"
            writer.write(request_text.format(host=host, key=key).encode())
            await writer.drain()
            status = await reader.readline()
            writer.close()
            return status

    assert asyncio.run(story()).split()[1] in (b"400", b"401", b"403", b"421")


def test_a_web_socket_is_not_even_answered(tmp_path: Path) -> None:
    async def story() -> int:
        async with site(tmp_path) as served, httpx.AsyncClient(base_url=served.url) as client:
            upgrade = {
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Key": "x",
                "Sec-WebSocket-Version": "13",
            }
            return (await client.get("/", headers=upgrade)).status_code

    assert asyncio.run(story()) == 401


def test_the_places_names_are_those_that_were_bound() -> None:
    assert place_of("127.0.0.1", "127.0.0.1", 80, tls=False).hosts == ("127.0.0.1", "localhost")
    assert place_of("::1", "::1", 8080, tls=False).hosts == ("[::1]:8080", "localhost:8080")
    assert place_of("Box.Example", "192.0.2.7", 443, tls=True) == Place(
        scheme="https", hosts=("box.example", "192.0.2.7")
    )
