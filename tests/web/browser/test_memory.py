"""What an agent remembers, beside its name, and the button that makes it forget."""

import re
from pathlib import Path

from playwright.async_api import expect
from tests.view.remembering import GONE, SECOND, TEAM, write_remembering
from tests.web.browser.stage import OpenBrowser, play

from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import site


def test_the_session_of_a_member_is_shown_and_forgotten_with_a_button(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    team = tmp_path / "team.toml"
    team.write_text(TEAM, encoding="utf-8")
    with SqliteStore(tmp_path / "conversations.db") as store:
        id_ = write_remembering(store, team_path=str(team))

    async def story() -> None:
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.resume(id_)
            page = await (await browser.new_context()).new_page()
            page.set_default_timeout(60_000)
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{id_}")
            await expect(page.locator(".message .rebuilt")).to_have_text(f"rebuilt: {GONE}")
            await expect(page.locator("#m6 .rebuilt")).to_be_visible()
            max_ = page.locator('.member[data-member="max"]')
            await max_.get_by_text("remembers 2 turns · 12k tokens").click()
            await expect(max_.locator("code")).to_have_text(SECOND)
            await max_.get_by_role("button", name="Forget it").click()
            await expect(max_).to_contain_text("forgets it in its next turn")
            assert opened.conversation.progress.forgotten == {"max": "kim"}
            await max_.get_by_text(re.compile("remembers 2 turns")).click()
            await expect(max_).to_contain_text("Its next turn begins a new one: kim made it forget.")
            await expect(max_.get_by_role("button", name="Forget it")).to_have_count(0)

    play(story())
