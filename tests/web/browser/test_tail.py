"""The end of a conversation stays in view in a real browser, until a person scrolls away from it."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, ViewportSize, expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_questions import team_that_asks

from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import site
from bullpen.testing.stage import Script, put_on_path, write_team

DESK: ViewportSize = {"width": 1280, "height": 700}
PHONE: ViewportSize = {"width": 390, "height": 700}
both = pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
LINES = "\n\n".join(f"Line {number} of a long reply." for number in range(60))
# What a person would see now: two frames later, all has been drawn.
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
# How far the end is below the window.
FAR = f"{DRAWN}.then(() => document.documentElement.scrollHeight - innerHeight - scrollY)"


@asynccontextmanager
async def opened_page(
    team: Path, open_browser: OpenBrowser, size: ViewportSize, *, touch: bool = False
) -> AsyncIterator[tuple[Conversation, Page]]:
    """Yield a page that shows the end of a conversation that is longer than the window."""
    async with site(team.parent, team) as served, open_browser() as browser:
        conversation = (await served.hub.begin()).conversation
        for number in range(15):
            await conversation.note(f"Note {number}.")
        page = await browser.new_page(viewport=size, has_touch=touch, is_mobile=touch)
        await served.let_in(page)
        await page.goto(f"{served.url}/c/{conversation.id}")
        await expect(page.locator("#m15")).to_be_in_viewport()
        yield conversation, page


async def until(page: Page, condition: str) -> None:
    async with asyncio.timeout(60):
        while not await page.evaluate(condition):
            await asyncio.sleep(0.01)


async def shows_the_end(page: Page, last: str) -> None:
    """Check that the page is at its end, and that the end of a text is above the composer and can be read."""
    place = f"[...document.querySelectorAll({last!r})].at(-1).getBoundingClientRect().bottom"
    room = "document.querySelector('.dock').getBoundingClientRect().top + 20"
    # Something may come between two frames.
    await until(page, f"{FAR}.then((far) => far <= 1 && {place} > 0 && {place} <= {room})")
    await expect(page.locator(".jump")).to_be_hidden()


def pieces(folder: Path, name: str, texts: list[str]) -> Script:
    """Return a script that says each text when its file is there."""
    return [
        step
        for number, text in enumerate(texts)
        for step in ({"wait_for": str(folder / f"{name}-{number}")}, {"say": text})
    ]


async def says(page: Page, folder: Path, name: str, number: int, words: str) -> None:
    """Let the next piece come, and wait until it is on the page."""
    (folder / f"{name}-{number}").touch()
    await expect(page.locator("#talk")).to_contain_text(words)


@both
def test_after_yes_the_reply_is_in_view(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch, size: ViewportSize
) -> None:
    asked = "touch " + " ".join(f"a-rather-long-name-{number}.txt" for number in range(60))
    team = team_that_asks(tmp_path, monkeypatch, {"ask": asked}, {"say": LINES})

    async def story() -> None:
        async with opened_page(team, open_browser, size) as (conversation, page):
            await conversation.say("@max go")
            await expect(page.locator(".decide.question")).to_be_visible()
            await shows_the_end(page, "#live .message")
            await page.locator(".decide.question").get_by_role("button", name="Yes", exact=True).click()
            await conversation.until_quiet()
            await expect(page.locator("#messages")).to_contain_text("Line 59")
            await shows_the_end(page, "#messages .body")

    play(story())


@both
def test_of_two_agents_the_lower_one_ends_first_and_the_page_stays_at_the_end(
    tmp_path: Path, open_browser: OpenBrowser, size: ViewportSize
) -> None:
    agents: Mapping[str, Script] = {
        "sarah": pieces(tmp_path, "sarah", [f"Slow line {number}.\n\n" for number in range(24)]),
        "ada": pieces(tmp_path, "ada", [f"Quick line {number}.\n\n" for number in range(12)]),
    }

    async def story() -> None:
        async with opened_page(write_team(tmp_path, agents), open_browser, size) as (conversation, page):
            await conversation.say("[NEXT: sarah & ada] Both of you, please.")
            await expect(page.locator("#live .live")).to_have_count(2)
            for number in range(12):
                await says(page, tmp_path, "sarah", number, f"Slow line {number}.")
                await says(page, tmp_path, "ada", number, f"Quick line {number}.")
                await until(page, f"{FAR}.then((far) => far <= 1)")
            await expect(page.locator("#messages")).to_contain_text("Quick line 11.")
            await shows_the_end(page, "#live .body")
            for number in range(12, 24):
                await says(page, tmp_path, "sarah", number, f"Slow line {number}.")
                await shows_the_end(page, "#live .body") if number < 23 else None
            await expect(page.locator("#messages")).to_contain_text("Slow line 23.")
            await shows_the_end(page, "#messages .body")

    play(story())


@both
def test_who_scrolls_up_in_a_long_reply_reads_on_there_and_comes_back_by_scrolling(
    tmp_path: Path, open_browser: OpenBrowser, size: ViewportSize
) -> None:
    lines = LINES.split("\n\n")
    script = pieces(tmp_path, "max", ["\n\n".join(lines[:40]) + "\n\n", "\n\n".join(lines[40:]), "\n\nThe end."])
    line = "[...document.querySelectorAll('.body p')].find((p) => p.textContent.includes('Line 20 '))"
    read = f"{line}.getBoundingClientRect().top"

    async def story() -> None:
        async with opened_page(write_team(tmp_path, {"max": script}), open_browser, size) as (conversation, page):
            await conversation.say("[NEXT: max] Go.")
            await says(page, tmp_path, "max", 0, "Line 39 ")
            await shows_the_end(page, "#live .body p")
            place = await scrolled_up(page, 300, read)
            await says(page, tmp_path, "max", 1, "Line 59 ")
            assert abs(await page.evaluate(f"{DRAWN}.then(() => {read})") - place) <= 1
            await page.mouse.wheel(0, 9000)
            await expect(page.locator(".jump")).to_be_hidden()
            await shows_the_end(page, "#live .body p")
            place = await scrolled_up(page, 300, read)
            # It becomes a message, and other messages come.
            await says(page, tmp_path, "max", 2, "The end.")
            await expect(page.locator("#messages")).to_contain_text("The end.")
            await conversation.note("One more.")
            await expect(page.locator(".jump")).to_have_text("↓ 2 new")
            assert abs(await page.evaluate(f"{DRAWN}.then(() => {read})") - place) <= 1
            await page.locator(".jump").click()
            await shows_the_end(page, "#messages .body")

    play(story())


async def scrolled_up(page: Page, pixels: int, measured: str) -> float:
    """Turn the wheel, and return a measure of the page when it has arrived: that takes some frames."""
    width = await page.evaluate("innerWidth")
    before = await page.evaluate("scrollY")
    await page.mouse.move(width / 2, 200)
    await page.mouse.wheel(0, -pixels)
    await until(page, f"Math.abs(scrollY - {before - pixels}) < 1")
    await expect(page.locator(".jump")).to_be_visible()
    return float(await page.evaluate(f"{DRAWN}.then(() => {measured})"))


def test_what_somebody_opens_stays_in_view_and_what_comes_then_is_told(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [{"tool": {"name": "Read", "input": {"path": f"{number}.py"}, "output": "a"}} for number in range(20)]
    programs = put_on_path(tmp_path, {"claude": [[*tools, {"say": "Done."}]]})
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n', encoding="utf-8")

    async def story() -> None:
        async with opened_page(team, open_browser, DESK) as (conversation, page):
            for _ in range(2):
                await conversation.say("@max go")
                await conversation.until_quiet()
            first = page.locator("#m17 .did summary")
            await first.click()
            await expect(page.locator("#m17 .steps .step").first).to_be_in_viewport()
            await conversation.note("One more.")
            await expect(page.locator(".jump")).to_have_text("↓ 1 new")
            await expect(page.locator("#m17 .steps .step").first).to_be_in_viewport()
            await first.click()
            await expect(page.locator(".jump")).to_be_hidden()
            await shows_the_end(page, "#messages .body")

    play(story())


@both
def test_a_window_that_shrinks_and_a_page_that_is_loaded_again_show_the_end(
    tmp_path: Path, open_browser: OpenBrowser, size: ViewportSize
) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": LINES}]})
        async with opened_page(team, open_browser, size) as (conversation, page):
            await conversation.say("[NEXT: max] Go.")
            await conversation.until_quiet()
            await expect(page.locator("#messages")).to_contain_text("Line 59")
            # The composer grows while somebody writes, and the window shrinks.
            await page.get_by_label("Your message").fill("One\ntwo\nthree\nfour")
            await shows_the_end(page, "#messages .body")
            await page.set_viewport_size({"width": size["width"], "height": 400})
            await shows_the_end(page, "#messages .body")
            await page.reload()
            await shows_the_end(page, "#messages .body")

    play(story())
