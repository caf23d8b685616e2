"""A thousand texts that want to be more than text: none runs, none reaches another server."""

import asyncio
import os
from itertools import product
from pathlib import Path
from random import Random

import pytest
from playwright.async_api import Browser, Page
from tests.web.browser.stage import OpenBrowser, play

from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.base import Store
from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, put_on_path

# What it would do, if anything ran: set a mark, or ask another server for something.
CODE = "window.pwned=1"
FAR = "http://127.0.0.1:9/pwned"

ELEMENTS = (
    "<script>{code}</script>",
    "<script src={far}></script>",
    "<img src=x onerror={code}>",
    "<img src={far}>",
    '<img src="x" onerror="{code}">',
    "<svg onload={code}>",
    "<svg><script>{code}</script></svg>",
    "<svg><image href={far}>",
    "<math><mtext></table><img src=x onerror={code}>",
    "<iframe src=javascript:{code}>",
    '<iframe srcdoc="<script>parent.pwned=1</script>">',
    "<object data={far}>",
    "<embed src={far}>",
    "<link rel=stylesheet href={far}>",
    "<link rel=prefetch href={far}>",
    "<style>@import '{far}'; *{{background:url({far})}}</style>",
    "<base href={far}/>",
    "<meta http-equiv=refresh content='0;url={far}'>",
    "<form action={far}><button autofocus onfocus={code}>",
    "<input autofocus onfocus={code}>",
    "<details open ontoggle={code}>",
    "<body onload={code}>",
    "<video poster={far} src={far} onerror={code}>",
    "<audio src={far} autoplay>",
    "<a href=javascript:{code} id=m1>x</a>",
    "<p style='background:url({far})'>x</p>",
    "<marquee onstart={code}>",
    "<template><img src=x onerror={code}></template>",
    "<noscript><p title='</noscript><img src=x onerror={code}>'>",
    "<div hx-get={far} hx-trigger=load>x</div>",
    "<div hx-on:htmx:load='{code}' hx-on-load={code}>x</div>",
    "<div data-hx-get={far} data-hx-trigger=load>x</div>",
    "[x](javascript:{code})",
    "[x](data:text/html,<script>{code}</script>)",
    "![x]({far})",
    "![x](javascript:{code})",
    "<javascript:{code}>",
    "[x]: {far} 'y'\n\n![x]",
    "```html\n<script>{code}</script>\n```",
    "```\n</code></pre><img src=x onerror={code}>\n```",
    "`</code><img src=x onerror={code}>`",
    "| <img src=x onerror={code}> |\n|-|\n| <script>{code}</script> |",
    "{{{{ 7*7 }}}}{{% include '/etc/passwd' %}}<img src=x onerror={code}>",
    "\\<img src=x onerror={code}\\>",
    "&lt;img src=x onerror={code}&gt;",
    "&#60;img src=x onerror={code}&#62;",
    "\n\nevent: said\ndata: <img src=x onerror={code}>\n\n",
    "x\r\nevent: reload\r\ndata: {{}}\r\n\r\n",
)
WRAPS = (
    "{0}",
    '">{0}',
    "'>{0}",
    "</textarea>{0}",
    "</title>{0}",
    "</script>{0}",
    "--><!--{0}",
    "]]>{0}",
    "\u202e{0}",
    "\x00{0}",
    "</bdi></article></div>{0}",
    "> quote\n> {0}",
    "- list\n  {0}",
    "<!--{0}",
    "{0}{0}",
    "\ufeff{0}",
    "a\x1b]0;{0}\x07",
    "x" * 300 + "{0}",
    "<<{0}>>",
    "\u2028{0}",
    "%3C{0}",
    "＜img src=x onerror={0}＞",
)
TOOLS = 150
PAYLOADS = 1_000


def payloads() -> list[str]:
    made = [wrap.format(element.format(code=CODE, far=FAR)) for wrap, element in product(WRAPS, ELEMENTS)]
    Random(0).shuffle(made)
    return list(dict.fromkeys(made))[:PAYLOADS]


class Witness:
    """Sees what a page must never do."""

    def __init__(self, page: Page, own: str) -> None:
        self.bad: list[str] = []
        page.on("request", lambda request: None if request.url.startswith(own) else self.bad.append(request.url))
        page.on("dialog", lambda dialog: self.bad.append(dialog.message))
        page.on("popup", lambda popup: self.bad.append(popup.url))
        page.on("console", lambda said: self.bad.append(said.text) if "Content Security" in said.text else None)

    async def nothing_happened(self, page: Page) -> bool:
        """Tell whether nothing ran, and whether not even a part of a page was there that the policy had to stop."""
        # What was to be done at once is done before this.
        await page.evaluate("new Promise((done) => setTimeout(done))")
        ran = await page.evaluate("window.pwned")
        dangerous = (
            "script,iframe,object,embed,img,image,video,audio,link,style,base,meta,template,noscript,math,marquee"
        )
        strange = await page.evaluate(
            """(dangerous) => [...document.body.querySelectorAll("*")].filter((one) =>
                 one.matches(dangerous)
                 || one.getAttributeNames().some((name) => /^on|^(data-)?hx-on|^style$/.test(name) && one.id !== "text")
                 || /^(javascript|data):/i.test(one.getAttribute("href") ?? "")
               ).map((one) => one.outerHTML.slice(0, 200))""",
            dangerous,
        )
        far = await page.evaluate(
            """() => [...document.querySelectorAll("[hx-get],[hx-post],[data-hx-get],form[action]")].map((one) =>
                 one.getAttribute("hx-get") ?? one.getAttribute("hx-post") ?? one.getAttribute("action"))
               .filter((address) => !address.startsWith("/"))"""
        )
        assert (ran, strange, far, self.bad) == (None, [], [], [])
        return True


