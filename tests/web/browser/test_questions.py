"""What agents ask, in a real browser: all of it is shown, answered with a button, and the second one is told."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_attention import PLAYED

from bullpen.approvals import Answer
from bullpen.conversation.conversation import Conversation
from bullpen.testing.site import Site, site

LONG = "python3 -c '" + "print(1); " * 500 + "' && echo 测试完成"


def team_that_asks(folder: Path, monkeypatch: pytest.MonkeyPatch, *steps: dict[str, Any]) -> Path:
    """Write a team whose max does this with permissions = "ask", in the stream of Claude Code."""
    program = folder / "bin" / "claude"
    program.parent.mkdir()
    (folder / "script.json").write_text(json.dumps(steps), encoding="utf-8")
    agent = f"{sys.executable} -m bullpen.testing.agent --as claude --script {folder / 'script.json'}"
    program.write_text(f'#!/bin/sh\nexec {agent} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    team = folder / "team.toml"
    team.write_text(
        '[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\npermissions = "ask"\n', encoding="utf-8"
    )
    return team


async def page_of(served: Site, browser: Browser, conversation: Conversation, width: int = 1200) -> Page:
    page = await (await browser.new_context(viewport={"width": width, "height": 844})).new_page()
    page.set_default_timeout(30_000)
    await served.let_in(page)
    await page.add_init_script(PLAYED)
    await page.goto(f"{served.url}/c/{conversation.id}")
    return page


def test_yes_no_with_a_reason_and_who_is_second_is_told(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[dict[str, Any]] = [{"ask": LONG}, {"ask": "touch b"}, {"ask": "touch c"}]

    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, *steps)
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            first, second = [await page_of(served, browser, conversation) for _ in range(2)]
            await conversation.say("@max go")
            question = first.locator(".decide.question")
            await expect(question.locator("pre")).to_have_text(LONG)
            await expect(first.locator(".live .what")).to_have_text("waits for you")
            await expect(first).to_have_title("◆ (1) @max go · bullpen")
            await question.get_by_role("button", name="Yes", exact=True).click()
            # Everybody is told, also in the other browser.
            for page in (first, second):
                await expect(page.locator(".step.notice")).to_contain_text("kim said yes to max: python3 -c")
            await expect(question.locator("pre")).to_have_text("touch b")
            await question.get_by_role("button", name="No, and say why").click()
            box = first.get_by_label("Your message")
            await expect(box).to_have_value("/no ")
            await expect(box).to_be_focused()
            await box.press_sequentially("not on a Friday")
            await expect(first.locator("#addressees")).to_have_text(
                "answers max: No, because: not on a Friday (touch b)"
            )
            # What changes meanwhile does not take away what is being typed.
            await conversation.set_task("another task")
            await expect(first.locator("#task-edit summary")).to_have_text("another task")
            await box.press("Control+Enter")
            await expect(second.locator(".step.notice").last).to_contain_text(
                "said no to max: touch b (not on a Friday)"
            )
            await both_at_once(first, second)

    async def both_at_once(first: Page, second: Page) -> None:
        for page in (first, second):
            await expect(page.locator(".decide.question pre")).to_have_text("touch c")
        sent = [
            page.evaluate(
                """async () => {
                  const form = document.querySelector(".decide.question form");
                  const [body, headers] = [new URLSearchParams(new FormData(form)), { "HX-Request": "true" }];
                  const answer = await fetch(form.action, { method: "POST", body, headers });
                  return [answer.status, await answer.text()];
                }"""
            )
            for page in (first, second)
        ]
        answers = sorted(await asyncio.gather(*sent))
        assert answers[0][0] == 204
        assert "The question is answered already: yes (kim). That answer counts." in answers[1][1]

    play(story())


def test_a_hidden_page_notifies_and_answers_have_keys(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"ask": "touch a"}, {"say": "Shall I? [ASK: yes | no | later]"})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            await page.evaluate(
                "localStorage.setItem('notify', 'yes'); Notification.permission = 'granted'; hide(true)"
            )
            await conversation.say("@max go")
            while not (shown := await page.evaluate("window.shown")):
                await asyncio.sleep(0.05)
            [[_, body]] = shown
            assert body.startswith("max wants to run a command in ")
            assert body.endswith(" touch a")
            await page.evaluate("hide(false)")
            await page.locator(".decide.question").get_by_role("button", name="Yes", exact=True).click()
            await expect(page.locator(".decide.question button")).to_have_text(
                ["1 yes", "2 no", "3 later", "No answer"]
            )
            await expect(page.locator(".decide[data-answers]")).to_be_visible()
            await page.locator("body").press("3")
            await expect(page.locator("#messages article").last).not_to_contain_text("Shall I?")
            await expect(page.locator("#messages")).to_contain_text("later")

    play(story())


def test_the_digit_of_an_answer_is_also_taken_where_people_write(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"say": "Shall I? [ASK: yes | no | later]"})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            for press in ("1", "2"):
                await conversation.say("@max go")
                await expect(page.locator(".decide.question[data-answers] button")).to_have_count(4)
                box = page.get_by_label("Your message")
                if press == "1":
                    await box.press("1")
                    await expect(box).to_have_value("")
                else:
                    # A button that has the focus is not a place where people write.
                    await page.locator(".decide.question button").last.focus()
                    await page.keyboard.press("2")
                await expect(page.locator("#messages .human .body").last).to_have_text({"1": "yes", "2": "no"}[press])
                await conversation.until_quiet()

    play(story())


def test_who_answered_is_there_after_a_reload(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"ask": "touch a"}, {"ask": "touch b"})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            await conversation.say("@max go")
            yes, asked = page.get_by_role("button", name="Yes", exact=True), page.locator(".decide.question pre")
            await expect(asked).to_have_text("touch a")
            await yes.click()
            await expect(asked).to_have_text("touch b")
            await page.reload()
            line = page.locator(".step.notice").filter(has_text="kim said yes to max: touch a")
            await expect(line).to_have_count(1)
            await yes.click()
            await conversation.until_quiet()
            await page.reload()
            await page.get_by_text("What it did").click()
            await expect(page.locator(".steps .step.notice")).to_have_text(
                ["kim said yes to max: touch a", "kim said yes to max: touch b"]
            )

    play(story())


def test_what_is_typed_answers_the_question_that_was_there_when_it_was_begun(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"ask": "touch a"}, {"ask": "touch b"})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            await conversation.say("@max go")
            asked, box = page.locator(".decide.question pre"), page.get_by_label("Your message")
            await expect(asked).to_have_text("touch a")
            await expect(page.locator(".decide[data-answers]")).to_be_visible()
            await box.press_sequentially("/ye")
            [(turn, question)] = conversation.approvals.open
            await conversation.answer(turn, question, Answer(verdict="no"))
            await expect(asked).to_have_text("touch b")
            await box.press_sequentially("s")
            await box.press("Control+Enter")
            await expect(page.locator("#problem")).to_contain_text("The question is answered already: no")
            await expect(asked).to_have_text("touch b")
            # Who has read that may mean the other one.
            await expect(page.locator(".decide[data-answers]")).to_be_visible()
            await box.press("Control+Enter")
            await expect(page.locator("#messages")).to_contain_text("Allowed: touch b.")

    play(story())


def test_an_answer_that_is_sent_again_after_a_load_answers_no_other_question(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"ask": "touch a"}, {"ask": "touch b"}, {"say": "Done."})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            await conversation.say("@max go")
            await expect(page.locator(".decide.question[data-answers]")).to_contain_text("touch a")
            arrived = asyncio.Event()

            async def hold_the_first(route: Route) -> None:
                if arrived.is_set():
                    await route.continue_()
                else:
                    await route.fetch()
                arrived.set()

            await page.route("**/messages", hold_the_first)
            box = page.get_by_label("Your message")
            await box.fill("yes")
            await box.press("Enter")
            await expect(page.locator(".decide.question pre")).to_have_text("touch b")
            await page.reload()
            await expect(page.get_by_role("alert")).to_contain_text("answered already")
            await expect(page.locator(".decide.question pre")).to_have_text("touch b")
            await expect(page.locator("#messages > article")).to_have_count(1)

    play(story())


def test_words_to_an_agent_at_work(tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"ask": "touch a"})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            await conversation.say("@max go")
            await page.locator(".tell summary").click()
            await page.get_by_label("What to tell max").fill("look at the tests, too")
            await page.locator(".tell button").click()
            await expect(page.locator("#problem")).to_contain_text(
                "Told: max reads that in this turn, with its next step."
            )
            await expect(page.locator("#messages")).to_contain_text("(to max while it worked) look at the tests, too")

    play(story())


def test_every_button_can_be_seen(tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, {"ask": LONG})
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            await conversation.say("@max go")
            await expect(page.locator(".decide.question")).to_be_visible()
            for width in (820, 360):
                await page.set_viewport_size({"width": width, "height": 800})
                for button in await page.locator(".decide.question .buttons > form > button").all():
                    await button.scroll_into_view_if_needed()
                    box = await button.bounding_box()
                    assert box is not None
                    assert box["x"] >= 0
                    assert box["x"] + box["width"] <= width
                await expect(page.get_by_role("button", name="stop")).to_be_in_viewport()

    play(story())


# Presses keys in the moment in which a card appears, sooner than anybody can.
PRESSES = """
  (keys) => new MutationObserver((_, observer) => {
    if (!document.querySelector("#decisions [data-key]")) return;
    observer.disconnect();
    const options = { bubbles: true, cancelable: true };
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, ...options }));
    window.written = keys.filter(press);
  }).observe(document.querySelector(".dock"), { childList: true, subtree: true })
