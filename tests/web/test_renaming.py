"""Renaming and archiving, with forms only."""

import asyncio
import re
from pathlib import Path

import httpx
from tests.web.test_sidebar import said_in_a_new_one

from bullpen.conversation.events import Renamed
from bullpen.testing.site import Site, site
from bullpen.testing.stage import write_team
from bullpen.web.updates import state_html

WAIT_SECONDS = 60


def titles(html: str) -> list[str]:
    return re.findall(r'class="words"><bdi>(.*?)</bdi>', html)


def browser(served: Site) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS, follow_redirects=True)


def test_a_title_is_shown_everywhere_and_survives(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Done."}]})

    async def story() -> None:
        async with site(tmp_path, team) as served, browser(served) as client:
            here = await said_in_a_new_one(served, "[NEXT: max] Fix the login")
            opened = served.hub.get(here)
            assert opened is not None
            assert titles((await client.get("/")).text) == ["Fix the login"]
            before = opened.conversation.last_number
            page = await client.post(f"/c/{here}/rename", data={"title": " Login <b>\n & cookies "})
            assert "<title>Login &lt;b&gt; &amp; cookies · bullpen</title>" in page.text
            assert "Login &lt;b&gt; &amp; cookies" in state_html(opened.view())
            with opened.conversation.viewing(before) as viewer:
                async for numbered in viewer:
                    if isinstance(numbered.event, Renamed):
                        assert numbered.event.title == "Login <b> & cookies"
                        break
        async with site(tmp_path, team) as served, browser(served) as client:
            for path in ("/", f"/c/{here}", f"/c/{here}/timeline", f"/c/{here}/prompt/turn-1"):
                assert "Login &lt;b&gt; &amp; cookies" in (await client.get(path)).text, path
            await client.post(f"/c/{here}/rename", data={"title": "  "})
            assert titles((await client.get("/")).text) == ["Fix the login"]

    asyncio.run(story())


def test_an_archived_one_is_out_of_the_way_and_can_be_found_again(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Done."}], "ada": [{"hang": True}]})

    async def story() -> None:
        async with site(tmp_path, team) as served, browser(served) as client:
            kept = await said_in_a_new_one(served, "Keep me")
            here = await said_in_a_new_one(served, "Put me away")
            busy = await said_in_a_new_one(served, "[NEXT: ada] I am busy")
            assert (await client.post(f"/c/{here}/archive")).url.path == "/"
            assert served.hub.get(here) is None
            refused = await client.post(f"/c/{busy}/archive")
            assert (refused.status_code, "Cancel its turn first" in refused.text) == (409, True)
            assert titles((await client.get("/")).text) == ["Keep me", "I am busy"]
            assert "Put me away" not in (await client.get(f"/c/{kept}")).text
            assert titles((await client.get("/", params={"archived": "1"})).text) == ["Put me away"]
            assert titles((await client.get("/", params={"q": "away"})).text)[-1:] == ["Put me away"]
            await client.post(f"/c/{here}/unarchive")
            assert "Put me away" in titles((await client.get("/")).text)
            await client.post(f"/c/{here}/archive")
            await client.post(f"/c/{here}/open")
            # One in which nothing was said is not listed, and gone when it is closed.
            for action in ("archive", "close"):
                empty = await served.hub.begin()
                assert "New conversation" not in titles((await client.get("/")).text)
                assert (await client.post(f"/c/{empty.conversation.id}/{action}")).url.path == "/"
            assert "Put me away" in titles((await client.get("/")).text)

    asyncio.run(story())
