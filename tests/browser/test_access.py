"""A page whose server restarts, or which is not signed in any more: it says what to do, and goes on by itself."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from bullpen.testing.site import site
from bullpen.testing.stage import write_team

OpenBrowser = Callable[[], AbstractAsyncContextManager[Browser]]


@pytest.mark.parametrize("sessions", ["kept", "lost"])
def test_a_page_survives_a_restart_or_says_what_to_do(sessions: str, tmp_path: Path, open_browser: OpenBrowser) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})

    async def story() -> None:
        async with open_browser() as browser:
            context = await browser.new_context()
            page = await context.new_page()
            async with site(tmp_path, team) as served:
                port = served.place.port
                opened = await served.hub.begin()
                await opened.conversation.say("Hello?")
                await page.goto(served.new_url())
                await page.goto(f"{served.url}/c/{opened.conversation.id}")
                await page.get_by_label("Your message").fill("Half a sen")
            await expect(page.get_by_role("status").first).to_contain_text("The server cannot be reached")
            if sessions == "lost":
                (tmp_path / "conversations.db.sessions").unlink()
            async with site(tmp_path, team, port=port) as served:
                if sessions == "lost":
                    await expect(page.get_by_role("status").first).to_contain_text("not signed in any more")
                    await expect(page.get_by_role("link", name="How do I sign in?")).to_be_visible()
                    other = await context.new_page()
                    await other.goto(f"{served.url}/c/{opened.conversation.id}")
                    await expect(other.get_by_role("heading", level=1)).to_have_text("This browser is not signed in")
                    await expect(other.locator("main")).to_contain_text("bullpen serve")
                    # The page has its styles although nobody is signed in.
                    assert await other.evaluate("getComputedStyle(document.body).margin") == "0px"
                    await other.goto(served.new_url())
                await page.get_by_role("button", name="Continue it here").click()
                await expect(page.get_by_label("Your message")).to_have_value("Half a sen")

    asyncio.run(story())


def test_a_used_address_says_so_in_a_page_of_ours(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            address = served.new_url()
            for heading in ("Conversations", "This address has been used"):
                page = await (await browser.new_context()).new_page()
                await page.goto(address)
                await expect(page.get_by_role("heading", level=1)).to_have_text(heading)

    asyncio.run(story())
