"""The sidebar in a real browser: a column on a desk, a drawer on a phone."""

from pathlib import Path

from playwright.async_api import expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import site
from bullpen.testing.stage import write_team


def test_it_is_a_column_on_a_desk_and_a_drawer_on_a_phone(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Done."}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            for text in ("The first one", "The second one"):
                opened = await served.hub.begin()
                await opened.conversation.say(text)
                await opened.conversation.until_quiet()
            page = await browser.new_page(viewport={"width": 1440, "height": 900})
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{opened.conversation.id}")
            other = page.get_by_role("navigation", name="Conversations").get_by_role("link", name="The first one")
            await expect(other).to_be_visible()

            await page.set_viewport_size({"width": 390, "height": 780})
            await expect(other).to_be_hidden()
            await expect(page.locator(".drawer .badge")).to_have_text("1 need you")
            await page.get_by_role("button", name="Conversations").click()
            await expect(other).to_be_visible()
            await page.keyboard.press("Escape")
            await expect(other).to_be_hidden()
            await page.get_by_role("button", name="Conversations").click()
            await other.click()
            await expect(page.locator("#m1 .body")).to_have_text("The first one")

    play(story())


def test_the_list_learns_what_happens_elsewhere(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Done."}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            here = (await served.hub.begin()).conversation
            page = await browser.new_page(viewport={"width": 1440, "height": 900})
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{here.id}")
            await (await served.hub.begin()).conversation.say("Something else entirely")
            await expect(page.get_by_role("link", name="Something else entirely")).to_be_visible()
            current = page.locator("#sidebar [aria-current] .title bdi")
            await expect(current).to_have_text("New conversation")
            await here.rename("The login")
            await expect(page.locator("#title")).to_have_text("The login")
            await expect(current).to_have_text("The login")

    play(story())
