"""Sessions: a browser that was let in stays in, also after a restart, and the disk holds no secret."""

import asyncio
import os
import time
from pathlib import Path

import httpx
import pytest

from bullpen.testing.site import site
from bullpen.web.credentials import Keys
from bullpen.web.sessions import LIFETIME_SECONDS, MOST_SESSIONS, Sessions, sessions_beside


def test_a_browser_is_still_signed_in_after_a_restart(tmp_path: Path) -> None:
    async def story() -> list[int]:
        async with httpx.AsyncClient() as browser:
            async with site(tmp_path) as served:
                entered = await browser.get(served.new_url(), follow_redirects=True)
                port = served.place.port
            async with site(tmp_path, port=port) as served:
                again = await browser.get(served.url)
                stranger = await browser.get(served.url, headers={"Cookie": "none"})
        return [entered.status_code, again.status_code, stranger.status_code]

    assert asyncio.run(story()) == [200, 200, 401]


def test_the_file_is_private_and_holds_only_hashes(tmp_path: Path) -> None:
    file = sessions_beside(tmp_path / "conversations.db")
    keys = Keys(sessions=Sessions(file))

    session = keys.redeem(keys.new_ticket(is_owner=True))

    assert session is not None
    assert file.stat().st_mode & 0o777 == 0o600
    assert session not in file.read_text()
    assert Keys(sessions=Sessions(file)).knows_session([session])
    assert Keys(sessions=Sessions(file)).knows_owner([session])


def test_a_session_ends_after_a_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Sessions(tmp_path / "s")
    kept.add("hash")
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + LIFETIME_SECONDS - 10)
    assert kept.get("hash")
    monkeypatch.setattr(time, "time", lambda: now + LIFETIME_SECONDS + 10)
    assert kept.get("hash") is None
    kept.add("another")
    assert "hash" not in (tmp_path / "s").read_text().replace("another", "")


def test_two_servers_with_one_database_know_each_others_browsers(tmp_path: Path) -> None:
    one, other = Sessions(tmp_path / "s"), Sessions(tmp_path / "s")

    one.add("first")
    other.add("second")

    assert [bool(kept.get(key)) for kept in (one, other) for key in ("first", "second")] == [True] * 4


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"sessions": 7}', b"\xff", b'{"sessions": {"a": "b"}}'])
def test_a_file_that_cannot_be_read_lets_nobody_in_and_is_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(content)
    kept = Sessions(tmp_path / "s")

    assert kept.get("a") is None
    kept.add("hash")
    assert Sessions(tmp_path / "s").get("hash")


def test_there_are_not_endlessly_many(tmp_path: Path) -> None:
    kept = Sessions()

    for number in range(MOST_SESSIONS + 5):
        kept.add(str(number))

    assert kept.get("4") is None
    assert kept.get("5")


@pytest.mark.skipif(os.geteuid() == 0, reason="ROOT MAY WRITE ANYWHERE, so a folder cannot be forbidden")
def test_a_folder_that_cannot_be_written_does_not_lock_anybody_out(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    kept = Sessions(tmp_path / "s")

    kept.add("hash")

    assert kept.get("hash")
    tmp_path.chmod(0o700)


def test_the_port_is_remembered(tmp_path: Path) -> None:
    Sessions(tmp_path / "s").remember_port(8423)

    assert Sessions(tmp_path / "s").port == 8423


def test_an_old_invitation_lets_nobody_in() -> None:
    keys = Keys()

    assert keys.redeem(keys.new_ticket(-1)) is None
    assert keys.redeem(keys.new_ticket(60))
