"""Checks in a real browser: live while they run, red and green below the message, unfolded with a click, harmless."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Page, expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_axe import findings
from tests.web.browser.test_hostile import Witness, payloads

from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import Site, site

BREAKS_THEN_MENDS = """
import pathlib, sys
sys.stdin.read()
calc = pathlib.Path("calc.py")
text = calc.read_text()
calc.write_text("right" if text == "broken" else "broken")
print("I changed the sum.")
"""
CHECKS = """
import pathlib, sys, time
go = pathlib.Path(sys.argv[1])
while not go.exists():
    time.sleep(0.02)
print(pathlib.Path(sys.argv[2]).read_text())
sys.exit(pathlib.Path("calc.py").read_text() == "broken")
"""
PICTURES = os.environ.get("BULLPEN_PICTURES")
"""A folder for pictures of the pages, for people who want to look at them."""


@asynccontextmanager
async def workshop(
    folder: Path, open_browser: OpenBrowser, output: str
) -> AsyncIterator[tuple[Site, Page, Conversation, Path]]:
    """Yield a site with an agent that breaks a file and then mends it, a signed-in page, and a conversation."""
    repository, go, written = folder / "repository", folder / "go", folder / "written"
    repository.mkdir()
    written.write_text(output, encoding="utf-8")
    (repository / "calc.py").write_text("right")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=k", "-c", "user.email=k@k", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    builds = json.dumps([sys.executable, "-c", BREAKS_THEN_MENDS])
    checks = json.dumps([sys.executable, "-c", CHECKS, str(go), str(written)])
    team = repository / "team.toml"
    team.write_text(
        f'name = "shop"\nlead = "max"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\npermissions = "edit"\n'
        f'command = {builds}\n[[check]]\nname = "pytest"\ncommand = {checks}\non_red = "return"\n'
        '[[check]]\nname = "lint"\ncommand = ["true"]\n',
        encoding="utf-8",
    )
    async with site(folder, team) as served, open_browser() as browser:
        page = await (await browser.new_context(viewport={"width": 1200, "height": 900})).new_page()
        page.set_default_timeout(60_000)
        await served.let_in(page)
        yield served, page, (await served.hub.begin()).conversation, go


async def picture(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=Path(PICTURES) / f"{name}.png")


def test_red_and_green_come_live_and_unfold(tmp_path: Path, open_browser: OpenBrowser, axe: str) -> None:
    async def story() -> None:
        output = "test_calc.py F\n\nE   assert -1 == 3\n" + "a long line " * 60
        async with workshop(tmp_path, open_browser, output) as (served, page, talk, go):
            await page.goto(f"{served.url}/c/{talk.id}")
            await talk.say("Please do it.", sender="kim")
            running = page.locator("#m2 > .check")
            await expect(running.locator("summary")).to_have_text("… pytest: running")
            await expect(page.locator("#side .checking")).to_contain_text("pytest checks what max changed")
            await running.locator("summary").click()
            await picture(page, "running")
            go.touch()
            red = page.locator("#m2 > .check.red")
            await expect(red.locator("summary")).to_contain_text("pytest: red (exit 1)")
            # It was open while it ran, and still is.
            await expect(red.locator("pre")).to_contain_text("E   assert -1 == 3")
            await expect(page.locator("#m2 > .check.green summary")).to_contain_text("lint: green")
            await expect(page.locator("#m3")).to_contain_text("goes back to max")
            await expect(page.locator("#m4 > .check.green")).to_have_count(2)
            await expect(page.locator("#side .checking")).to_have_count(0)
            await talk.until_quiet()
            shown = await page.locator("#messages .check summary").all_inner_texts()
            await page.reload()
            await expect(page.locator("#messages .check")).to_have_count(4)
            assert await page.locator("#messages .check summary").all_inner_texts() == shown
            await expect(page.locator("#m2 > .check.red pre")).to_be_hidden()
            await page.locator("#m2 > .check.red summary").focus()
            await page.keyboard.press("Enter")
            await expect(page.locator("#m2 > .check.red pre")).to_be_visible()
            for width in (1200, 360):
                await page.set_viewport_size({"width": width, "height": 900})
                await picture(page, f"red-{width}")
                wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
                assert not await page.evaluate(wide)
            assert await findings(page, axe) == []

    play(story())


def test_a_check_is_cancelled_with_a_click(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with workshop(tmp_path, open_browser, "") as (served, page, talk, _):
            await page.goto(f"{served.url}/c/{talk.id}")
            await talk.say("Please do it.", sender="kim")
            await page.locator("#side .checking button").click()
            await expect(page.locator("#m2 > .check summary")).to_contain_text("pytest: cancelled after")
            await expect(page.locator("#m3")).to_have_count(0)

    play(story())


def test_what_a_check_writes_is_text(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        output = "\n".join(payloads()[:40])
        async with workshop(tmp_path, open_browser, output) as (served, page, talk, go):
            witness = Witness(page, served.url)
            await page.goto(f"{served.url}/c/{talk.id}")
            go.touch()
            await talk.say("Please do it.", sender="kim")
            await page.locator("#m2 > .check.red summary").click()
            await expect(page.locator("#m2 > .check.red pre")).to_contain_text("pwned")
            await page.reload()
            await page.locator("#m2 > .check.red summary").click()
            await expect(page.locator("#m2 > .check.red pre")).to_contain_text("pwned")
            assert await page.locator("#m2 > .check.red pre *").count() == 0
            await witness.nothing_happened(page)

    play(story())
