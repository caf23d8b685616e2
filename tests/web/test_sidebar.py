"""The sidebar: every conversation, those that need a person first."""

import asyncio
import re
from pathlib import Path

import httpx

from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, write_team

WAIT_SECONDS = 60
AGENTS: dict[str, Script] = {
    "max": [{"say": "Done."}],
    "sarah": [{"stderr": "no"}, {"exit": 3}],
    "ada": [{"hang": True}],
}


async def said_in_a_new_one(served: Site, text: str) -> str:
    opened = await served.hub.begin()
    await opened.conversation.say(text)
    if "ada" not in text:
        await asyncio.wait_for(opened.conversation.until_quiet(), WAIT_SECONDS)
    return opened.conversation.id


def listed(html: str) -> list[tuple[str, list[str]]]:
    """Return each group of the list with the titles in it."""
    groups = re.split(r'<p class="group"[^>]*>', html)[1:]
    return [(group.partition("<")[0], re.findall(r'class="title">.*?<bdi>(.*?)</bdi>', group)) for group in groups]


def test_those_that_need_you_come_first_then_the_latest(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            site(tmp_path, write_team(tmp_path, AGENTS)) as served,
            httpx.AsyncClient(base_url=served.url, headers=served.headers, timeout=WAIT_SECONDS) as client,
        ):
            await said_in_a_new_one(served, "[NEXT: sarah] This fails.")
            for text in ("An old one", "A newer one"):
                await served.hub.release(await said_in_a_new_one(served, text))
            await said_in_a_new_one(served, "[NEXT: ada] This takes long.")
            here = await said_in_a_new_one(served, "Your turn here.")
            await served.hub.begin()
            page = (await client.get(f"/c/{here}")).text
            assert listed(page) == [
                ("Needs you", ["Your turn here.", "This fails."]),
                ("Recent", ["This takes long.", "A newer one", "An old one"]),
            ]
            assert re.findall(r'href="/c/([\w-]+)" aria-current="page"', page.partition('id="talk"')[0]) == [here, here]
            assert listed((await client.get(f"/sidebar?at={here}")).text) == listed(page)

    asyncio.run(story())
