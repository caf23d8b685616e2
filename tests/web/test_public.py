"""A proxy in front of the server: its name is known beside the server's own, and nobody is here through it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from msgspec.structs import replace

from bullpen.app import open_store
from bullpen.cli.parser import CommandParser
from bullpen.cli.serve import add_arguments
from bullpen.database import SharedDatabase
from bullpen.web.address import place_of, public_origin
from bullpen.web.app import create_app
from bullpen.web.conversations import Hub
from bullpen.web.credentials import Keys

PUBLIC = "https://bullpen.example"
PLACE = replace(place_of("127.0.0.1", "127.0.0.1", 8423, tls=False), public=PUBLIC)
OWN = "http://127.0.0.1:8423"
pytestmark = pytest.mark.usefixtures("connectionless")


@asynccontextmanager
async def asking(folder: Path) -> AsyncIterator[tuple[httpx.AsyncClient, Keys]]:
    async with open_store(folder / "c.db") as (store, thread):
        keys = Keys()
        app = create_app(Hub(SharedDatabase(store, thread)), keys, PLACE)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=OWN) as client:
            yield client, keys


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("bullpen.example", 200),
        ("127.0.0.1:8423", 200),
        ("localhost:8423", 200),
        ("bullpen.example:8423", 421),
        ("bullpen.example:443", 421),
        ("www.bullpen.example", 421),
        ("bullpen.example.evil.example", 421),
        ("https://bullpen.example", 421),
        ("", 421),
    ],
)
def test_its_name_is_a_host_beside_the_servers_own(host: str, status: int, tmp_path: Path) -> None:
    async def story() -> int:
        async with asking(tmp_path) as (client, keys):
            headers = {"Host": host, "Authorization": f"Bearer {keys.token}"}
            return (await client.get("/api/me", headers=headers)).status_code

    assert asyncio.run(story()) == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (PUBLIC, 303),
        (OWN, 303),
        ("http://bullpen.example", 403),
        ("https://bullpen.example:8443", 403),
        ("https://evil.example", 403),
        ("https://127.0.0.1:8423", 403),
    ],
)
def test_only_its_pages_and_our_own_can_send(origin: str, status: int, tmp_path: Path) -> None:
    async def story() -> int:
        async with asking(tmp_path) as (client, keys):
            headers = {"Host": "bullpen.example", "Origin": origin}
            return (await client.post(f"/enter/{keys.new_ticket()}", headers=headers)).status_code

    assert asyncio.run(story()) == status


@pytest.mark.parametrize(("origin", "is_secure"), [(PUBLIC, True), (OWN, False)])
def test_a_cookie_is_for_the_connection_that_the_browser_has(origin: str, is_secure: bool, tmp_path: Path) -> None:
    async def story() -> str:
        async with asking(tmp_path) as (client, keys):
            headers = {"Host": origin.partition("://")[2], "Origin": origin}
            entered = await client.post(f"/enter/{keys.new_ticket()}", headers=headers)
            return entered.headers["set-cookie"].lower()

    assert ("secure" in asyncio.run(story())) is is_secure


@pytest.mark.parametrize(
    ("host", "others", "status"),
    [
        ("127.0.0.1:8423", {}, 404),
        ("bullpen.example", {}, 403),
        ("127.0.0.1:8423", {"X-Forwarded-For": "192.0.2.7"}, 403),
        ("127.0.0.1:8423", {"Via": "1.1 proxy"}, 403),
    ],
)
def test_nobody_is_on_this_machine_through_a_proxy(
    host: str, others: dict[str, str], status: int, tmp_path: Path
) -> None:
    async def story() -> int:
        async with asking(tmp_path) as (client, keys):
            cookie = f"{PLACE.cookie}={keys.redeem(keys.new_ticket())}"
            return (await client.get("/teams/none", headers={"Host": host, "Cookie": cookie, **others})).status_code

    assert asyncio.run(story()) == status


def test_people_are_given_its_address(tmp_path: Path) -> None:
    async def story() -> str:
        async with asking(tmp_path) as (client, keys):
            headers = {"Authorization": f"Bearer {keys.token}"}
            made = await client.post("/api/invitations", json={"role": "viewer"}, headers=headers)
            return str(made.json()["url"])

    assert asyncio.run(story()).startswith(f"{PUBLIC}/enter/")
    assert not PLACE.is_local
    assert PLACE.port == 8423


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("https://bullpen.example", "https://bullpen.example"),
        ("https://Bullpen.Example:443/", "https://bullpen.example"),
        ("https://bullpen.example:8443", "https://bullpen.example:8443"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_address_is_taken_as_browsers_name_it(given: str, origin: str) -> None:
    assert public_origin(given) == origin


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ("bullpen.example", "an address such as https://"),
        ("ftp://bullpen.example", "an address such as https://"),
        ("https://kai@bullpen.example", "an address such as https://"),
        ("https://bullpen.example/team", "at the root"),
        ("http://bullpen.example", "unencrypted"),
        ("https://bullpen.example:x", "ort"),
    ],
)
def test_what_cannot_be_an_address_is_said(given: str, because: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = CommandParser("bullpen serve", "serve")
    add_arguments(parser)

    with pytest.raises(SystemExit) as ended:
        parser.parse(["--public", given])

    assert ended.value.code == 2
    assert because in capsys.readouterr().err
