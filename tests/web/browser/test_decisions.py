"""What waits for a person: a row each, which covers nothing, also when there are several on a phone."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.conversation.owner import this_process
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, write_team

LONG = "It could not reach the service that it needs, although it tried for quite a while. " * 4
FAILS: Script = [{"say": "I began with it. "}, {"stderr": LONG}, {"exit": 3}]


async def page_of(served: Site, browser: Browser, path: str, width: int) -> Page:
    page = await (await browser.new_context(viewport={"width": width, "height": 844})).new_page()
    page.set_default_timeout(60_000)
    await served.let_in(page)
    await page.goto(f"{served.url}{path}")
    return page


async def where(page: Page, selector: str) -> list[tuple[float, float]]:
    """Return top and bottom of everything that matches."""
    found = await page.evaluate(
        """(selector) => [...document.querySelectorAll(selector)].filter((one) => one.checkVisibility())
             .map((one) => [one.getBoundingClientRect().top, one.getBoundingClientRect().bottom])""",
        selector,
    )
    return [(top, bottom) for top, bottom in found]


def failure_of(page: Page, member: str) -> Locator:
    """Return the row of one member; which of them fails first is up to the machine."""
    return page.locator(".decide").filter(has=page.locator(".about summary", has_text=member))


async def until_nothing_is_covered(page: Page, width: int) -> None:
    """Wait until everything has its place after a change of the width."""
    await page.set_viewport_size({"width": width, "height": 844})
    async with asyncio.timeout(30):
        while True:
            ((dock, _),) = await where(page, ".dock")
            (*_, (_, last)) = await where(page, "#messages > *")
            rows = await where(page, ".decide")
            touched = await where(page, ".decide button, #composer")
            if (
                # The dock begins with a gradient of 20 pixels.
                last <= dock + 25
                and all(bottom - top < (70 if width > 640 else 125) for top, bottom in rows)
                and all(top > 0 and bottom < 844 for top, bottom in touched)
            ):
                return


def test_three_failures_fit_and_cover_nothing(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": FAILS, "sarah": FAILS, "ada": FAILS})
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}", 1440)
            await opened.conversation.say("[NEXT: max & sarah & ada] " + "Please do all of this.\n\n" * 30)
            await expect(page.locator(".decide")).to_have_count(3)
            for width in (1440, 820, 390):
                await until_nothing_is_covered(page, width)
            # Two other agents could answer: who they are opens with a click.
            await failure_of(page, "max").locator("summary", has_text="Hand over").click()
            await expect(page.get_by_role("button", name="Hand over to sarah")).to_be_visible()
            await page.locator(".decide .about summary").first.click()
            await expect(page.locator(".decide .about[open]")).to_contain_text("I began with it.")

    play(story())


@pytest.mark.parametrize("width", [1440, 390])
def test_the_sentence_of_one_failure_is_whole_without_a_click(
    width: int, tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        fails: Script = [{"stderr": "It could not reach the service that it needs: no route to the host."}, {"exit": 3}]
        async with site(tmp_path, write_team(tmp_path, {"max": fails})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}", width)
            await opened.conversation.say("Go.")
            sentence = page.locator(".decide .what")
            await expect(sentence).to_contain_text("no route to the host")
            assert await sentence.evaluate(
                "(it) => [it.scrollWidth - it.clientWidth, it.scrollHeight - it.clientHeight]"
            ) == [0, 0]

    play(story())


def test_a_cancelled_turn_is_one_decision(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        agents: dict[str, Script] = {"max": [{"say": "I began."}, {"hang": True}], "sarah": [{"say": "Mine."}]}
        async with site(tmp_path, write_team(tmp_path, agents)) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}", 390)
            await opened.conversation.say("[NEXT: max, sarah] Go.")
            await page.get_by_role("button", name="Cancel").click()
            await expect(page.locator(".decide")).to_have_count(1)
            # Nothing has failed: a person wanted it.
            await expect(page.locator(".decide.bad")).to_have_count(0)
            await expect(page.locator(".decide button")).to_have_text(["1 Continue", "Drop the queue", "2 Retry"])
            await page.get_by_role("button", name="Continue").click()
            await expect(page.locator("#messages")).to_contain_text("Mine.")
            await expect(page.locator(".decide")).to_have_count(0)

    play(story())


def test_a_click_is_not_lost_when_the_state_changes_in_its_middle(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": FAILS, "sarah": FAILS, "ada": FAILS})
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}", 1440)
            await opened.conversation.say("[NEXT: max & sarah & ada] Please do all of this.")
            await expect(page.locator(".decide")).to_have_count(3)
            # What is open here is not open in what the server sends.
            await failure_of(page, "ada").locator(".about summary").click()
            await failure_of(page, "max").locator("summary", has_text="Hand over").hover()
            await page.mouse.down()
            await opened.conversation.set_task("Something else")
            await expect(page.locator("#task-edit summary")).to_have_text("Something else")
            await page.mouse.up()
            await expect(page.get_by_role("button", name="Hand over to sarah")).to_be_visible()

    play(story())


@pytest.mark.parametrize("yes", [True, False], ids=["allowed", "not allowed"])
def test_a_hand_over_to_full_permissions_is_one_click(yes: bool, tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Do it. [NEXT: ada]"}], "ada": [{"say": "I have done it."}]})
        team.write_text(f'{team.read_text(encoding="utf-8")}permissions = "full"\n', encoding="utf-8")
        async with site(tmp_path, team) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}", 390)
            await opened.conversation.say("Go.")
            await expect(page.locator(".decide")).to_have_count(1)
            await expect(page.locator(".decide .about")).to_have_text(
                "max hands over to ada, which has full permissions (turn 2). That needs your yes."
            )
            await expect(page.locator(".decide button")).to_have_text(["1 Allow", "3 Don't allow"])
            # What lets an agent do anything is not what a page puts forward.
            await expect(page.locator(".decide button.main")).to_have_count(0)
            await page.get_by_role("button", name="Allow" if yes else "Don't allow", exact=True).click()
            await expect(page.locator(".decide")).to_have_count(0)
            await opened.conversation.until_quiet()
            (newest,) = await opened.conversation.messages(limit=1)
            assert newest.message.content == ("I have done it." if yes else "Do it. [NEXT: ada]")

    play(story())


def test_what_another_process_takes_is_only_read_here_and_opened_again_later(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": FAILS})
        async with site(tmp_path, team) as served, open_browser() as browser:
            talk = (await served.hub.begin()).conversation
            page = await page_of(served, browser, f"/c/{talk.id}", 1440)
            await talk.say("Please do all of this.")
            await expect(page.locator(".decide")).to_have_count(1)
            other, us = SqliteStore(tmp_path / "conversations.db"), this_process()
            assert other.claim(talk.id, us, is_alive=lambda _: False)
            await page.get_by_role("button", name="Skip").click()
            # Nothing is offered that cannot be decided, and the page says where it can.
            await expect(page.locator(".decide")).to_have_count(0)
            await expect(page.locator(".closed")).to_contain_text("It is open in process")
            other.release(talk.id, us)
            other.close()
            await page.reload()
            await page.get_by_role("button", name="Continue it here").click()
            await expect(page.get_by_label("Your message")).to_be_visible()
            await expect(page.locator(".decide")).to_have_count(1)

    play(story())
