"""Forking from a page and from a program."""

import asyncio
from pathlib import Path

import httpx
from tests.web.test_sidebar import said_in_a_new_one

from bullpen.testing.site import Site, site
from bullpen.testing.stage import write_team
from bullpen.view.messages import plain_messages

WAIT_SECONDS = 60


def browser(served: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS, follow_redirects=True)


async def said(served: Site, conversation_id: str) -> list[str]:
    return [one.message.content for one in await served.hub.read(plain_messages, conversation_id)]


async def talked(served: Site) -> str:
    """Return a conversation with four messages."""
    here = await said_in_a_new_one(served, "[NEXT: max] First?")
    opened = served.hub.get(here)
    assert opened is not None
    await opened.conversation.until_quiet()
    await opened.conversation.say("[NEXT: max] Second?")
    await opened.conversation.until_quiet()
    return here


def test_a_form_forks_and_opens_the_new_conversation(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Yes."}]})

    async def story() -> None:
        async with site(tmp_path, team) as served, browser(served) as client:
            here = await talked(served)
            page = await client.post(f"/c/{here}/fork", data={"at": "2"})
            fork = page.url.path.removeprefix("/c/")
            assert (page.status_code, fork != here) == (200, True)
            assert "(fork at #2)" in page.text
            assert 'id="composer"' in page.text, "it is open, and can be continued at once"
            assert await said(served, fork) == ["[NEXT: max] First?", "Yes."]
            opened = served.hub.get(fork)
            assert opened is not None
            await opened.conversation.say("And now?")
            await opened.conversation.until_quiet()
            assert (await said(served, fork))[2:] == ["And now?", "Yes."]
            assert len(await said(served, here)) == 4

            everything = await client.post(f"/c/{here}/fork")
            assert len(await said(served, everything.url.path.removeprefix("/c/"))) == 4
            with_htmx = await client.post(f"/c/{here}/fork", data={"at": "1"}, headers={"HX-Request": "true"})
            assert with_htmx.headers["HX-Redirect"].startswith("/c/forked-")
            for at, told in (
                ("9", "has 4 messages"),
                ("x", "is not the number of a message"),
                ("-1", "is not the number"),
            ):
                refused = await client.post(f"/c/{here}/fork", data={"at": at})
                assert (refused.is_client_error, told in refused.text) == (True, True), at
            assert (await client.post("/c/gone/fork")).status_code == 404

    asyncio.run(story())


def test_a_program_forks_what_is_open_and_what_is_not(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Yes."}]})

    async def story() -> None:
        async with site(tmp_path, team) as served, browser(served) as client:
            here = await talked(served)
            made = await client.post(f"/api/conversations/{here}/fork", json={"at": 3})
            state = made.json()
            assert (made.status_code, state["is_open"], state["title"]) == (201, True, "First? (fork at #3)")
            assert len(await said(served, state["id"])) == 3
            await client.post(f"/api/conversations/{here}/close")
            assert (await client.post(f"/api/conversations/{here}/fork")).status_code == 201
            bodies: list[object] = [{"at": 0}, {"at": 5}, {"at": "3"}, {"to": 3}, [], {"at": 10**30}]
            for body in bodies:
                refused = await client.post(f"/api/conversations/{here}/fork", json=body)
                assert refused.is_client_error, body
                assert refused.json()["error"]

    asyncio.run(story())


def test_a_fork_that_cannot_be_continued_here_can_be_read(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Yes."}]})

    async def story() -> None:
        async with site(tmp_path, team) as served:
            here = await talked(served)
        team.unlink()
        async with site(tmp_path, None) as served, browser(served) as client:
            page = await client.post(f"/c/{here}/fork", data={"at": "2"})
            assert "You can read this conversation here, but not continue it." in page.text
            assert served.hub.get(page.url.path.removeprefix("/c/")) is None

    asyncio.run(story())