"""


def test_digits_answer_a_card_that_has_been_there_and_the_line_is_what_enter_does(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        team = team_that_asks(tmp_path, monkeypatch, *({"ask": f"touch {name}"} for name in "abcd"))
        async with site(tmp_path, team) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            page = await page_of(served, browser, conversation)
            asked, box = page.locator(".decide.question pre"), page.get_by_label("Your message")
            line, answers = page.locator("#addressees"), page.locator(".decide[data-answers]")
            await box.focus()
            await page.evaluate(PRESSES, ["1", "2", "7", "Escape", "x"])
            await conversation.say("@max go")
            await expect(asked).to_have_text("touch a")
            await page.wait_for_function("window.written")
            assert await page.evaluate("window.written") == ["Escape", "x"], "a digit that comes too early is no draft"
            await expect(page.locator(".decide.question button")).to_have_text(
                ["1 Yes", "2 Yes, for exactly this from now on", "3 No, and say why", "esc stop"]
            )
            await expect(answers).to_be_visible()
            assert len(conversation.approvals.open) == 1, "what was pressed before answers nothing"
            await box.press_sequentially("y")
            await expect(line).to_have_text("answers max: Yes, this once (touch a)")
            await box.press_sequentially("es, later")
            await expect(line).to_contain_text("max waits for your answer; this is a message, queued for its next turn")
            await box.press("1")
            await expect(box).to_have_value("yes, later1")
            await box.fill("/no")
            await expect(line).to_have_text("answers max: No, without a reason (touch a)")
            await box.fill("/nothing")
            await expect(line.locator(".problem")).to_contain_text("There is no command /nothing")
            await box.fill("")
            await box.press("1")
            await expect(asked).to_have_text("touch b")
            await expect(answers).to_be_visible()
            await box.press("3")
            await expect(box).to_have_value("/no ")
            await box.press_sequentially("not today")
            await box.press("Control+Enter")
            await expect(asked).to_have_text("touch c")
            await expect(answers).to_be_visible()
            await box.press("2")
            await expect(asked).to_have_text("touch d")
            await expect(answers).to_be_visible()
            await box.press("Escape")
            await expect(page.locator(".decide.question")).to_have_count(0)
            await conversation.until_quiet()
            said = [one.message.content for one in await conversation.messages(limit=99)]
            assert said[0] == "@max go"
            assert not any("later" in one or one in ("1", "2") for one in said)

    play(story())
