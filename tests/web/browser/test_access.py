"""A page whose server restarts, or which is not signed in any more: it says what to do, and goes on by itself."""

from pathlib import Path

import pytest
from playwright.async_api import expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import site
from bullpen.testing.stage import write_team


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
                await served.let_in(page)
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
                    await served.let_in(other)
                await page.get_by_role("button", name="Continue it here").click()
                await expect(page.get_by_label("Your message")).to_have_value("Half a sen")

    play(story())


def test_a_used_address_says_so_in_a_page_of_ours(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            address = served.new_url()
            page, other = [await (await browser.new_context()).new_page() for _ in range(2)]
            await other.goto(address)
            await served.let_in(page, address)
            await expect(page.get_by_role("heading", level=1)).to_have_text("Conversations")
            # Somebody who had it open before presses the button now.
            await other.get_by_role("button", name="Sign in").click()
            await expect(other.get_by_role("heading", level=1)).to_have_text("This address has been used")
            await other.goto(address)
            await expect(other.get_by_role("heading", level=1)).to_have_text("This address has been used")

    play(story())


def test_a_lost_connection_covers_nothing_and_stops_the_clocks(tmp_path: Path, open_browser: OpenBrowser) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Let me think."}, {"hang": True}]})
    # Two clocks read at the same moment, so that no time is asserted.
    clocks = "() => [...document.querySelectorAll('[data-since]')].map((one) => one.textContent)"

    async def story() -> None:
        async with open_browser() as browser:
            page = await (await browser.new_context(viewport={"width": 1400, "height": 800})).new_page()
            warnings: list[str] = []
            page.on("console", lambda told: warnings.append(told.text))
            async with site(tmp_path, team) as served:
                opened = await served.hub.begin()
                await served.let_in(page)
                await page.goto(f"{served.url}/c/{opened.conversation.id}")
                await opened.conversation.say("Hello?")
                await expect(page.locator("#live .body")).to_contain_text("Let me think.")
                await page.context.set_offline(True)
                await page.evaluate("connection.isLost()")
                await expect(page.locator("#connection")).to_contain_text("The server cannot be reached")
                notices = await page.locator(".notices").bounding_box()
                assert notices is not None
                for part in (".sidebar-top", "#task-title", "#live .body", "#composer"):
                    box = await page.locator(part).bounding_box()
                    assert box is not None
                    is_beside = box["x"] >= notices["x"] + notices["width"] or box["x"] + box["width"] <= notices["x"]
                    is_below = box["y"] >= notices["y"] + notices["height"]
                    assert is_beside or is_below or box["y"] + box["height"] <= notices["y"], part
                await page.evaluate(
                    "document.querySelectorAll('[data-since]').forEach((one) => { one.dataset.since = 0; })"
                )
                before = await page.evaluate(clocks)
                await page.evaluate("count()")
                assert await page.evaluate(clocks) == before
                await page.evaluate("connection.isBack(); count()")
                assert await page.evaluate(clocks) != before
                await page.context.set_offline(False)
                await page.get_by_role("button", name="Cancel").first.click()
                await opened.conversation.until_quiet()
                assert not [told for told in warnings if "hx-include" in told]

    play(story())
