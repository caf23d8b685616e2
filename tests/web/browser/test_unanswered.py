"""What a turn without a reply had said stays on the page; and who will be asked is shown before Enter."""

from pathlib import Path

from playwright.async_api import expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_talk import opened_in, page_of, talk

from bullpen.testing.stage import Script


def test_what_a_cancelled_turn_had_said_stays_in_its_place(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        script: dict[str, Script] = {"max": [{"say": "Half of **it**"}, {"hang": True}]}
        async with talk(tmp_path, open_browser, script) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            await page.get_by_label("Your message").fill("Go.")
            await page.get_by_label("Your message").press("Enter")
            await expect(page.locator("#live .body")).to_contain_text("Half of")
            await opened_in(served, page).conversation.cancel()
            for _ in range(2):
                ended = page.locator("#m1 .unanswered")
                await expect(ended).to_have_count(1)
                await expect(ended.locator("summary")).to_contain_text("turn 1 was cancelled after")
                await ended.locator("summary").click()
                await expect(ended.locator(".body strong")).to_have_text("it")
                await expect(page.locator("#live > article")).to_have_count(0)
                await page.reload()

    play(story())


def test_who_will_be_asked_is_shown_before_enter(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        script: dict[str, Script] = {"max": [{"say": "Yes."}], "sarah": [{"say": "No."}]}
        async with talk(tmp_path, open_browser, script) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            text, asks = page.get_by_label("Your message"), page.locator("#addressees")
            await expect(asks).to_be_empty()
            await text.fill("Hello")
            await expect(asks).to_contain_text("max leads the team.")
            await text.fill("@sarah, then @max")
            await expect(asks.locator(".chip")).to_have_text(["sarah", "max"])
            await text.fill("Hello @sarah")
            await expect(asks.locator(".chip")).to_have_text(["max", "sarah"])
            await text.fill("Hello @sarha")
            await expect(asks).to_contain_text("Did you mean sarah?")
            await expect(asks.locator(".nobody")).to_have_text("nobody")
            await text.fill("/cancel")
            await expect(asks).to_be_empty()
            await text.fill("@sarah?")
            await expect(asks.locator(".chip")).to_have_text(["sarah"])
            await text.press("Enter")
            await expect(page.locator("#m2 .body")).to_have_text("No.")
            await expect(asks).to_be_empty()

    play(story())
