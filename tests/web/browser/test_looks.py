"""Pages for everybody: read aloud, by keyboard, on a phone, in the dark."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

from playwright.async_api import Page
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import site
from bullpen.testing.stage import Script, write_team
from bullpen.web.teams import team_key

ANSWER = "# Done\n\n```python\ndef f(x: int) -> str:  # why\n    return 'text' + str(1)\n```\n\n"
ANSWER += "| a | b |\n|-|-|\n| 1 | 2 |\n\n"
ANSWER += "> quoted, `code`, [link](https://example.com)\n\n" + "a-very-long-word" * 30
AGENTS: dict[str, Script] = {
    "max": [{"say": ANSWER}, {"say": "[NEXT: sarah]"}],
    "sarah": [{"say": "I began, and "}, {"exit": 3}],
    "ada": [{"hang": True}],
}


@asynccontextmanager
async def pages(
    folder: Path, open_browser: OpenBrowser, width: int, scheme: Literal["light", "dark"]
) -> AsyncIterator[AsyncIterator[tuple[str, Page]]]:
    """Yield every kind of page there is, with a turn at work, one to decide about, and a queue."""
    async with site(folder, write_team(folder, AGENTS)) as served, open_browser() as browser:
        opened = await served.hub.begin()
        conversation = opened.conversation
        await conversation.say("Please do it.")
        await conversation.until_quiet()
        await conversation.say("[NEXT: ada, max] And now?")
        while not conversation.running:
            await asyncio.sleep(0.01)
        context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = await context.new_page()
        await served.let_in(page)
        here = f"/c/{conversation.id}"
        paths = ["/", "/?q=done", here, f"{here}/timeline", f"{here}/prompt/turn-1", "/c/no-such"]
        paths.append(f"{here}/prompt/next-max?beside=next-sarah")
        (team,) = await served.hub.team_files()
        paths += ["/teams", f"/teams/{team_key(team)}", "/?archived=1", "/people", "/usage"]

        async def each() -> AsyncIterator[tuple[str, Page]]:
            for path in paths:
                await page.goto(f"{served.url}{path}")
                yield path, page

        yield each()


BROKEN_WORDS = """() => {
  const broken = [];
  for (const cell of document.querySelectorAll("table.seen :is(th, td)")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.data.matchAll(/\\w+/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((one) => Math.round(one.top))).size > 1) broken.push(word[0]);
      }
    }
  }
  return broken;
}"""


def test_nothing_is_wider_than_a_phone_and_no_table_breaks_a_word_on_one(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> list[str]:
        found: list[str] = []
        async with pages(tmp_path, open_browser, 768, "light") as every:
            async for path, page in every:
                for width in (768, 390, 320):
                    await page.set_viewport_size({"width": width, "height": 800})
                    wide = await page.evaluate("document.documentElement.scrollWidth")
                    found += [f"{path} is {wide} wide, not {width}"] if wide > width else []
                    words = await page.evaluate(BROKEN_WORDS) if width == 390 else []
                    found += [f"{path} breaks {word}" for word in words]
        return found

    assert play(story()) == []


def test_everything_can_be_reached_by_keyboard(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with pages(tmp_path, open_browser, 1280, "light") as every:
            async for path, page in every:
                can_act = await page.evaluate(
                    "document.querySelectorAll('a[href],button,summary,input:not([type=hidden]),textarea,select').length"
                )
                assert can_act > 0
                reached = 0
                for _ in range(can_act + 5):
                    await page.keyboard.press("Tab")
                    reached += await page.evaluate(
                        """() => {
                             const one = document.activeElement;
                             const fresh = one !== document.body && !one.reached;
                             one.reached = true;
                             return Number(fresh);
                           }"""
                    )
                visible = await page.evaluate(
                    """[...document.querySelectorAll('a[href],button,summary,input:not([type=hidden]),textarea,select')]
                         .filter((one) => one.checkVisibility()).length"""
                )
                assert reached >= visible, path

    play(story())


def test_the_sidebar_holds_what_is_in_it(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> list[str]:
        folder = tmp_path / ("a-folder-with-a-very-long-name" * 3)
        folder.mkdir()
        async with site(folder, write_team(folder, {"max": [{"hang": True}]})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            await opened.conversation.say("A rather long first message, which is the title of this conversation")
            page = await (await browser.new_context(viewport={"width": 1440, "height": 800})).new_page()
            await served.let_in(page)
            await page.goto(f"{served.url}/c/{opened.conversation.id}")
            found = await page.evaluate(
                """() => {
                     const edge = document.getElementById("sidebar").getBoundingClientRect().right;
                     return [...document.querySelectorAll("#sidebar li a")]
                       .filter((one) => one.getBoundingClientRect().right > edge).map((one) => one.textContent);
                   }"""
            )
            return list(found)

    assert play(story()) == []
