"""A page in windows of several widths: nothing is cut, covered or without its colour."""

from pathlib import Path

from playwright.async_api import Page, expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import Site, site
from bullpen.testing.stage import write_team

OPTION = "Dollars, as the American shop has had them since 2024"
ASKS = f"Shall it be euros or dollars? [ASK: Euros | {OPTION}]"
TITLE = "Please move all the prices of the shop into one file, and test each of them"
IS_ONE_LINE = """new Set([...document.querySelectorAll(".where > a, .menu > summary")].map(
    (one) => Math.round(one.getBoundingClientRect().top))).size === 1"""
IS_CUT = "(one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 3"
YELLOW, GREY = "rgb(127, 93, 7)", "rgb(105, 100, 92)"


async def asked(served: Site, page: Page) -> None:
    """Open a conversation with a long title in which an agent asks something."""
    conversation = (await served.hub.begin()).conversation
    await conversation.say(TITLE)
    await conversation.until_quiet()
    await served.let_in(page)
    await page.goto(f"{served.url}/c/{conversation.id}")
    await expect(page.locator(".decide.question")).to_be_visible()


def test_a_long_title_leaves_the_views_in_one_line(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path, write_team(tmp_path, {"max": [{"say": ASKS}]})) as served, open_browser() as browser:
            page = await browser.new_page(viewport={"width": 1024, "height": 768})
            await asked(served, page)
            for width in (900, 1024, 1199, 1440):
                await page.set_viewport_size({"width": width, "height": 768})
                assert await page.evaluate(IS_ONE_LINE), width
            state = page.locator('.member[data-member="max"] .now')
            await expect(state).to_have_css("color", YELLOW)
            await expect(page.locator('.member[data-member="max"] .spent')).to_have_css("color", GREY)

    play(story())


def test_on_a_phone_neither_a_draft_nor_an_answer_is_cut(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path, write_team(tmp_path, {"max": [{"say": ASKS}]})) as served, open_browser() as browser:
            page = await browser.new_page(viewport={"width": 1440, "height": 900})
            await asked(served, page)
            await page.locator("#text").fill("Dollars, and please add the tests of all the prices. " * 5)
            await page.set_viewport_size({"width": 390, "height": 844})
            await expect(page.locator("#text")).not_to_have_css("height", "0px")
            assert not await page.locator("#text").evaluate(IS_CUT)
            option = page.get_by_role("button", name=OPTION)
            assert not await option.locator("bdi").evaluate(IS_CUT)
            assert await option.evaluate("(one) => one.getBoundingClientRect().right") <= 390

    play(story())