def fill(store: Store, texts: list[str]) -> str:
    """Store a conversation in which every payload is a message, its speaker's name, and whom it goes to."""
    store.create("evil", team=texts[0], team_file=texts[1], team_path=texts[2], started_at=1, team_task=texts[3])
    for number, text in enumerate(texts):
        message = ConversationMessage(
            id=f"message-{number}",
            content=text,
            speaker=Speaker(role_id=text, role_name=text, type=("human", "ai")[number % 2], role_title=text),
            timestamp=number + 1,
            routing=Routing(resolved_addressees=(text,)),
        )
        store.append("evil", message)
    return "evil"


async def until(page: Page, condition: str) -> None:
    """Wait for something in a page. Playwright's own wait uses eval, which the page forbids."""
    async with asyncio.timeout(60):
        while not await page.evaluate(condition):
            await asyncio.sleep(0.02)


async def entered(served: Site, browser: Browser) -> tuple[Page, Witness]:
    page = await (await browser.new_context()).new_page()
    page.set_default_timeout(60_000)
    witness = Witness(page, served.url)
    await served.let_in(page)
    return page, witness


def test_there_are_a_thousand() -> None:
    assert len(set(payloads())) == PAYLOADS


def test_as_messages_names_and_addressees(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            await served.hub.read(lambda store: fill(store, payloads()))
            page, witness = await entered(served, browser)
            assert await witness.nothing_happened(page)
            await page.goto(f"{served.url}/?q=x")
            assert await witness.nothing_happened(page)
            await page.goto(f"{served.url}/c/evil")
            while await page.get_by_role("button", name="Earlier messages").count():
                before = await page.locator("article").count()
                await page.get_by_role("button", name="Earlier messages").click()
                await until(page, f"document.querySelectorAll('article').length > {before}")
            assert await page.locator("article").count() == PAYLOADS
            assert await witness.nothing_happened(page)
            await page.goto(f"{served.url}/c/evil/timeline")
            assert await witness.nothing_happened(page)

    play(story())


def test_as_errors_and_paths(tmp_path: Path, open_browser: OpenBrowser) -> None:
    """Every page that says what went wrong repeats what was asked for; they are put into one page, in batches."""

    async def story() -> None:
        async with site(tmp_path) as served, open_browser() as browser:
            page, witness = await entered(served, browser)
            for start in range(0, PAYLOADS, 100):
                await page.evaluate(
                    """async (texts) => {
                         const place = document.getElementById("list");
                         place.replaceChildren();
                         const parts = await Promise.all(texts.map(async (text, index) => {
                           const path = encodeURIComponent(text.replaceAll("/", "∕")) || "x";
                           const headers = index % 2 ? { "HX-Request": "true" } : {};
                           const answer = await fetch(`/c/${path}`, { headers });
                           const page = new DOMParser().parseFromString(await answer.text(), "text/html");
                           return (page.querySelector("main") ?? page.body).innerHTML;
                         }));
                         for (const part of parts) place.insertAdjacentHTML("beforeend", part);
                         htmx.process(place);
                       }""",
                    payloads()[start : start + 100],
                )
                assert await witness.nothing_happened(page)
            assert await page.locator("#list p").count() >= 100

    play(story())


def test_live_as_tools_outputs_files_thoughts_errors_and_members(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [text.replace("\x00", "") for text in payloads()]
    tools: list[dict[str, object]] = [
        {"tool": {"name": text, "input": {"file_path": text, text: text}, "output": text, "failed": number % 3 == 0}}
        for number, text in enumerate(texts[:TOOLS])
    ]
    rest = "\n\n".join(texts[TOOLS:])
    script: Script = [{"think": rest}, *tools, {"say": rest, "chunk": 2_000}]
    failing: Script = [{"say": rest, "chunk": 5_000}, {"error": 400, "message": rest[:3_000]}]
    programs = put_on_path(tmp_path, {"claude": [[*script, {"hang": True}], script, failing]})
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    name = "<img src=x onerror=window.pwned=1>"
    team = tmp_path / "team.toml"
    team.write_text(
        f'name = "{name}"\ntask = "{name}"\n[[member]]\nname = "kim"\ndisplay_name = "{name}"\n'
        f'[[member]]\nname = "max"\nagent = "claude"\nrole = "{name}"\ndisplay_name = "2{name}"\n'
    )

    async def story() -> None:
        async with site(tmp_path, team) as served, open_browser() as browser:
            page, witness = await entered(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            opened = served.hub.get(page.url.rpartition("/")[2])
            assert opened is not None
            await opened.conversation.say("Go.")
            await until(page, f"document.querySelectorAll('#turn-1 .step').length > {TOOLS * 3 // 4}")
            await page.wait_for_selector("#turn-1 .body p")
            assert await witness.nothing_happened(page)
            await opened.conversation.cancel()
            await page.locator('[data-unanswered="1"] > summary').click()
            assert await witness.nothing_happened(page)
            await opened.conversation.retry()
            await opened.conversation.until_quiet()
            await page.wait_for_selector("#m2 .did")
            await page.locator("#m2 .did summary").click()
            await until(page, f"document.querySelectorAll('#m2 .step').length > {TOOLS * 3 // 4}")
            assert await witness.nothing_happened(page)
            await opened.conversation.say("Again.")
            await opened.conversation.until_quiet()
            await page.wait_for_selector(".decide details")
            await page.locator(".decide summary").click()
            assert await witness.nothing_happened(page)
            for view in ("turn-2", "turn-3", "next-max", "turn-2?beside=turn-3"):
                await page.goto(f"{served.url}/c/{opened.conversation.id}/prompt/{view}")
                assert await witness.nothing_happened(page)

    play(story())
