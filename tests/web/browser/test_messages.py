"""What can be done with a message in a real browser, and finding the newest one again."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import site
from bullpen.testing.stage import Script, put_on_path, write_team
from bullpen.view.decided import decisions_in

CODE = "def f():\n    return 1"
ANSWER = f"Here **it** is:\n\n```python\n{CODE}\n```\n\nAnything else?"


@asynccontextmanager
async def opened_page(team: Path, open_browser: OpenBrowser) -> AsyncIterator[tuple[Conversation, Page]]:
    async with site(team.parent, team) as served, open_browser() as browser:
        conversation = (await served.hub.begin()).conversation
        context = await browser.new_context(viewport={"width": 1280, "height": 700})
        await context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = await context.new_page()
        await served.let_in(page)
        await page.goto(f"{served.url}/c/{conversation.id}")
        yield conversation, page


async def until_copied(page: Page, text: str) -> None:
    async with asyncio.timeout(30):
        while await page.evaluate("navigator.clipboard.readText()") != text:
            await asyncio.sleep(0.02)


def test_a_message_is_copied_and_quoted_as_it_was_written(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": f"{ANSWER} [NEXT: kim]"}]})
        async with opened_page(team, open_browser) as (conversation, page):
            await conversation.say("Show it.")
            answer = page.locator("#m2")
            await answer.hover()
            await answer.get_by_role("button", name="Copy", exact=True).click()
            await until_copied(page, ANSWER)
            await answer.get_by_role("button", name="Copy code").click()
            await until_copied(page, CODE)
            box = page.get_by_label("Your message")
            await box.fill("I see.")
            await answer.get_by_role("button", name="Quote").click()
            quoted = "\n".join(f"> {line}" if line else ">" for line in ANSWER.split("\n"))
            await expect(box).to_have_value(f"I see.\n\n{quoted}\n\n")
            await box.fill("")
            await page.locator("#m2 .body strong").dblclick()
            await answer.get_by_role("button", name="Quote").click()
            await expect(box).to_have_value("> it\n\n")
            await page.reload()
            await expect(box).to_have_value("> it\n\n")

    play(story())


def test_remarks_between_tools_are_folded_and_copied(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "ok"}}
    first, second, last = "I'll look at the tests now.", "Let me run `make`.", "Two tests **fail**."
    script: Script = [{"say": first}, tool, {"say": second}, tool, {"say": last}]
    monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, {'claude': [script]})}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')

    async def story() -> None:
        async with opened_page(team, open_browser) as (conversation, page):
            await conversation.say("Look.")
            answer = page.locator("#m2")
            for _ in range(2):
                await expect(answer.locator(".body strong")).to_be_visible()
                await expect(answer.locator(".remarks p").first).to_be_hidden()
                await answer.get_by_text("2 remarks while it worked").click()
                await expect(answer.locator(".remarks p")).to_have_text([first, "Let me run make."])
                await expect(answer.locator(".remarks p").first).to_be_visible()
                await page.reload()
            await answer.hover()
            await answer.get_by_role("button", name="Copy", exact=True).click()
            await until_copied(page, f"{first}\n\n{second}\n\n{last}")

    play(story())


def test_every_button_on_a_message_is_drawn_and_nothing_is_complained_of(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": f"{ANSWER} [NEXT: kim]"}]})
        async with opened_page(team, open_browser) as (conversation, page):
            complaints: list[str] = []
            page.on("console", lambda told: complaints.append(told.text) if told.type == "error" else None)
            page.on("pageerror", lambda error: complaints.append(str(error)))
            await conversation.say("Show it.")
            await expect(page.locator("#m2")).to_be_visible()
            await page.reload()
            await expect(page.locator("#m2 .actions button")).to_have_count(5)
            drawn = await page.locator("svg path").evaluate_all("paths => paths.map((path) => path.getAttribute('d'))")
            assert len(drawn) >= 9
            assert not [drawing for drawing in drawn if not re.match("[Mm][ 0-9.-]", drawing)]
            widths = await page.locator(".message .actions button:not(.all) svg").evaluate_all(
                "drawings => drawings.map((drawing) => drawing.querySelector('path').getBBox().width)"
            )
            assert all(widths)
            assert complaints == []

    play(story())


def test_time_and_cost_of_a_message_are_below_it_live_and_after_a_reload(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    script: Script = [{"say": "Done."}, {"usage": {"input": 1200, "output": 34}, "cost": 0.5}]
    monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, {'claude': [script]})}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')

    async def story() -> None:
        async with opened_page(team, open_browser) as (conversation, page):
            await conversation.say("Go.")
            spent = re.compile(r"^[\d.]+ s · 1\.2k tokens · \$0\.50$")
            await expect(page.locator("#m2 .spent")).to_have_text(spent)
            await page.reload()
            await expect(page.locator("#m2 .spent")).to_have_text(spent)

    play(story())


def test_what_it_did_is_only_offered_if_it_did_something_and_opens_in_place(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools: Script = [{"tool": {"name": "Bash", "input": {"command": f"make {n}"}, "output": "ok"}} for n in range(5)]
    scripts: list[Script] = [[{"say": "Hello."}], [*tools, {"say": "Done.\n\n" * 12}]]
    monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, {'claude': scripts})}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')

    async def story() -> None:
        async with opened_page(team, open_browser) as (conversation, page):
            for number in (2, 4):
                await conversation.say("Go.")
                await expect(page.locator(f"#m{number} footer")).to_contain_text("What it was given")
                await conversation.until_quiet()
            for _ in range(2):
                await expect(page.locator("#m2 .did")).to_have_count(0)
                await expect(page.locator("#m4 .did")).to_have_count(1)
                await page.reload()
            summary, given = page.locator("#m4 .did > summary"), page.locator("#m4 footer > a")
            places = [await one.evaluate("one => one.offsetTop") for one in (summary, given)]
            await summary.click()
            await expect(page.locator("#m4 .steps .step")).to_have_count(5)
            assert [await one.evaluate("one => one.offsetTop") for one in (summary, given)] == places
            bottom, top = (
                f"document.querySelector('{one}').getBoundingClientRect()" for one in ("#m4 .steps", ".dock")
            )
            async with asyncio.timeout(30):
                while not await page.evaluate(f"{bottom}.bottom <= {top}.top + 1"):
                    await asyncio.sleep(0.02)

    play(story())


def test_a_note_is_called_a_note_live_and_after_a_reload(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with opened_page(write_team(tmp_path, {"max": [{"say": "ok"}]}), open_browser) as (conversation, page):
            await conversation.note("The deadline is Friday.")
            await conversation.say("Go.")
            await conversation.until_quiet()
            for _ in range(2):
                await expect(page.locator("#m1 .to")).to_have_text("a note: nobody was asked")
                await expect(page.locator("#m2 .to")).to_have_text("to max")
                await page.reload()

    play(story())


def test_who_reads_above_is_told_what_came_and_is_one_click_from_it(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "ok"}]}, people=("kim", "lee"))
        async with opened_page(team, open_browser) as (conversation, page):
            for number in range(20):
                await conversation.say(f"[NEXT: lee] number {number}", sender="kim")
            jump = page.locator(".jump")
            await expect(page.locator("#m20")).to_be_in_viewport()
            await expect(jump).to_be_hidden()
            await page.evaluate("scrollTo(0, 0)")
            await expect(jump).to_be_visible()
            await expect(jump).to_have_text("↓ Newest")
            for number in (1, 2):
                await conversation.say(f"[NEXT: lee] new {number}", sender="kim")
                await expect(jump).to_have_text(f"↓ {number} new")
            await jump.click()
            await expect(page.locator("#m22")).to_be_in_viewport()
            await expect(jump).to_be_hidden()
            # What somebody writes comes into view wherever they were.
            await page.evaluate("scrollTo(0, 0)")
            await page.get_by_label("Your message").fill("[NEXT: lee] mine")
            await page.get_by_label("Your message").press("Enter")
            await expect(page.locator("#m23")).to_be_in_viewport()

    play(story())


def test_who_is_chosen_to_speak_also_decides(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"stderr": "no"}, {"exit": 3}]}, people=("kim", "lee"))
        async with opened_page(team, open_browser) as (conversation, page):
            await conversation.say("[NEXT: max] Go.", sender="kim")
            await page.locator("#composer select").select_option("lee")
            await page.get_by_role("button", name="Skip").click()
            await expect(page.locator(".decide")).to_have_count(0)
            [decided] = await conversation.read(decisions_in)
            assert decided.person == "lee"

    play(story())
