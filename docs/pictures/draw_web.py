"""Draw the pictures of the pages from a conversation of scripted agents: `python -m docs.pictures.draw_web`."""

import asyncio
import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from docs.pictures.stage import SCRIPTS, TEAM
from playwright.async_api import Browser, async_playwright

from bullpen.testing.site import Site, site
from bullpen.testing.stage import put_on_path

HERE = Path(__file__).parent
OTHERS = ("Why is the checkout page so slow since Tuesday?", "Write the release notes for 2.4.")
QUESTION = "The login forgets everybody when the server restarts. Please fix that, with a test."
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


async def draw(folder: Path, chromium: str) -> None:
    """Let the team play, and take pictures."""
    os.environ["PATH"] = f"{put_on_path(folder, SCRIPTS)}{os.pathsep}{os.environ['PATH']}"
    os.environ["XDG_STATE_HOME"] = os.environ["BULLPEN_HOME"] = str(folder / "home")
    # Where the agents keep their sessions.
    os.environ["CLAUDE_CONFIG_DIR"] = os.environ["CODEX_HOME"] = str(folder / "sessions")
    team = folder / "shop" / "team.toml"
    team.parent.mkdir()
    team.write_text(TEAM, encoding="utf-8")
    async with site(folder, team) as served, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for text in OTHERS:
            beside = await served.hub.begin()
            await beside.conversation.note(text)
            await served.hub.release(beside.conversation.id)
        opened = await served.hub.begin()
        here = f"/c/{opened.conversation.id}"
        live = asyncio.create_task(picture_of(served, browser, here, "web-live", wait_for="#turn-4 .body pre .k-gi"))
        await asyncio.sleep(1.5)
        await opened.conversation.say(QUESTION)
        await live
        await opened.conversation.until_quiet()
        await picture_of(served, browser, f"{here}/timeline", "web-timeline", height=560)
        await picture_of(served, browser, f"{here}/prompt/turn-4?beside=turn-2", "web-prompts")
        await picture_of(served, browser, here, "web-phone", width=390, height=780, dark=True)
        await browser.close()


async def picture_of(
    served: Site,
    browser: Browser,
    path: str,
    name: str,
    *,
    wait_for: str = "main",
    width: int = 1440,
    height: int = 860,
    dark: bool = False,
) -> None:
    """Write what a browser shows at a path, once something is there."""
    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page = await context.new_page()
    await served.let_in(page)
    await page.goto(f"{served.url}{path}")
    await page.wait_for_selector(wait_for, timeout=60_000)
    # Text still arrives; a moment in which the page has settled at its end.
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)" if wait_for != "main" else "0")
    await page.screenshot(path=HERE / f"{name}.png")
    await context.close()


def main() -> None:
    """Draw every picture."""
    chromium = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if chromium is None:
        print("There is no Chromium here, so the pictures stay as they are.", file=sys.stderr)
        return
    with TemporaryDirectory() as folder:
        asyncio.run(draw(Path(folder), chromium))


if __name__ == "__main__":
    main()
