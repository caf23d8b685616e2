"""Who is revoked can do nothing more, whatever they began before; and nobody is said to be revoked who is not."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import httpx
import pytest
from tests import forked

from bullpen.errors import BullpenError
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import Site, button_of, site
from bullpen.web import credentials, session_file
from bullpen.web.credentials import Keys, id_of
from bullpen.web.guard import MOST_COOKIES, cookies_named
from bullpen.web.identity import GUEST, OWNER, Identity
from bullpen.web.sessions import MOST_INVITATIONS, MOST_OWN_TICKETS, Sessions

KIM = Identity(role="member", person="kim")
NO_ROOM = OSError(28, "No space left on device")


async def held(served: Site, token: str, path: str, body: bytes) -> bytes:
    """Send the head of a request; the body when the access is gone; return the answer."""
    host, port = served.place.hosts[0].rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    length = f"Content-Length: {len(body)}\r\nConnection: close\r\n"
    key = f"Host: {served.place.hosts[0]}\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"POST {path} HTTP/1.1\r\n{key}{length}\r\n{body[:1].decode()}".encode())
    await writer.drain()
    # An answer on another connection: the server has read the head before.
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{served.url}/api/me", headers=served.headers)).status_code == 200
    served.keys.revoke(id_of(token))
    writer.write(body[1:])
    answer = await reader.read()
    writer.close()
    return answer


def test_a_request_that_began_before_does_nothing_after(tmp_path: Path) -> None:
    async def story() -> None:
        async with site(tmp_path) as served:
            answer = await held(served, served.keys.new_token(OWNER), "/api/tokens", b'{"role": "owner"}')

            assert answer.startswith(b"HTTP/1.1 401")
            assert "not signed in" in json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
            assert served.keys.sessions() == {}

    asyncio.run(story())


def test_an_answer_that_was_begun_before_is_not_sent_after(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> tuple[int, str]:
        async with site(tmp_path) as served:
            token = served.keys.new_token(GUEST)

            def slow_search(*_: object, **__: object) -> list[object]:
                served.keys.revoke(id_of(token))
                return []

            monkeypatch.setattr(SqliteStore, "search", slow_search)
            async with httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client:
                answer = await client.get(f"{served.url}/api/search?q=hello")
                return answer.status_code, answer.text

    status, text = asyncio.run(story())
    assert status == 401
    assert "not signed in" in text


def test_who_signs_out_is_told_so_and_is_out(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            site(tmp_path) as served,
            httpx.AsyncClient(base_url=served.url, headers={"Origin": served.url, "Accept": "text/html"}) as browser,
        ):
            await browser.post(served.new_url())
            (own,) = served.keys.sessions()
            answer = await browser.post(f"/people/{own}/revoke")
            assert "This browser is not signed in" in answer.text
            assert (await browser.get("/")).status_code == 401

    asyncio.run(story())


def test_an_address_that_nobody_used_is_listed_and_can_be_revoked(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            site(tmp_path) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers) as owner,
            httpx.AsyncClient(base_url=served.url) as stranger,
        ):
            invited = (await owner.post("/api/invitations", json={"role": "viewer"})).json()["url"]
            (one,) = (await owner.get("/api/sessions")).json()
            assert [one["kind"], one["role"], one["is_you"]] == ["address", "viewer", False]
            assert 0 < one["ends_at"] - one["began_at"] <= 3_601_000
            assert "Addresses that nobody has used yet" in (await owner.get("/people")).text
            await owner.post(f"/people/{one['id']}/revoke")
            assert (await stranger.post(invited, headers=button_of(invited))).status_code == 401
            assert "Addresses that" not in (await owner.get("/people")).text

    asyncio.run(story())


def test_revoking_all_takes_unused_addresses_too(tmp_path: Path) -> None:
    keys, other = (Keys(sessions=Sessions(tmp_path / "s")) for _ in range(2))
    tickets = [keys.new_ticket(), keys.new_invitation(KIM, 60)]
    token = keys.new_token(KIM)

    assert len(other.revoke_all()) == 3
    assert [keys.redeem(ticket) for ticket in tickets] == [None, None]
    assert keys.of_token(token) is None
    assert other.revoke_all() == []


def test_no_invitation_dies_because_of_others(tmp_path: Path) -> None:
    keys = Keys(sessions=Sessions(tmp_path / "s"))
    invitations = [keys.new_invitation(KIM, 60) for _ in range(MOST_INVITATIONS)]

    with pytest.raises(BullpenError, match=f"{MOST_INVITATIONS} invitations have not been used yet"):
        keys.new_invitation(KIM, 60)
    own = [keys.new_ticket() for _ in range(MOST_OWN_TICKETS + 1)]

    assert [keys.identity_of(ticket) for ticket in own[:2]] == [None, OWNER]
    assert all(keys.identity_of(ticket) == KIM for ticket in invitations)
    assert keys.redeem(invitations[0])
    assert keys.new_invitation(KIM, 60)


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise NO_ROOM

    monkeypatch.setattr(session_file, "write_private_file", full)


def test_a_full_disk_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys(sessions=Sessions(tmp_path / "s"))
    first, second = keys.new_ticket(), keys.new_ticket()
    with monkeypatch.context() as patched:
        full_disk(patched)
        cookies = [keys.redeem(ticket) for ticket in (first, second)]
        assert [keys.redeem(ticket) for ticket in (first, second)] == [None, None]
        assert all(cookie and keys.of_cookies([cookie]) for cookie in cookies)
        # What another process wrote meanwhile is read, and nothing that could not be stored is forgotten.
        (tmp_path / "s").write_text((tmp_path / "s").read_text() + "\n")
        assert all(cookie and keys.of_cookies([cookie]) for cookie in cookies)
        assert keys.redeem(first) is None
    assert len(Keys(sessions=Sessions(tmp_path / "s")).sessions()) == 0

    keys.new_token(KIM)

    again = Keys(sessions=Sessions(tmp_path / "s"))
    assert all(cookie and again.of_cookies([cookie]) for cookie in cookies)
    assert again.tickets() == {}


def test_what_could_not_be_revoked_for_good_is_said_and_is_out_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = Keys(sessions=Sessions(tmp_path / "s"))
    token = keys.new_token(KIM)
    with monkeypatch.context() as patched:
        full_disk(patched)
        with pytest.raises(BullpenError, match=r"could not be stored in .*: No space left on device"):
            keys.revoke(id_of(token))

    assert keys.of_token(token) is None
    assert Keys(sessions=Sessions(tmp_path / "s")).of_token(token)
    keys.new_token(GUEST)
    keys.ensure_stored()
    assert Keys(sessions=Sessions(tmp_path / "s")).of_token(token) is None


# As on a full disk: no file may grow beyond this, and nothing ends us for trying.
FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
from bullpen.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


def on_a_full_disk(folder: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-c", FULL, "serve", *words, "--db", str(folder / "c.db")]
    # A pipe is not a file that grows.
    return forked.run(command, capture_output=True, check=False, timeout=60, env=os.environ, cwd=folder)


@pytest.mark.parametrize("given", ["all", "one"])
def test_the_command_does_not_say_revoked_when_it_is_not_so(given: str, tmp_path: Path) -> None:
    keys = Keys(sessions=Sessions(tmp_path / "c.db.sessions"))
    token = keys.new_token(OWNER)

    done = on_a_full_disk(tmp_path, "--revoke", id_of(token) if given == "one" else given)

    assert done.returncode == 1
    assert done.stdout == b""
    assert b"could not be stored" in done.stderr
    assert keys.of_token(token)


def test_the_command_prints_no_address_that_nobody_knows(tmp_path: Path) -> None:
    async def story() -> "subprocess.CompletedProcess[bytes]":
        async with site(tmp_path) as served:
            kept = Sessions(tmp_path / "c.db.sessions")
            kept.remember_place(served.place.port, served.url)
            return await asyncio.to_thread(on_a_full_disk, tmp_path, "--new-address")

    done = asyncio.run(story())
    assert done.returncode == 1
    assert b"/enter/" not in done.stdout
    assert b"could not be stored" in done.stderr


def test_revoking_nobody_serves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bullpen", "serve", "--no-open", "--revoke", "", "--db", str(tmp_path / "c.db")]

    done = forked.run(command, capture_output=True, check=False, timeout=60, cwd=tmp_path)

    assert done.returncode == 1
    assert b"has the id ''" in done.stderr


def test_a_stranger_cannot_make_us_look_at_thousands_of_cookies(tmp_path: Path) -> None:
    async def story() -> list[int]:
        async with site(tmp_path) as served, httpx.AsyncClient(base_url=served.url) as client:
            cookies = "; ".join([f"{served.place.cookie}=a"] * 3000)
            with (
                mock.patch.object(session_file, "_version_of", wraps=session_file._version_of) as looked,
                mock.patch.object(credentials, "_hash_of", wraps=credentials._hash_of) as hashed,
            ):
                answer = await client.get("/", headers={"Cookie": cookies})
            return [answer.status_code, looked.call_count, hashed.call_count]

    assert asyncio.run(story()) == [401, 1, MOST_COOKIES]


def test_the_first_cookies_of_our_name_are_looked_at() -> None:
    headers = ["a=1; us=1; us=2", "b=us; us=3; us=4; us=5"]

    assert list(cookies_named("us", headers)) == ["1", "2", "3", "4"]
