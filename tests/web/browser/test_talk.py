"""One conversation in several pages of a real browser."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route, expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import Site, site
from bullpen.testing.stage import Script, put_on_path, write_team
from bullpen.web.live import LiveConversation

WORDS = " ".join(f"word{number}" for number in range(400))


@asynccontextmanager
async def talk(
    folder: Path, open_browser: OpenBrowser, agents: dict[str, Script]
) -> AsyncIterator[tuple[Site, Browser]]:
    async with site(folder, write_team(folder, agents)) as served, open_browser() as browser:
        yield served, browser


async def page_of(served: Site, browser: Browser, path: str = "/") -> Page:
    """Return a page in a browser of its own, which came in with a ticket of its own."""
    page = await (await browser.new_context()).new_page()
    page.set_default_timeout(30_000)
    await served.let_in(page)
    if path != "/":
        await page.goto(f"{served.url}{path}")
    return page


def opened_in(served: Site, page: Page) -> LiveConversation:
    opened = served.hub.get(page.url.rpartition("/")[2])
    assert opened is not None
    return opened


async def until(page: Page, condition: str) -> None:
    """Wait for something in a page. Playwright's own wait uses eval, which the page forbids."""
    async with asyncio.timeout(60):
        while not await page.evaluate(condition):
            await asyncio.sleep(0.02)


