"""What each role may do: every route with every role, and who says and decides things."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from tests.web.test_guard import OWN_HOST, PLACE, address, routes_of, server

from bullpen.testing.site import Site, button_of, site
from bullpen.testing.stage import put_on_path
from bullpen.web.access import NEEDS, Need
from bullpen.web.app import ROUTES
from bullpen.web.credentials import Keys, id_of
from bullpen.web.identity import GUEST, OWNER, Identity, Role, set_visitor
from bullpen.web.people import read_me
from bullpen.web.session_file import SessionFile
from bullpen.web.sessions import LIFETIME_SECONDS, Sessions

WAIT_SECONDS = 20
KIM = Identity(role="member", person="kim")
LEE_READS = Identity(role="viewer", person="lee")
KINDS: dict[str, Identity | None] = {
    "stranger": None,
    "guest": GUEST,
    "viewer": LEE_READS,
    "member": KIM,
    "owner": OWNER,
    "named owner": Identity(role="owner", person="lee"),
}
# Written out here a second time, so that a change of the rule is a change of two files.
RANKS: dict[Role, int] = {"viewer": 1, "member": 2, "owner": 3}
NEEDED: dict[Need, int] = {"anyone": 0, "viewer": 1, "member": 2, "owner": 3, "owner here": 3}
TEAM = """name = "shop"
[[member]]
name = "kim"
[[member]]
name = "lee"
[[member]]
name = "max"
agent = "claude"
"""


def test_every_route_has_a_rule_and_every_rule_a_route() -> None:
    assert sorted(NEEDS) == sorted((method, path) for method, path, _ in ROUTES)


def test_what_changes_something_is_never_for_viewers() -> None:
    posts = {path for (method, path), need in NEEDS.items() if method == "POST" and need in ("anyone", "viewer")}

    assert posts == {"/enter/{ticket}"}


def test_keys_people_and_team_files_are_only_for_owners() -> None:
    for (method, path), need in NEEDS.items():
        if any(word in path for word in ("/invit", "/people", "/token", "/sessions", "/teams/")):
            assert need in ("owner", "owner here"), (method, path)


def headers_of(keys: Keys, identity: Identity | None, way: str) -> dict[str, str]:
    if identity is None:
        return {}
    if way == "token":
        return {"Authorization": f"Bearer {keys.new_token(identity)}"}
    return {"Cookie": f"{PLACE.cookie}={keys.redeem(keys.new_ticket(identity))}"}


@pytest.mark.usefixtures("connectionless")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["browser", "token"])
def test_each_role_may_do_exactly_what_the_table_says(kind: str, way: str, tmp_path: Path) -> None:
    identity = KINDS[kind]

    async def story() -> dict[tuple[str, str], bool]:
        found = {}
        async with (
            server(tmp_path) as (app, keys),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{OWN_HOST}") as client,
        ):
            for method, path in routes_of(app):
                headers = {"Origin": f"http://{OWN_HOST}", **headers_of(keys, identity, way)}
                client.cookies.clear()
                answer = await client.request(method, address(path, keys), headers=headers)
                assert answer.status_code != 500
                found[method, path] = answer.status_code not in (401, 403)
        return found

    rank = 0 if identity is None else RANKS[identity.role]
    expected = {
        route: rank >= NEEDED[need] and not (need == "owner here" and way == "token") for route, need in NEEDS.items()
    }
    assert asyncio.run(story()) == expected


class LateFile(SessionFile):
    """Who has got access elsewhere is in it only after it has caught up, as with a database of several nodes."""

    is_late = True

    def read(self) -> bytes | None:
        return None if self.is_late else super().read()

    async def catch_up(self) -> bool:
        self.is_late = False
        return True


def test_who_has_got_access_at_another_node_a_moment_ago_is_known_here(tmp_path: Path) -> None:
    token = Keys(sessions=Sessions(tmp_path / "s")).new_token(KIM)
    here = Keys(sessions=Sessions(LateFile(tmp_path / "s")))

    async def story() -> int:
        async with (
            server(tmp_path, here) as (app, _),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{OWN_HOST}") as client,
        ):
            return (await client.get("/api/me", headers={"Authorization": f"Bearer {token}"})).status_code

    assert asyncio.run(story()) == 200


@asynccontextmanager
async def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Site, str]]:
    """Serve a team with two people, and yield the address of a conversation."""
    programs = put_on_path(folder, {"claude": [[{"say": "Done."}]]})
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    (folder / "team.toml").write_text(TEAM, encoding="utf-8")
    async with site(folder, folder / "team.toml") as served:
        opened = await served.hub.begin()
        yield served, f"{served.url}/api/conversations/{opened.conversation.id}"


def client_of(served: Site, identity: Identity) -> httpx.AsyncClient:
    token = served.keys.new_token(identity)
    return httpx.AsyncClient(timeout=WAIT_SECONDS, headers={"Authorization": f"Bearer {token}"})


def test_members_speak_as_themselves_and_only_an_owner_as_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with (
            shop(tmp_path, monkeypatch) as (served, here),
            client_of(served, KIM) as kim,
            client_of(served, OWNER) as owner,
        ):

            async def said(client: httpx.AsyncClient, text: str, **more: str) -> str:
                answer = await client.post(f"{here}/messages", json={"text": text, **more})
                return str(answer.json().get("error") or answer.json()["message"]["speaker"]["roleId"])

            assert await said(owner, "[FROM: lee] I am lee.") == "lee"
            # We wait for lee now, and kim is still kim.
            assert await said(kim, "Hello.") == "kim"
            assert await said(kim, "[FROM: lee] I am lee.") == "kim"
            assert await said(kim, "Hello.", sender="kim") == "kim"
            assert "cannot speak as lee" in await said(kim, "I am lee.", sender="lee")
            assert await said(owner, "I am lee.", sender="lee") == "lee"
            page = f"{served.url}/c/{here.rpartition('/')[2]}/messages"
            forged = await kim.post(page, data={"text": "I am lee.", "sender": "lee"})
            assert forged.status_code == 403
            typed = await kim.post(f"{here}/commands", json={"text": "/note I am lee.", "sender": "lee"})
            assert typed.status_code == 403
            await kim.post(f"{here}/note", json={"text": "[FROM: lee] A note."})
            messages = (await owner.get(f"{here}/messages")).json()
            people = [one["message"] for one in messages if one["message"]["speaker"]["type"] == "human"]
            assert [one["speaker"]["roleId"] for one in people] == ["lee", "kim", "kim", "kim", "lee", "kim"]

    asyncio.run(story())


def test_an_owner_with_a_name_speaks_as_themselves_unless_they_say_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> list[str]:
        async with shop(tmp_path, monkeypatch) as (served, here):
            for person, text in (
                ("lee", "Hi."),
                ("lee", "[FROM: kim] Hi."),
                ("ada", "[FROM: kim] Hi."),
            ):
                async with client_of(served, Identity(role="owner", person=person)) as owner:
                    # ada is not in this team, so it is not said which of the people decides.
                    await owner.post(f"{here}/messages", json={"text": text})
                    await owner.post(f"{here}/continue")
            async with client_of(served, GUEST) as reader:
                messages = (await reader.get(f"{here}/messages")).json()
                made = (await reader.get(f"{here}/decisions")).json()
        people = [one["message"]["speaker"]["roleId"] for one in messages]
        return [*(name for name in people if name != "max"), *(one["person"] for one in made)]

    assert asyncio.run(story()) == ["lee", "kim", "kim", "lee", "lee", "owner"]


def test_nobody_is_taken_for_the_owner() -> None:
    set_visitor(None)
    with pytest.raises(HTTPException, match="not signed in"):
        asyncio.run(read_me(Request({"type": "http"})))


def test_who_is_not_in_the_team_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ada = Identity(role="member", person="ada")

    async def story() -> None:
        async with shop(tmp_path, monkeypatch) as (served, here), client_of(served, ada) as client:
            refused = await client.post(f"{here}/messages", json={"text": "Hello."})
            assert refused.status_code == 403
            assert "ada, who is not in the team" in refused.json()["error"]
            assert (await client.post(f"{here}/continue")).status_code == 403
            page = (await client.get(here.replace("/api/conversations/", "/c/"))).text
            assert 'class="talking reads"' in page
            assert 'id="composer"' not in page

    asyncio.run(story())


def test_invitations_and_tokens_are_for_people_of_the_team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with (
            shop(tmp_path, monkeypatch) as (served, _),
            client_of(served, OWNER) as owner,
            httpx.AsyncClient(timeout=WAIT_SECONDS) as program,
        ):
            api = f"{served.url}/api"
            for path in ("tokens", "invitations"):
                nobody = await owner.post(f"{api}/{path}", json={"role": "member", "person": "eve"})
                guest = await owner.post(f"{api}/{path}", json={"role": "member"})
                king = await owner.post(f"{api}/{path}", json={"role": "king"})
                assert [one.status_code for one in (nobody, guest, king)] == [400, 400, 400]
                assert "The people are: kim, lee." in nobody.json()["error"]
                assert "A guest can only read" in guest.json()["error"]
            made = (await owner.post(f"{api}/tokens", json={"role": "member", "person": "lee"})).json()
            program.headers["Authorization"] = f"Bearer {made['token']}"
            assert (await program.get(f"{api}/me")).json() == {
                "role": "member",
                "person": "lee",
            }
            invitation = (await owner.post(f"{api}/invitations", json={"role": "viewer"})).json()
            async with httpx.AsyncClient(headers={"User-Agent": "X11; Linux Firefox/140.0"}) as guest_browser:
                await guest_browser.post(invitation["url"], headers=button_of(invitation["url"]))
                assert (await guest_browser.get(f"{api}/me")).json() == {"role": "viewer", "person": None}
            first, second, third = (await owner.get(f"{api}/sessions")).json()
            assert [first["browser"], first["role"], first["kind"]] == ["Firefox on Linux", "viewer", "browser"]
            assert first["ends_at"] - first["began_at"] == LIFETIME_SECONDS * 1000
            assert [second["id"], second["person"], second["is_you"]] == [made["id"], "lee", False]
            assert [third["role"], third["is_you"]] == ["owner", True]
            left = await owner.post(f"{api}/sessions/{made['id']}/revoke")
            assert [one["id"] for one in left.json()] == [first["id"], third["id"]]
            assert (await program.get(f"{api}/me")).status_code == 401

    asyncio.run(story())


def test_who_is_revoked_hears_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream that is open ends before its next event."""

    async def story() -> str:
        async with shop(tmp_path, monkeypatch) as (served, here):
            token = served.keys.new_token(LEE_READS)
            heard = asyncio.Event()
            lines: list[str] = []

            async def listen() -> None:
                headers = {"Authorization": f"Bearer {token}"}
                async with (
                    httpx.AsyncClient(timeout=WAIT_SECONDS, headers=headers) as client,
                    client.stream("GET", f"{here}/events?after=0") as events,
                ):
                    async for line in events.aiter_lines():
                        lines.append(line)
                        if "heard by lee" in line:
                            heard.set()

            listening = asyncio.create_task(listen())
            opened = served.hub.get(here.rpartition("/")[2])
            assert opened is not None
            await opened.conversation.note("heard by lee", sender="kim")
            await heard.wait()
            served.keys.revoke(id_of(token))
            await opened.conversation.note("not for lee", sender="kim")
            # It ends by itself, without an error.
            await listening
            return "\n".join(lines)

    assert "not for lee" not in asyncio.run(story())


