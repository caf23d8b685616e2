"""A reply while it is written, in a real browser: rendered at once, sent once, and no line jumps when it is done."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from playwright.async_api import Browser, Page

from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, write_team

OpenBrowser = Callable[[], AbstractAsyncContextManager[Browser]]
MOST_RAW = 20
TEXT = """The session was kept **in memory only**, so a restart logged *all* out. I moved it into `store.sessions`:

```python
def restore(store: Store, cookie: str) -> Session | None:
    return None if row is None else row.session
```

## What changed
Two things, see [the docs](https://example.com/docs?a=b):
- the cookie holds **256 bits**, and the store only their hash
- `test_restart.py` logs in, restarts, and is still logged in

| name | what it **does** |
|---|---|
| a | `x` |

> Sessions survive a restart.

Shall it be 14 days, as the docs say?"""

# Looks at the turn after every change of the page, and remembers what was seen; how the last look was is kept, too.
WATCH = """() => {
  window.seen = [];
  // A text without what scripts add to it.
  const plainCopy = (body) => {
    const copy = body.cloneNode(true);
    for (const button of copy.querySelectorAll("button")) button.remove();
    for (const wrap of copy.querySelectorAll(".open, .code-frame")) wrap.replaceWith(...wrap.childNodes);
    return copy;
  };
  window.plain = (body) => plainCopy(body).innerHTML.trim();
  window.words = (body) => plainCopy(body).textContent.replace(/\\s+/g, "");
  const look = () => {
    const body = document.querySelector("#turn-1 .body");
    if (!body) return;
    window.seen.push(window.words(body));
    window.last = { html: window.plain(body), bottom: body.getBoundingClientRect().bottom };
  };
  const everything = { childList: true, subtree: true, characterData: true };
  new MutationObserver(look).observe(document.getElementById("live"), everything);
}"""


async def page_of(served: Site, browser: Browser, path: str) -> Page:
    page = await (await browser.new_context()).new_page()
    page.set_default_timeout(60_000)
    await served.let_in(page)
    await page.goto(f"{served.url}{path}")
    return page


def raw_characters(seen: list[str], final: str) -> int:
    """Return how many characters were at most shown otherwise than in the end."""

    def raw(shown: str) -> int:
        pairs = enumerate(zip(shown, final, strict=False))
        return len(shown) - next((at for at, (one, other) in pairs if one != other), min(len(shown), len(final)))

    return max(map(raw, seen))


def test_text_is_rendered_while_it_is_written_and_nothing_jumps_at_the_end(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    """300 characters a second, as a fast model writes them."""
    script: Script = [{"say": TEXT, "chunk": 6, "delay": 0.02}]

    async def story() -> None:
        async with site(tmp_path, write_team(tmp_path, {"max": script})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            asked_for: list[str] = []
            page.on("request", lambda request: asked_for.append(request.url.removeprefix(served.url)))
            await page.evaluate(WATCH)
            await opened.conversation.say("Go.")
            await page.wait_for_selector("#m2 .body")
            seen = await page.evaluate("window.seen")
            final = await page.evaluate("words(document.querySelector('#m2 .body'))")
            last = await page.evaluate("window.last")
            bottom = await page.evaluate("document.querySelector('#m2 .body').getBoundingClientRect().bottom")
            assert raw_characters(seen, final) <= MOST_RAW
            assert len(set(seen)) > 10
            assert last["html"] == await page.evaluate("plain(document.querySelector('#m2 .body'))")
            assert abs(last["bottom"] - bottom) < 2
            # It all came through the stream.
            assert [path for path in asked_for if "/newer" in path or "/live" in path] == []

    asyncio.run(story())


def test_what_somebody_has_selected_stays_selected(tmp_path: Path, open_browser: OpenBrowser) -> None:
    script: Script = [{"say": "One two three. " * 200, "chunk": 10, "delay": 0.02}]

    async def story() -> str:
        async with site(tmp_path, write_team(tmp_path, {"max": script})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            await opened.conversation.say("Go.")
            await page.wait_for_selector("#turn-1 .open p")
            await page.evaluate(
                """() => {
                     const text = document.querySelector("#turn-1 .open p").firstChild;
                     getSelection().setBaseAndExtent(text, 0, text, 3);
                   }"""
            )
            length = await page.evaluate("document.querySelector('#turn-1 .body').textContent.length")
            while await page.evaluate("document.querySelector('#turn-1 .body').textContent.length") < length + 200:
                await asyncio.sleep(0.02)
            return str(await page.evaluate("getSelection().toString()"))

    assert asyncio.run(story()) == "One"


def test_a_page_that_was_cut_off_in_the_middle_has_everything_in_the_end(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    script: Script = [{"say": TEXT * 3, "chunk": 8, "delay": 0.02}]

    async def story() -> None:
        async with site(tmp_path, write_team(tmp_path, {"max": script})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            await page.evaluate(WATCH)
            await opened.conversation.say("Go.")
            await page.wait_for_selector("#turn-1 .body pre")
            opened.feed.frames.publish("lagged", b"{}")
            await page.context.set_offline(True)
            await asyncio.sleep(0.5)
            await page.context.set_offline(False)
            await page.wait_for_selector("#m2 .body")
            last = await page.evaluate("window.last")
            assert last["html"] == await page.evaluate("plain(document.querySelector('#m2 .body'))")

    asyncio.run(story())


def test_the_parts_of_a_long_paragraph_look_like_one(tmp_path: Path, open_browser: OpenBrowser) -> None:
    script: Script = [{"say": "One two three. " * 400, "chunk": 30, "delay": 0.02}]

    async def story() -> list[str]:
        async with site(tmp_path, write_team(tmp_path, {"max": script})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            await opened.conversation.say("Go.")
            await page.wait_for_selector("#turn-1 .part.cut.continued", state="attached")
            styles: list[str] = await page.evaluate(
                """[...document.querySelectorAll("#turn-1 .part > p")].map(getComputedStyle)
                     .map((style) => [style.color, style.fontSize, style.display].join(" "))"""
            )
            return styles

    styles = asyncio.run(story())
    assert len(styles) > 2
    assert len(set(styles)) == 1