def test_two_pages_see_each_others_messages_live(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": [{"say": "Hello **both** of you."}]}) as (served, browser):
            first = await page_of(served, browser)
            await first.get_by_role("button", name="New conversation").click()
            await first.wait_for_url("**/c/*")
            second = await page_of(served, browser, f"/c/{first.url.rpartition('/')[2]}")
            await first.get_by_label("Your message").fill("Anybody there?")
            await first.get_by_label("Your message").press("Enter")
            for page in (first, second):
                await expect(page.locator("#m1 .body")).to_have_text("Anybody there?")
                await expect(page.locator("#m2 .body strong")).to_have_text("both")
            await second.get_by_label("Your message").fill("Yes, me.")
            await second.get_by_role("button", name="Send").click()
            for page in (first, second):
                await expect(page.locator("#m4")).to_be_visible()
                assert await page.locator("#messages > article").count() == 4
                assert await page.locator("#live > article").count() == 0
                await expect(page.locator('[data-member="max"] .spent')).to_have_text("2 turns")

    play(story())


def test_a_reload_in_mid_stream_loses_nothing(tmp_path: Path, open_browser: OpenBrowser) -> None:
    script: list[dict[str, object]] = []
    rest = WORDS
    for number in range(1, 5):
        until_there, _, after = rest.partition(f"word{number * 12 + 9} ")
        script += [{"say": f"{until_there}word{number * 12 + 9} ", "chunk": 7}, {"wait_for": f"seen-{number}"}]
        rest = after
    script.append({"say": rest, "chunk": 7})

    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": script}) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            await page.get_by_label("Your message").fill("Count.")
            await page.get_by_label("Your message").press("Enter")
            lengths = [0]
            for _ in range(4):
                await page.reload()
                await until(
                    page,
                    f"(document.querySelector('#live article')?.innerText ?? '').includes('word{len(lengths) * 12}')",
                )
                # In one go: between two looks the page may have moved text from one place to the other.
                parts = "[...document.querySelectorAll('#turn-1 .body, #turn-1 .tail')].map((one) => one.innerText)"
                text = re.sub(r"\s", "", "".join(await page.evaluate(parts)))
                assert re.sub(r"\s", "", WORDS).startswith(text)
                assert len(text) >= lengths[-1]
                (tmp_path / f"seen-{len(lengths)}").touch()
                lengths.append(len(text))
            await expect(page.locator("#m2 .body")).to_have_text(WORDS)
            assert await page.locator("#messages > article").count() == 2

    play(story())


def test_what_the_server_has_is_not_sent_twice_when_its_answer_is_lost(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": [{"say": "Once."}]}) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            tries = 0

            async def lose_the_first_answer(route: Route) -> None:
                nonlocal tries
                tries += 1
                if tries == 1:
                    await route.fetch()
                    await route.abort()
                else:
                    await route.continue_()

            await page.route("**/messages", lose_the_first_answer)
            await page.get_by_label("Your message").fill("Only once, please.")
            await page.get_by_label("Your message").press("Enter")
            await expect(page.get_by_label("Your message")).to_have_value("")
            await opened_in(served, page).conversation.until_quiet()
            assert tries == 2
            stored = await opened_in(served, page).conversation.messages()
            assert [one.message.content for one in stored] == ["Only once, please.", "Once."]

    play(story())


@pytest.mark.parametrize("arrives", [True, False], ids=["arrived", "lost"])
def test_what_is_being_sent_when_the_page_loads_again_is_sent_under_the_same_id(
    tmp_path: Path, open_browser: OpenBrowser, arrives: bool
) -> None:
    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": [{"say": "Once."}]}) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            held = asyncio.Event()

            async def hold_the_first(route: Route) -> None:
                if held.is_set():
                    await route.continue_()
                elif arrives:
                    await route.fetch()
                held.set()

            await page.route("**/messages", hold_the_first)
            box = page.get_by_label("Your message")
            await box.fill("Only once, please.")
            await box.press("Enter")
            await held.wait()
            await box.press_sequentially(" And")
            await page.reload()
            await expect(page.locator("#m2 .body")).to_have_text("Once.")
            await expect(box).to_have_value(" And")
            await box.fill("")
            await page.reload()
            await expect(box).to_have_value("")
            await opened_in(served, page).conversation.until_quiet()
            stored = await opened_in(served, page).conversation.messages()
            assert [one.message.content for one in stored] == ["Only once, please.", "Once."]

    play(story())


def test_a_command_that_is_being_sent_when_the_page_loads_again_stays_in_the_box(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": []}) as (served, browser):
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            tries: list[Route] = []

            async def hold_the_first(route: Route) -> None:
                tries.append(route)
                if len(tries) > 1:
                    await route.continue_()

            await page.route("**/messages", hold_the_first)
            box = page.get_by_label("Your message")
            await box.fill("/task Ship it")
            await page.get_by_role("button", name="Send").click()
            await expect(page.get_by_text("sending", exact=True)).to_be_visible()
            await page.reload()
            await expect(page.get_by_text("no answer: press Enter to send it again")).to_be_visible()
            await expect(box).to_have_value("/task Ship it")
            assert len(tries) == 1
            await box.press("Enter")
            await expect(page.locator(".task summary")).to_have_text("Ship it")
            await expect(box).to_have_value("")

    play(story())


def test_a_key_that_waits_for_completions_is_about_the_text_before_it(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": [{"say": "M."}]}) as (served, browser):
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            go = asyncio.Event()

            async def hold(route: Route) -> None:
                await go.wait()
                await route.continue_()

            await page.route("**/complete?*", hold)
            box = page.get_by_label("Your message")
            for keys in ("/ta", "Enter", "Ship it", "Enter"):
                await (box.press(keys) if keys == "Enter" else box.press_sequentially(keys))
            go.set()
            await expect(page.locator(".task summary")).to_have_text("Ship it")
            await expect(box).to_have_value("")
            go.clear()
            await box.press_sequentially("Hello @max")
            await box.press("Enter")
            await box.press_sequentially("And")
            go.set()
            await expect(page.locator("#m1 .body")).to_have_text("Hello @max")
            await expect(box).to_have_value("And")

    play(story())


def test_typed_text_survives_a_reload_and_names_are_completed_by_keyboard(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    agents: dict[str, Script] = {"max": [{"say": "M."}], "sarah": [{"say": "S."}]}

    async def story() -> None:
        async with talk(tmp_path, open_browser, agents) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            box = page.get_by_label("Your message")
            await box.click()
            await page.keyboard.type("@sa")
            await expect(page.get_by_role("option")).to_have_text([re.compile("^@sarah")])
            await page.keyboard.press("Tab")
            await expect(box).to_have_value("@sarah ")
            await page.reload()
            await expect(box).to_have_value("@sarah ")
            await box.press("Shift+Enter")
            await box.press_sequentially("Thanks.")
            await box.press("Enter")
            await expect(page.locator("#m2 .body")).to_have_text("S.")
            await box.press_sequentially("/ta")
            await page.keyboard.press("Enter")
            await box.press_sequentially("Ship it")
            await page.keyboard.press("Enter")
            await expect(page.locator(".task summary")).to_have_text("Ship it")
            await box.press_sequentially("/nonsense")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("alert")).to_contain_text("There is no command /nonsense")
            await expect(box).to_have_value("/nonsense")
            # A whole command needs one Enter, and one that leads elsewhere does not stay in the box.
            await box.fill("")
            await box.press_sequentially("/who")
            await page.keyboard.press("Enter")
            shown = page.get_by_role("dialog", name="/who")
            await expect(shown).to_contain_text("sarah: ")
            # What is indented in it stays so.
            assert await shown.get_by_text("no memory of its own").first.evaluate("(line) => line.innerText[0]") == " "
            await page.keyboard.press("Escape")
            await expect(shown).to_have_count(0)
            await expect(box).to_have_value("")
            await expect(box).to_be_focused()
            await box.press_sequentially("/export talk.md")
            async with page.expect_download():
                await page.keyboard.press("Enter")
            await expect(box).to_have_value("")
            # What was offered for another place is not inserted here.
            await box.press_sequentially("hello there @ma")
            await expect(page.get_by_role("option")).to_have_count(1)
            for _ in range(9):
                await page.keyboard.press("ArrowLeft")
            await page.keyboard.press("Tab")
            await expect(box).to_have_value("hello there @ma")
            # A whole name needs one Enter, too.
            await box.fill("")
            await box.press_sequentially("And you, @max")
            await expect(page.get_by_role("option")).to_have_count(1)
            await page.keyboard.press("Enter")
            await expect(page.locator("#m3 .body")).to_have_text("And you, @max")
            await expect(box).to_have_value("")

    play(story())


def test_decisions_appear_by_themselves_and_are_made_with_the_keyboard(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    agents: dict[str, Script] = {"max": [{"say": "I began "}, {"exit": 3}], "sarah": [{"say": "I will."}]}

    async def story() -> None:
        async with talk(tmp_path, open_browser, agents) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            await page.get_by_label("Your message").fill("Go.")
            await page.get_by_label("Your message").press("Enter")
            await page.get_by_role("button", name="Hand over to sarah").focus()
            await page.keyboard.press("Enter")
            await expect(page.locator("#m2 .body")).to_have_text("I will.")
            await expect(page.locator(".decide")).to_have_count(0)

    play(story())


def test_tools_thoughts_and_costs_are_there_while_an_agent_works(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = {"name": "Bash", "input": {"command": "make test"}, "output": "14 passed"}
    script: Script = [
        {"think": "First the tests."},
        {"tool": tool},
        {"say": "All *green*.\n\n", "chunk": 4},
        {"wait_for": str(tmp_path / "seen")},
        {"usage": {"input": 1000, "output": 20}, "cost": 0.25},
    ]
    monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, {'claude': [script]})}{os.pathsep}{os.environ['PATH']}")
    team = tmp_path / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n')

    async def story() -> None:
        async with site(tmp_path, team) as served, open_browser() as browser:
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            await page.get_by_label("Your message").fill("Test.")
            await page.get_by_label("Your message").press("Enter")
            await page.locator("#turn-1 .step summary").click()
            await expect(page.locator("#turn-1 .step .result")).to_have_text("14 passed")
            await page.locator("#turn-1 .thinking summary").click()
            await expect(page.locator("#turn-1 .thought")).to_have_text("First the tests.")
            await expect(page.locator("#turn-1 .body em")).to_have_text("green")
            (tmp_path / "seen").touch()
            await expect(page.locator("#m2 .body em")).to_have_text("green")
            await page.locator("#m2 .did summary").click()
            await expect(page.locator("#m2 .steps .tool")).to_contain_text("make test")
            await expect(page.locator('[data-member="max"] .spent')).to_have_text("1 turn · 1.0k tokens · $0.25")

    play(story())


def test_at_a_search_hit_what_is_new_is_not_shown_behind_a_gap(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": [{"say": "Noted."}]}) as (served, browser):
            page = await page_of(served, browser)
            await page.get_by_role("button", name="New conversation").click()
            await page.wait_for_url("**/c/*")
            opened = opened_in(served, page)
            for number in range(80):
                await opened.conversation.note(f"Word {number}")
            here = f"{served.url}/c/{opened.conversation.id}"
            await page.goto(f"{here}?at=2#m2")
            seen = await page.locator("#messages > article").count()
            await page.get_by_label("Your message").fill("Something new.")
            await page.get_by_label("Your message").press("Enter")
            await expect(page.locator('[data-member="max"] .spent')).to_have_text("1 turn")
            assert await page.locator("#messages > article").count() == seen
            await page.get_by_role("link", name="Go to the newest messages").click()
            await expect(page.locator("#m81 .body")).to_have_text("Something new.")
            await expect(page.get_by_role("link", name="Go to the newest messages")).to_have_count(0)

    play(story())


def test_what_a_command_shows_scrolls_inside_and_leaves_the_page_where_it_was(
    tmp_path: Path, open_browser: OpenBrowser
) -> None:
    async def story() -> None:
        async with talk(tmp_path, open_browser, {"max": []}) as (served, browser):
            opened = await served.hub.begin()
            page = await page_of(served, browser, f"/c/{opened.conversation.id}")
            before = await page.locator("#main").bounding_box()
            await page.locator("#text").fill("/help")
            await page.locator("#composer .main").click()
            lines = page.get_by_role("dialog", name="/help").locator(".lines")
            await expect(lines).to_contain_text("/undo")
            assert await lines.evaluate("(lines) => lines.scrollHeight > lines.clientHeight")
            close = page.get_by_role("button", name="Close", exact=True)
            await expect(close).to_be_in_viewport(ratio=1)
            assert await page.locator("#main").bounding_box() == before
            await close.click()
            await expect(lines).to_have_count(0)

    play(story())
