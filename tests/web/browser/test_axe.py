"""Every page as axe sees it: what is read aloud, reached by keyboard, and told apart in the light and in the dark."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, put_on_path
from bullpen.web.identity import GUEST

ANSWER = f"""#### It begins at the fourth level

```python
def f(x: int) -> str:  # {"a very long line of code " * 12}
    return 'text' + str(1)
```

# Then at the first

| {" | ".join(f"column {number}" for number in range(20))} |
|{"---|" * 20}
| {" | ".join("a long cell" for _ in range(20))} |

> quoted, `code`, [link](https://example.com), ~~gone~~

1. one
2. two

{"a-very-long-word" * 30}
"""
TOOL = {"name": "Bash", "input": {"command": "grep -rn " + "pattern-" * 60}, "output": "found\n" * 80}
PLAN = {"name": "TodoWrite", "input": {"todos": [{"content": "Look", "status": "completed"}]}, "output": "ok"}
WORKS: Script = [{"think": "Hm. " * 50}, {"tool": TOOL}, {"tool": {**TOOL, "failed": True}}, {"tool": PLAN}]
FAILS: Script = [*WORKS, {"say": "I began, and "}, {"error": 400, "message": "The model is overloaded. " * 12}]
TEAM = """name = "shop"
task = "A login that survives a restart"
[[member]]
name = "kim"
[[member]]
name = "lee"
[[member]]
name = "max"
agent = "claude"
role = "builds"
[[member]]
name = "sarah"
agent = "codex"
[[member]]
name = "ada"
agent = "gemini"
"""


async def played(served: Site) -> str:
    """Play a conversation with everything in it: replies, failures, a turn at work, a queue; return its id."""
    conversation = (await served.hub.begin()).conversation
    await conversation.say("Please do it.", sender="kim")
    await conversation.until_quiet()
    await conversation.say("[NEXT: max & sarah] And now?", sender="lee")
    await conversation.until_quiet()
    await conversation.say("[NEXT: ada, max] Go on.", sender="kim")
    while not any(running.text for running in conversation.running.values()):
        await asyncio.sleep(0.01)
    return conversation.id


async def every_page(served: Site, page: Page, here: str) -> AsyncIterator[str]:
    """Bring a page into every state that there is, and yield what it shows."""
    for path in (
        "/",
        "/?q=done",
        "/c/no-such",
        "/teams",
        "/people",
        "/usage",
        f"/c/{here}/timeline",
        f"/c/{here}/prompt/turn-1",
    ):
        await page.goto(f"{served.url}{path}")
        yield path
    await page.goto(f"{served.url}/c/{here}/prompt/next-max?beside=next-sarah")
    yield "the difference of two prompts"
    await page.goto(f"{served.url}/teams")
    await page.locator('main a[href^="/teams/"]').first.click()
    await page.wait_for_url("**/teams/*")
    yield "a team"
    await page.goto(f"{served.url}/c/{here}")
    await expect(page.locator("#live .body p").first).to_be_visible()
    yield "a conversation"
    await page.evaluate("for (const fold of document.querySelectorAll('main details')) fold.open = true")
    await expect(page.locator("#m2 .steps .step").first).to_be_visible()
    yield "a conversation with everything open"
    await page.reload()
    if await page.locator(".drawer").is_visible():
        await page.locator(".drawer").click()
        yield "the drawer"
        await page.keyboard.press("Escape")
    await page.locator("#title").click()
    yield "the title"
    await page.keyboard.press("Escape")
    await page.get_by_label("Your message").fill("/")
    await page.get_by_label("Your message").press_sequentially("c")
    await expect(page.get_by_role("option").first).to_be_visible()
    yield "completions"
    await page.get_by_label("Your message").fill("")
    await page.get_by_text("More", exact=True).click()
    yield "the menu"
    await page.get_by_role("button", name="Invite").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    yield "whom to invite"
    await page.get_by_role("button", name="Make an address").click()
    await expect(page.get_by_label("Address for another browser")).to_be_visible()
    yield "an invitation"
    await page.keyboard.press("Escape")
    await page.get_by_label("Your message").fill("/nonsense")
    await page.get_by_label("Your message").press("Enter")
    await expect(page.locator("#problem")).to_contain_text("nonsense")
    yield "a problem"


async def findings(page: Page, axe: str) -> list[str]:
    await page.evaluate(axe)
    result = await page.evaluate("axe.run()")
    return [
        f"{problem['id']}: {node['html'][:200]} {node['failureSummary']}"
        for problem in result["violations"]
        for node in problem["nodes"][:3]
    ]


async def signed_in(browser: Browser, served: Site, scheme: Literal["light", "dark"]) -> BrowserContext:
    context = await browser.new_context(color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    context.set_default_timeout(60_000)
    page = await context.new_page()
    await served.let_in(page)
    await page.close()
    return context


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("scheme", "widths"),
    [
        ("light", (1440,)),
        ("dark", (390,)),
        pytest.param("light", (820, 390), marks=pytest.mark.torture),
        pytest.param("dark", (1440, 820), marks=pytest.mark.torture),
    ],
)
def test_axe_finds_nothing_on_any_page(
    scheme: Literal["light", "dark"],
    widths: tuple[int, ...],
    tmp_path: Path,
    open_browser: OpenBrowser,
    axe: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    says: Script = [*WORKS, {"say": ANSWER}, {"usage": {"input": 1000, "output": 20}, "cost": 0.25}]
    hangs: Script = [*WORKS, {"say": "I write **this**"}, {"hang": True}]
    programs = put_on_path(tmp_path, {"claude": [says, FAILS], "codex": [FAILS], "gemini": [hangs]})
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text(TEAM, encoding="utf-8")

    async def story() -> str:
        found: dict[str, list[str]] = {}
        async with site(tmp_path, team) as served, open_browser() as browser:
            here = await played(served)
            context = await signed_in(browser, served, scheme)
            stranger = await (await browser.new_context(color_scheme=scheme, bypass_csp=True)).new_page()
            guest = await (await browser.new_context(color_scheme=scheme, bypass_csp=True)).new_page()
            await served.let_in(guest, f"{served.url}/enter/{served.keys.new_ticket(GUEST)}")
            for width in widths:
                page = await context.new_page()
                await page.set_viewport_size({"width": width, "height": 900})
                async for state in every_page(served, page, here):
                    found[f"{state}, {width}"] = await findings(page, axe)
                await page.close()
                await guest.set_viewport_size({"width": width, "height": 900})
                for path in ("/", f"/c/{here}"):
                    await guest.goto(f"{served.url}{path}")
                    found[f"{path} of a guest, {width}"] = await findings(guest, axe)
                await stranger.set_viewport_size({"width": width, "height": 900})
                await stranger.goto(served.url)
                found[f"not signed in, {width}"] = await findings(stranger, axe)
        return "\n".join(f"{state}: {problem}" for state, problems in found.items() for problem in problems)

    problems = play(story())
    if problems:
        pytest.fail(problems)
