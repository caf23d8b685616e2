"""Being told that one is needed: in the title of every tab, and by a notification if the page is hidden."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, write_team

# No tab is hidden in a browser without windows, and nobody sees its notifications: both are played.
PLAYED = """
  let isHidden = false;
  Object.defineProperty(Document.prototype, "hidden", { get: () => isHidden });
  window.hide = (now) => { isHidden = now; document.dispatchEvent(new Event("visibilitychange")); };
  window.shown = [];
  window.Notification = class {
    static permission = "default";
    static async requestPermission() { return (this.permission = "granted"); }
    constructor(title, options) { window.shown.push([title, options.body]); }
  };
"""


async def tab(context: BrowserContext, served: Site, path: str) -> Page:
    page = await context.new_page()
    page.set_default_timeout(60_000)
    await page.add_init_script(PLAYED)
    await page.goto(f"{served.url}{path}")
    return page


async def entered(browser: Browser, served: Site) -> BrowserContext:
    context = await browser.new_context()
    page = await context.new_page()
    await served.let_in(page)
    await page.close()
    return context


def test_the_title_counts_in_every_tab_also_in_hidden_ones(tmp_path: Path, open_browser: OpenBrowser) -> None:
    fails: Script = [{"say": "I began."}, {"exit": 3}]

    async def story() -> None:
        team = write_team(tmp_path, {"max": fails, "sarah": fails})
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened, other = await served.hub.begin(), await served.hub.begin()
            context = await entered(browser, served)
            front = await tab(context, served, f"/c/{opened.conversation.id}")
            listed = await tab(context, served, "/")
            hidden = [await tab(context, served, f"/c/{opened.conversation.id}") for _ in range(3)]
            for page in hidden:
                await page.evaluate("hide(true)")
            assert "(" not in await front.title()
            await opened.conversation.say("[NEXT: max & sarah] Go.")
            for page in (front, *hidden, listed):
                await expect(page).to_have_title(
                    "(2) Conversations · bullpen" if page is listed else "✗ (2) Go. · bullpen"
                )
            # What another conversation needs is counted where all of them are.
            await other.conversation.say("[NEXT: max] Me, too.")
            await expect(listed).to_have_title("(3) Conversations · bullpen")
            for turn in ("1", "2"):
                await opened.conversation.skip(turn)
            for page in (front, *hidden):
                await expect(page).not_to_have_title("✗ (2) Go. · bullpen")
            # The tab that listens for all of them is closed; another one takes over.
            await front.close()
            await opened.conversation.say("[NEXT: max] Again.")
            for page in hidden:
                await expect(page).to_have_title("✗ (1) Go. · bullpen")

    play(story())


@pytest.mark.parametrize(("is_hidden", "wants", "count"), [(True, True, 1), (False, True, 0), (True, False, 0)])
def test_a_notification_is_shown_only_to_whom_wants_it_and_does_not_look(
    is_hidden: bool, wants: bool, count: int, tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Done. What do you think?"}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await tab(await entered(browser, served), served, f"/c/{opened.conversation.id}")
            if wants:
                await page.get_by_text("More", exact=True).click()
                await page.get_by_role("button", name="Notify me when I am needed").click()
                await expect(page.locator("#notify")).to_have_text("Stop notifying me")
            await page.evaluate(f"hide({str(is_hidden).lower()})")
            await opened.conversation.say("Please do it.")
            await expect(page).to_have_title("◆ (1) Please do it. · bullpen")
            shown = await page.evaluate("shown")
            assert shown == [["Please do it.", "It waits for you, kim."]] * count

    play(story())
