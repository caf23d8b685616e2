"""Choosing a team, and changing its file: nothing runs that its owner has not agreed to."""

import asyncio
import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.types import Message

from bullpen.errors import ReadOnlyHere
from bullpen.team.trust import Trust
from bullpen.testing.site import Site, site
from bullpen.testing.stage import write_team
from bullpen.web.app import create_app
from bullpen.web.identity import Identity

WAIT_SECONDS = 20
DECISIONS = ["trust", "keep", "edit"]


@asynccontextmanager
async def browser(served: Site, url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=served.url, timeout=WAIT_SECONDS, follow_redirects=True, headers={"Origin": served.url}
    ) as client:
        assert (await client.post(url)).status_code == 200
        yield client


def team_in(folder: Path, say: str = "Done.") -> Path:
    folder.mkdir()
    return write_team(folder, {"max": [{"say": say}]})


def keys_in(page: str) -> list[str]:
    return re.findall(r'href="/teams/(\w+)"', page)


def field(page: str, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found
    return html.unescape(found[1])


def decisions_in(page: str) -> list[str]:
    return re.findall(r'name="decision" value="(\w+)"', page)


def test_a_conversation_is_started_with_another_team_that_is_trusted(tmp_path: Path) -> None:
    first, second, third = (team_in(tmp_path / name) for name in ("one", "two", "three"))

    async def story() -> None:
        for team in (second, third):
            async with site(tmp_path, team) as served:
                await (await served.hub.begin()).conversation.say("Hello.")
        Trust().remember(second, second.read_text())
        async with site(tmp_path, first) as served, browser(served, served.new_url()) as client:
            page = (await client.get("/teams")).text
            assert re.findall(r'class="path"><bdi>(.*?)</bdi>', page) == [str(first), str(third), str(second)]
            assert page.count("is not trusted, or has changed") == 1
            offered = re.findall(r'name="team" value="(\w+)"', page)
            assert len(offered) == 2
            begun = await client.post("/c", data={"team": offered[1]})
            opened = served.hub.get(begun.url.path.removeprefix("/c/"))
            assert opened is not None
            await opened.conversation.say("Hello again.")
            stored = (await client.get("/api/conversations")).json()
            assert stored[0]["title"] == "Hello again."
            refused = keys_in(page)[1]
            assert (await client.post("/c", data={"team": refused})).status_code == 409
            assert (await client.post("/c", data={"team": "nonsense"})).status_code == 404

    asyncio.run(story())


def test_a_changed_file_runs_nothing_until_its_owner_agrees(tmp_path: Path) -> None:
    team = team_in(tmp_path / "shop")
    before = team.read_text()
    after = f'{before}\n[[member]]\nname = "new"\ncommand = ["sh", "-c", "date"]\n'

    async def story() -> None:
        async with site(tmp_path, team) as served, browser(served, served.new_url()) as client:
            await (await served.hub.begin()).conversation.say("Hello.")
            (key,) = keys_in((await client.get("/teams")).text)
            here = f"/teams/{key}"
            form = {"text": after, "before": field((await client.get(here)).text, "before"), "decision": "save"}
            asked = (await client.post(here, data=form)).text
            assert decisions_in(asked) == DECISIONS
            assert "<code>sh -c date</code>" in asked
            assert "do anything that you may: bullpen cannot restrict this program" in asked
            assert team.read_text() == before
            # A decision about another text is none about this one.
            forged = {**form, "text": f"{after}# more", "decision": "trust", "reviewed": field(asked, "reviewed")}
            assert decisions_in((await client.post(here, data=forged)).text) == DECISIONS
            assert team.read_text() == before

            kept = {"text": field(asked, "text"), "before": field(asked, "before"), "decision": "keep"}
            await client.post(here, data=kept)
            assert team.read_text() == after
            assert not Trust().knows(team, after)
            assert [member.name for member in (await served.hub.begin()).conversation.team.agents] == ["max"]

            form["before"] = field((await client.get(here)).text, "before")
            asked = (await client.post(here, data=form)).text
            names = ("text", "before", "reviewed")
            await client.post(here, data={**{name: field(asked, name) for name in names}, "decision": "trust"})
            assert Trust().knows(team, after)
            assert [member.name for member in (await served.hub.begin()).conversation.team.agents] == ["max", "new"]

    asyncio.run(story())


def test_only_the_owner_can_change_a_file(tmp_path: Path) -> None:
    team = team_in(tmp_path / "shop")
    before = team.read_text()

    async def story() -> None:
        async with site(tmp_path, team) as served:
            async with browser(served, served.new_url()) as owner:
                (key,) = keys_in((await owner.get("/teams")).text)
            member = served.keys.new_ticket(Identity(role="member", person="kim"))
            async with browser(served, f"{served.url}/enter/{member}") as client:
                page = (await client.get("/teams")).text
                assert keys_in(page) == []
                for method, path in (("GET", ""), ("POST", ""), ("POST", "/check")):
                    answer = await client.request(method, f"/teams/{key}{path}", data={"text": "x", "decision": "keep"})
                    assert answer.status_code == 403
                    assert "Only the owner can change a team file" in answer.text
            async with httpx.AsyncClient(base_url=served.url, headers=served.headers) as program:
                assert (await program.get(f"/teams/{key}")).status_code == 403
        assert team.read_text() == before

    asyncio.run(story())


@pytest.mark.parametrize(
    ("address", "may_edit"), [("127.0.0.1", True), ("::1", True), ("192.0.2.7", True), ("192.0.2.8", False)]
)
def test_the_owner_must_be_at_this_machine(address: str, may_edit: bool, tmp_path: Path) -> None:
    async def story() -> bool:
        async with site(tmp_path) as served:
            session = served.keys.redeem(served.keys.new_ticket())
            scope = {
                "type": "http",
                "method": "GET",
                "path": "/teams/no-such",
                "query_string": b"",
                "headers": [
                    (b"host", served.place.hosts[0].encode()),
                    (b"cookie", f"{served.place.cookie}={session}".encode()),
                ],
                "client": (address, 1234),
                "server": ("192.0.2.7", 443),
            }
            sent: list[Message] = []

            async def receive() -> Message:
                return {"type": "http.request", "body": b"", "more_body": False}

            async def send(message: Message) -> None:
                sent.append(message)

            await create_app(served.hub, served.keys, served.place)(scope, receive, send)
            assert sent[0]["status"] in (403, 404)
            return bool(sent[0]["status"] == 404)

    assert asyncio.run(story()) is may_edit


def test_errors_are_told_by_line_and_nothing_is_saved(tmp_path: Path) -> None:
    team = team_in(tmp_path / "shop")
    before = team.read_text()

    async def story() -> None:
        async with site(tmp_path, team) as served, browser(served, served.new_url()) as client:
            (key,) = keys_in((await client.get("/teams")).text)
            wrong = 'lead = "nobody"\r\n\r\n[[member]]\r\nname = "kim"\r\nagent = "cloude"\r\n'
            told = (await client.post(f"/teams/{key}/check", data={"text": wrong})).text
            assert ("error", "5") in re.findall(r'<li class="(\w+)" data-line="(\d+)"', told)
            form = {"text": wrong, "before": field((await client.get(f"/teams/{key}")).text, "before")}
            for decision in DECISIONS:
                page = (await client.post(f"/teams/{key}", data={**form, "decision": decision})).text
                assert 'data-line="5"' in page
                assert "cloude" in page.split("<textarea")[1]
            assert team.read_text() == before
            team.write_text(f"{before}# changed by somebody else\n")
            page = (await client.post(f"/teams/{key}", data={**form, "text": before, "decision": "keep"})).text
            assert "has changed since you opened it" in page
            assert team.read_text().endswith("somebody else\n")

    asyncio.run(story())


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_file_keeps_its_line_ends_its_mode_and_what_cannot_be_seen(line_end: str, tmp_path: Path) -> None:
    team = team_in(tmp_path / "shop")
    content = f"# zero\u200bwidth\n{team.read_text()}".replace("\n", line_end)
    team.write_bytes(content.encode())
    team.chmod(0o640)
    Trust().remember(team, content)

    async def story() -> None:
        async with site(tmp_path, team) as served, browser(served, served.new_url()) as client:
            (key,) = keys_in((await client.get("/teams")).text)
            page = (await client.get(f"/teams/{key}")).text
            text = html.unescape(page.split("<textarea")[1].partition(">\n")[2].partition("</textarea>")[0])
            typed = text.replace("\r\n", "\n").replace("\n", "\r\n")
            form = {"text": typed, "before": field(page, "before"), "decision": "save"}
            answer = await client.post(f"/teams/{key}", data=form)
            assert answer.url.path == "/teams"
        assert team.read_bytes() == content.encode()
        assert team.stat().st_mode & 0o777 == 0o640

    asyncio.run(story())


def test_a_file_that_is_not_trusted_starts_nothing(tmp_path: Path) -> None:
    team = team_in(tmp_path / "shop")

    async def story() -> None:
        async with site(tmp_path) as served:
            with pytest.raises(ReadOnlyHere, match="is not trusted"):
                await served.hub.begin(team)

    asyncio.run(story())
