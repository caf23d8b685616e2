"""A conversation on a phone: costs are there, and tables scroll instead of breaking words."""

import os
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.view.test_conflicts_in_every_door import Place
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import site
from bullpen.testing.stage import Script, put_on_path, write_team

TOUCHED_PIXELS = 24
WIDTHS = (320, 360, 390)
"""Of phones."""
GLOBAL = ["Conversations", "Usage", "Teams", "People", "Invite"]
WORDS = ("configuration", "authentication", "implementation", "responsibility", "deployment")
TABLE = f"| {' | '.join(WORDS)} |\n|{'---|' * len(WORDS)}\n| {' | '.join(WORDS)} |\n"
BROKEN = """[...document.querySelectorAll("#m2 td, #m2 th")].filter((cell) => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getClientRects().length > 1;
}).length"""


def test_costs_are_shown_and_words_in_tables_stay_whole(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Script = [{"say": TABLE}, {"usage": {"input": 1200, "output": 34}, "cost": 0.5}]
    monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, {'claude': [script]})}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')

    async def story() -> None:
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            await conversation.say("Compare them.")
            await conversation.until_quiet()
            page = await browser.new_page(viewport={"width": 390, "height": 780})
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{conversation.id}")
            for cost in ('[data-member="max"] .spent', ".total", "#m2 .spent"):
                await expect(page.locator(cost)).to_be_visible()
                await expect(page.locator(cost)).to_contain_text("$0.50")
            assert await page.evaluate(BROKEN) == 0
            table = "document.querySelector('#m2 table')"
            assert await page.evaluate(f"{table}.scrollWidth > {table}.clientWidth")
            assert await page.evaluate("document.documentElement.scrollWidth") == 390

    play(story())


def test_in_a_narrow_window_a_message_begins_with_one_line(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"reviewer": [{"say": "Good. [NEXT: kim]"}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            await conversation.say("Look at it.")
            await conversation.until_quiet()
            page = await browser.new_page(viewport={"width": 320, "height": 780})
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{conversation.id}")
            await expect(page.locator("#m2 .actions")).to_be_attached()
            who, when = [await page.locator(part).bounding_box() for part in ("#m2 h2", "#m2 .when")]
            assert who is not None
            assert when is not None
            assert who["y"] < when["y"] + when["height"] / 2 < who["y"] + who["height"]

    play(story())


def test_a_phone_that_is_turned_still_shows_the_end(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "One long sentence of many words. " * 200}]})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            await conversation.say("Go.")
            await conversation.until_quiet()
            page = await browser.new_page(viewport={"width": 780, "height": 390})
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{conversation.id}")
            await expect(page.locator("#m2 .body")).to_contain_text("sentence")
            await page.set_viewport_size({"width": 390, "height": 780})
            await page.wait_for_function(
                "window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2"
            )

    play(story())


def test_every_choice_in_a_conflict_can_be_seen_and_touched(tmp_path: Path, open_browser: OpenBrowser) -> None:
    name = "a-builder-with-a-very-long-name"
    place = Place(tmp_path)
    place.team.write_text(place.team.read_text(encoding="utf-8").replace('"ann"', f'"{name}"'), encoding="utf-8")

    async def story() -> None:
        async with site(tmp_path, place.team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            await conversation.say(f"[NEXT: {name}] Go.")
            await conversation.until_quiet()
            page = await browser.new_page(viewport={"width": 390, "height": 780})
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{conversation.id}")
            await expect(page.locator("#apart-1")).to_be_visible()
            for button in ("#take-1", "#keep-1", "#resolve-1 summary", "#apart-1"):
                await expect(page.locator(button)).to_be_in_viewport(ratio=1)
                box = await page.locator(button).bounding_box()
                assert box is not None
                assert box["height"] >= TOUCHED_PIXELS
            assert await page.evaluate("document.documentElement.scrollWidth") == 390

    play(story())


def test_it_says_why_what_was_said_last_does_not_begin_where_the_queue_is_far_away(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = put_on_path(tmp_path, {"codex": [[{"hang": True}]], "claude": [[{"say": "Done."}]]})
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    members = '[[member]]\nname = "kai"\nagent = "codex"\n[[member]]\nname = "max"\nagent = "claude"\n'
    team = tmp_path / "team.toml"
    team.write_text(f'[defaults]\npermissions = "edit"\n[[member]]\nname = "kim"\n{members}')

    async def story() -> None:
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            await conversation.say("@kai go")
            page = await browser.new_page(viewport={"width": 390, "height": 780})
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{conversation.id}")
            why = page.locator(".last-waits")
            await expect(page.locator("#live article")).to_be_visible()
            await expect(why).to_have_count(0)
            await conversation.say("@max a")
            await expect(why).to_contain_text("max waits for kai: both may edit")
            await expect(why).to_be_in_viewport(ratio=1)
            await fits(page, "the reason")
            await page.set_viewport_size({"width": 1280, "height": 780})
            await expect(why).to_be_hidden()
            await conversation.cancel()

    play(story())


async def fits(page: Page, what: str) -> None:
    """Check that nothing is wider than the page on any phone."""
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 780})
        assert await page.evaluate("document.documentElement.scrollWidth") == width, what


def test_the_header_is_the_same_on_every_page_and_a_long_message_has_the_whole_width(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": []})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await browser.new_page(viewport={"width": 390, "height": 780})
            await served.let_in(page)
            for path in ("/", "/usage", "/teams", "/people", "/nowhere"):
                await page.goto(f"{served.url}{path}")
                assert (await page.locator(".where").inner_text()).split() == GLOBAL, path
                await fits(page, path)
            here = f"{served.url}/c/{conversation.id}"
            for view in ("/timeline", "/changes", ""):
                await page.goto(f"{here}{view}")
                await page.set_viewport_size({"width": min(WIDTHS), "height": 780})
                for tab in ("Chat", "Timeline", "Changes"):
                    await expect(page.locator(".where > a", has_text=tab)).to_be_in_viewport(ratio=1)
                await page.locator(".menu summary").click()
                assert (await page.locator(".menu").inner_text()).split()[-5:] == GLOBAL, view
                await fits(page, view)
            await page.locator("#text").fill("@max please read this, which is a long message. " * 4)
            await expect(page.locator("#addressees")).to_contain_text("max")
            for width in WIDTHS:
                await page.set_viewport_size({"width": width, "height": 780})
                text, composer, send = [
                    await page.locator(one).bounding_box() for one in ("#text", "#composer", "#composer .main")
                ]
                assert text is not None
                assert composer is not None
                assert send is not None
                assert text["width"] > composer["width"] * 0.9
                assert send["y"] >= text["y"] + text["height"]

    play(story())