@pytest.mark.parametrize(("identity", "word"), list(product([KIM, LEE_READS], ["Invite", "/people", "Edit"])))
def test_pages_offer_only_what_is_allowed(
    identity: Identity, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> str:
        async with shop(tmp_path, monkeypatch) as (served, here), client_of(served, identity) as client:
            paths = ("/", "/teams", here.removeprefix(served.url).replace("/api/conversations/", "/c/"))
            return "".join([(await client.get(f"{served.url}{path}")).text for path in paths])

    assert word not in asyncio.run(story())


def test_every_decision_is_that_of_who_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lee = Identity(role="member", person="lee")

    async def story() -> list[tuple[str, str]]:
        async with (
            shop(tmp_path, monkeypatch) as (served, here),
            client_of(served, KIM) as kim,
            client_of(served, lee) as other,
            client_of(served, OWNER) as owner,
        ):
            page = here.replace("/api/conversations/", "/c/")
            await kim.post(f"{here}/messages", json={"text": "Hello."})
            # kim spoke last, and lee decides.
            await other.post(f"{here}/task", json={"task": "Sell"})
            await kim.post(f"{page}/do/continue")
            await other.post(f"{page}/messages", data={"text": "/rename The shop"})
            await other.post(f"{page}/rename", data={"title": "The old shop"})
            await kim.post(f"{here}/commands", json={"text": "/task -"})
            forged = await kim.post(f"{page}/do/continue", data={"sender": "lee"})
            assert forged.status_code == 403
            await owner.post(f"{page}/do/continue", data={"sender": "lee"})
            made = (await owner.get(f"{here}/decisions")).json()
            timeline = (await owner.get(f"{page}/timeline")).text
            assert timeline.count("<td>rename</td>") == 2
            return [(one["person"], one["choice"]) for one in made]

    assert asyncio.run(story()) == [
        ("lee", "task"),
        ("kim", "continue"),
        ("lee", "rename"),
        ("lee", "rename"),
        ("kim", "task"),
        ("lee", "continue"),
    ]
