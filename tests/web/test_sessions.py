"""Sessions: a browser that was let in stays in, also after a restart, and the disk holds no secret."""

import asyncio
import hashlib
import json
import os
import time
from pathlib import Path

import httpx
import pytest

from bullpen.errors import UnknownSession
from bullpen.testing.site import site
from bullpen.web.credentials import TICKET_SECONDS, Keys, id_of
from bullpen.web.identity import GUEST, Identity
from bullpen.web.session_file import sessions_beside
from bullpen.web.sessions import LIFETIME_SECONDS, MOST_SESSIONS, Sessions

KIM = Identity(role="member", person="kim")


def test_a_browser_is_still_signed_in_after_a_restart(tmp_path: Path) -> None:
    async def story() -> list[int]:
        async with httpx.AsyncClient() as browser:
            async with site(tmp_path) as served:
                entered = await browser.post(served.new_url(), headers={"Origin": served.url}, follow_redirects=True)
                port = served.place.port
            async with site(tmp_path, port=port) as served:
                again = await browser.get(served.url)
                stranger = await browser.get(served.url, headers={"Cookie": "none"})
        return [entered.status_code, again.status_code, stranger.status_code]

    assert asyncio.run(story()) == [200, 200, 401]


def test_the_file_is_private_and_holds_only_hashes(tmp_path: Path) -> None:
    file = sessions_beside(tmp_path / "conversations.db")
    keys = Keys(sessions=Sessions(file))

    unused, session, token = keys.new_ticket(), keys.redeem(keys.new_ticket(KIM)), keys.new_token(GUEST)

    assert session is not None
    assert file.stat().st_mode & 0o777 == 0o600
    assert not [secret for secret in (unused, session, token) if secret in file.read_text()]
    after_restart = Keys(sessions=Sessions(file))
    known = [after_restart.of_cookies(["wrong", session]), after_restart.of_token(token)]
    assert [one and (one.role, one.person) for one in known] == [("member", "kim"), ("viewer", None)]
    # A cookie is not a token, and a token is not a cookie.
    assert after_restart.of_token(session) is None
    assert after_restart.of_cookies([token]) is None
    assert after_restart.redeem(unused)


def test_owners_of_an_earlier_version_stay_owners_and_its_guests_read(tmp_path: Path) -> None:
    hashes = {secret: hashlib.sha256(secret.encode()).hexdigest() for secret in ("owner", "guest")}
    later = int(time.time()) + 1000
    written = {hashes[secret]: {"ends_at": later, "is_owner": secret == "owner"} for secret in hashes}
    (tmp_path / "s").write_text(json.dumps({"sessions": written, "port": 8423}))
    keys = Keys(sessions=Sessions(tmp_path / "s"))

    assert [(one := keys.of_cookies([secret])) and one.role for secret in hashes] == ["owner", "viewer"]


def test_who_is_revoked_has_no_access_in_any_process(tmp_path: Path) -> None:
    one, other = Keys(sessions=Sessions(tmp_path / "s")), Keys(sessions=Sessions(tmp_path / "s"))
    kept, revoked = one.new_token(KIM), one.new_token(KIM)
    assert other.of_token(revoked)

    one.revoke(id_of(revoked))

    assert other.of_token(revoked) is None
    assert other.of_token(kept)
    assert list(other.sessions()) == [id_of(kept)]
    with pytest.raises(UnknownSession, match="was revoked before"):
        other.revoke(id_of(revoked))


def test_a_ticket_of_another_process_works_once_for_both(tmp_path: Path) -> None:
    one, other = Keys(sessions=Sessions(tmp_path / "s")), Keys(sessions=Sessions(tmp_path / "s"))
    ticket = one.new_ticket(KIM)

    assert [bool(keys.redeem(ticket)) for keys in (other, one, other)] == [True, False, False]


def test_a_session_ends_after_a_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Sessions(tmp_path / "s")
    kept.add("hash", KIM)
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + LIFETIME_SECONDS - 10)
    assert kept.get("hash")
    monkeypatch.setattr(time, "time", lambda: now + LIFETIME_SECONDS + 10)
    assert kept.get("hash") is None
    kept.add("another", KIM)
    assert "hash" not in (tmp_path / "s").read_text().replace("another", "")


def test_two_servers_with_one_database_know_each_others_browsers(tmp_path: Path) -> None:
    one, other = Sessions(tmp_path / "s"), Sessions(tmp_path / "s")

    one.add("first", KIM)
    other.add("second", KIM)

    assert [bool(kept.get(key)) for kept in (one, other) for key in ("first", "second")] == [True] * 4


def test_changes_of_another_process_at_the_same_moment_are_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The times of files are coarse, so two versions of one can have the same."""
    monkeypatch.setattr("bullpen.web.session_file._version_of", lambda _: (1,))
    one = Keys(sessions=Sessions(tmp_path / "s"))
    ticket = one.new_ticket(KIM)
    other = Keys(sessions=Sessions(tmp_path / "s"))

    assert [bool(keys.redeem(ticket)) for keys in (other, one)] == [True, False]
    one.new_token(KIM)
    assert len(Keys(sessions=Sessions(tmp_path / "s")).sessions()) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"sessions": 7}', b"\xff", b'{"sessions": {"a": "b"}}'])
def test_a_file_that_cannot_be_read_lets_nobody_in_and_is_replaced(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(content)
    kept = Sessions(tmp_path / "s")

    assert kept.get("a") is None
    kept.add("hash", KIM)
    assert Sessions(tmp_path / "s").get("hash")


def test_there_are_not_endlessly_many(tmp_path: Path) -> None:
    kept = Sessions()

    for number in range(MOST_SESSIONS + 5):
        kept.add(str(number), KIM)

    assert kept.get("4") is None
    assert kept.get("5")


@pytest.mark.skipif(os.geteuid() == 0, reason="ROOT MAY WRITE ANYWHERE, so a folder cannot be forbidden")
def test_a_folder_that_cannot_be_written_does_not_lock_anybody_out(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    kept = Sessions(tmp_path / "s")

    kept.add("hash", KIM)

    assert kept.get("hash")
    tmp_path.chmod(0o700)


def test_the_port_is_remembered(tmp_path: Path) -> None:
    Sessions(tmp_path / "s").remember_place(8423, "http://127.0.0.1:8423")

    known = Sessions(tmp_path / "s")
    assert (known.port, known.url) == (8423, "http://127.0.0.1:8423")


def test_an_old_address_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = Keys()
    early, late = keys.new_ticket(), keys.new_ticket()
    now = time.time()

    monkeypatch.setattr(time, "time", lambda: now + TICKET_SECONDS - 10)
    assert keys.redeem(early)
    monkeypatch.setattr(time, "time", lambda: now + TICKET_SECONDS + 10)
    assert keys.redeem(late) is None
    assert TICKET_SECONDS == 600
