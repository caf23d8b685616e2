"""Forking at a message in a real browser."""

import re
from pathlib import Path

from playwright.async_api import expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_messages import opened_page

from bullpen.testing.site import site
from bullpen.testing.stage import write_team
from bullpen.web.identity import Identity


def test_a_button_on_a_message_opens_a_conversation_that_ends_there(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Yes."}]})
        async with opened_page(team, open_browser) as (conversation, page):
            for text in ("First?", "Second?"):
                await conversation.say(text)
                await conversation.until_quiet()
            await expect(page.locator("#m4")).to_be_visible()
            answer = page.locator("#m2")
            await answer.hover()
            await answer.get_by_role("button", name="Fork here").click()
            await expect(page).to_have_url(re.compile(r"/c/forked-"))
            await expect(page.locator("article.message")).to_have_count(2)
            await expect(page).to_have_title(re.compile(r"First\? \(fork at #2\)"))
            await page.get_by_label("Your message").fill("And now?")
            await page.keyboard.press("Enter")
            await expect(page.locator("#m4 .body")).to_have_text("Yes.")
            assert conversation.message_count == 4

    play(story())


def test_a_guest_has_no_such_button(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Yes."}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            await conversation.say("First?")
            guest = await (await browser.new_context()).new_page()
            invitation = served.keys.new_invitation(Identity(role="viewer"), 60)
            await served.let_in(guest, f"{served.url}/enter/{invitation}")
            await guest.goto(f"{served.url}/c/{conversation.id}")
            await guest.locator("#m1").hover()
            await expect(guest.locator("#m1").get_by_role("button", name="Copy")).to_be_visible()
            await expect(guest.get_by_role("button", name="Fork here")).to_have_count(0)

    play(story())
