"""A reply while it is written, in a real browser: rendered at once, sent once, and no line jumps when it is done."""

import asyncio
from pathlib import Path

from playwright.async_api import Browser, Page
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, write_team

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


async def until(page: Page, condition: str) -> None:
    """Wait for something in a page. Playwright's own wait uses eval, which the page forbids."""
    async with asyncio.timeout(60):
        while not await page.evaluate(condition):
            await asyncio.sleep(0.01)


def in_pieces(folder: Path, text: str, size: int) -> Script:
    """Return how a text is said in pieces, of which each waits until the one before was seen."""
    starts = range(0, len(text), size)
    pieces = [({"say": text[start : start + size]}, {"wait_for": str(folder / f"seen-{start}")}) for start in starts]
    return [step for piece in pieces for step in piece]


async def each_seen(page: Page, script: Script, growing: str) -> None:
    """Let each piece come when the last one is seen: when something in the page has grown."""
    before = 0
    for step in script:
        if "wait_for" in step:
            await until(page, f"({growing}) > {before}")
            before = await page.evaluate(growing)
            Path(str(step["wait_for"])).touch()


def raw_characters(seen: list[str], final: str) -> int:
    """Return how many characters were at most shown otherwise than in the end."""

    def raw(shown: str) -> int:
        pairs = enumerate(zip(shown, final, strict=False))
        return len(shown) - next((at for at, (one, other) in pairs if one != other), min(len(shown), len(final)))

    return max(map(raw, seen))


def test_text_is_rendered_while_it_is_written_and_nothing_jumps_at_the_end(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    """The next piece comes when the last one is seen."""
    script = in_pieces(tmp_path, TEXT, 9)

    async def story() -> None:
        async with site(tmp_path, write_team(tmp_path, {"max": script})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            asked_for: list[str] = []
            page.on("request", lambda request: asked_for.append(request.url.removeprefix(served.url)))
            await page.evaluate(WATCH)
            await opened.conversation.say("Go.")
            await each_seen(page, script, "window.seen.length")
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

    play(story())


def test_what_somebody_has_selected_stays_selected(tmp_path: Path, open_browser: OpenBrowser) -> None:
    text = "One two three. " * 20
    script: Script = [{"say": text}, {"wait_for": str(tmp_path / "selected")}, {"say": text}, {"hang": True}]

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
            (tmp_path / "selected").touch()
            await until(page, f"document.querySelector('#turn-1 .body').textContent.length >= {length + 200}")
            return str(await page.evaluate("getSelection().toString()"))

    assert play(story()) == "One"


def test_a_page_that_was_cut_off_in_the_middle_has_everything_in_the_end(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    before = in_pieces(tmp_path, TEXT, 40)
    offline, back, end = (tmp_path / name for name in ("offline", "back", "end"))
    script: Script = [
        *before,
        {"wait_for": str(offline)},
        {"say": "\n\nSaid meanwhile."},
        {"wait_for": str(back)},
        {"say": "\n\nSaid afterwards."},
        {"wait_for": str(end)},
    ]

    async def story() -> None:
        async with site(tmp_path, write_team(tmp_path, {"max": script})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            await page.evaluate(WATCH)
            await opened.conversation.say("Go.")
            await each_seen(page, before, "window.seen.length")
            opened.feed.frames.publish("lagged", b"{}")
            await page.context.set_offline(True)
            offline.touch()
            (running,) = opened.conversation.running.values()
            while "meanwhile" not in running.text:
                await asyncio.sleep(0.01)
            await page.context.set_offline(False)
            for word, file in (("meanwhile", back), ("afterwards", end)):
                await until(page, f"document.querySelector('#turn-1 .body').textContent.includes('{word}')")
                file.touch()
            await page.wait_for_selector("#m2 .body")
            last = await page.evaluate("window.last")
            assert last["html"] == await page.evaluate("plain(document.querySelector('#m2 .body'))")

    play(story())


def test_the_parts_of_a_long_paragraph_look_like_one(tmp_path: Path, open_browser: OpenBrowser) -> None:
    script = [*in_pieces(tmp_path, "One two three. " * 400, 600), {"hang": True}]

    async def story() -> list[str]:
        async with site(tmp_path, write_team(tmp_path, {"max": script})) as served, open_browser() as browser:
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            await opened.conversation.say("Go.")
            await each_seen(page, script, "document.querySelector('#turn-1 .body')?.textContent.length ?? 0")
            await page.wait_for_selector("#turn-1 .part.cut.continued", state="attached")
            styles: list[str] = await page.evaluate(
                """[...document.querySelectorAll("#turn-1 .part > p")].map(getComputedStyle)
                     .map((style) => [style.color, style.fontSize, style.display].join(" "))"""
            )
            return styles

    styles = play(story())
    assert len(styles) > 2
    assert len(set(styles)) == 1
