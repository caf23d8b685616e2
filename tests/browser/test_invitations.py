"""Inviting another browser: a dialog in view, whose address works once, copied or scanned."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from bullpen.testing.site import site
from bullpen.testing.stage import write_team

OpenBrowser = Callable[[], AbstractAsyncContextManager[Browser]]


async def is_in_view(page: Page, selector: str) -> bool:
    found = await page.evaluate(
        """(selector) => {
             const box = document.querySelector(selector).getBoundingClientRect();
             return box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;
           }""",
        selector,
    )
    return bool(found)


@pytest.mark.parametrize("width", [390, 1440])
def test_the_invitation_is_in_view_wherever_one_has_scrolled_to(
    width: int, tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Long.\n\n" * 100}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.begin()
            await opened.conversation.say("Go.")
            await opened.conversation.until_quiet()
            context = await browser.new_context(viewport={"width": width, "height": 844})
            await context.grant_permissions(["clipboard-read", "clipboard-write"])
            page = await context.new_page()
            foreign: list[str] = []
            page.on("request", lambda sent: None if sent.url.startswith(served.url) else foreign.append(sent.url))
            await page.goto(served.new_url())
            await page.goto(f"{served.url}/c/{opened.conversation.id}")
            await expect(page.locator("#m2")).to_be_visible()
            assert await page.evaluate("scrollY") > 1000
            await page.get_by_text("More", exact=True).click()
            await page.get_by_role("button", name="Invite").click()
            dialog = page.get_by_role("dialog", name="Invite a browser")
            await expect(dialog).to_be_visible()
            assert await is_in_view(page, "dialog")
            await expect(dialog.get_by_role("img", name="QR code")).to_be_visible()
            await expect(dialog).to_contain_text("once, until")
            await dialog.get_by_role("button", name="Copy").click()
            await expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
            address = await page.evaluate("navigator.clipboard.readText()")
            assert address.startswith(f"{served.url}/enter/")
            await page.keyboard.press("Escape")
            await expect(dialog).to_have_count(0)
            guest = await (await browser.new_context()).new_page()
            await guest.goto(address)
            await expect(guest.get_by_role("heading", level=1)).to_have_text("Conversations")
            assert foreign == []

    asyncio.run(story())
