"""The four states in a real browser: in the title, beside the member, on the running turn and in the list."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_questions import page_of, team_that_asks

from bullpen.testing.site import site

SIGNS = """() => ['.member[data-member="max"] .now', "#live header .now", "#conversations .now"]
    .map((place) => document.querySelector(`${place} .sign`)?.textContent ?? "")"""
"""The signs of the member max, of its turn, and of the conversation in the sidebar."""


async def until_signs(page: Page, *wanted: str) -> None:
    async with asyncio.timeout(30):
        while await page.evaluate(SIGNS) != list(wanted):
            await asyncio.sleep(0.05)


def test_what_waits_for_a_person_does_not_look_as_if_it_worked(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"ask": "touch a"}, {"say": "I go on."}, {"hang": True})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            await conversation.say("@max go")
            await until_signs(page, "◆", "◆", "◆")
            await expect(page).to_have_title("◆ (1) @max go · bullpen")
            await expect(page.locator('.member[data-member="max"] .what')).to_have_text("waits for you")
            await page.get_by_role("button", name="Yes", exact=True).click()
            await until_signs(page, "●", "●", "●")
            await expect(page).to_have_title("● @max go · bullpen")
            await conversation.cancel()
            await conversation.until_quiet()
            # The person who cancelled it says what is next; nothing has failed.
            await until_signs(page, "", "", "◆")
            await expect(page.locator("#decisions .decide")).to_have_count(0)
            await expect(page.locator(".unanswered summary")).to_contain_text("○ turn 1 was cancelled")

    play(story())
