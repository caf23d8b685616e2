"""Turns in a real browser: the head stays, tools fold, verdicts are chips, and what bullpen says is a line."""

import json
import os
from pathlib import Path

import pytest
from playwright.async_api import Locator, Route, ViewportSize, expect
from tests.web.browser.stage import OpenBrowser, play
from tests.web.browser.test_tail import DESK, DRAWN, PHONE, both, opened_page

from bullpen.testing.stage import AGENT, Script, put_on_path, write_team


def team_of(folder: Path, monkeypatch: pytest.MonkeyPatch, script: Script) -> Path:
    """Write a team whose max is claude and runs this script in each turn."""
    programs = put_on_path(folder, {"claude": [script]})
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    team = folder / "team.toml"
    team.write_text('[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\n', encoding="utf-8")
    return team


def reads(count: int, failed: tuple[int, ...] = ()) -> Script:
    return [
        {"tool": {"name": "Read", "input": {"path": f"{number}.py"}, "output": "a", "failed": number in failed}}
        for number in range(count)
    ]


async def box(found: Locator) -> dict[str, float]:
    shape = await found.bounding_box()
    assert shape is not None
    ends = {"bottom": shape["y"] + shape["height"], "right": shape["x"] + shape["width"]}
    return {"x": shape["x"], "y": shape["y"], "height": shape["height"], **ends}


@both
def test_the_head_of_a_running_turn_stays_and_its_buttons_work_there(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch, size: ViewportSize
) -> None:
    script = [*reads(5), {"say": "Some words.\n\n" * 80}, {"hang": True}]

    async def story() -> None:
        async with opened_page(team_of(tmp_path, monkeypatch, script), open_browser, size) as (conversation, page):
            await conversation.say("@max go")
            await expect(page.locator("#live .body p")).to_have_count(80)
            await page.evaluate(DRAWN)
            top, head = await box(page.locator(".top")), page.locator("#live header")
            for part in ("h2", ".since", ".tell summary", "button:text('Cancel')"):
                shape = await box(head.locator(part))
                assert top["bottom"] - 1 <= shape["y"]
                assert shape["bottom"] < top["bottom"] + 80
                assert shape["right"] <= size["width"]
            # Nothing of the turn shines through between the two.
            assert (await box(head))["y"] <= top["bottom"]
            await head.locator(".tell summary").click()
            await expect(page.get_by_label("What to tell max")).to_be_in_viewport(ratio=1)
            await head.get_by_role("button", name="Cancel").click()
            await conversation.until_quiet()
            await expect(page.locator("#live .live")).to_have_count(0)

    play(story())


def test_the_answer_to_a_button_is_seen_though_the_button_is_gone(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = team_of(tmp_path, monkeypatch, [{"say": "Some words."}, {"hang": True}])

    async def story() -> None:
        async with opened_page(team, open_browser, PHONE) as (conversation, page):

            async def late(route: Route) -> None:
                answer = await route.fetch()
                await expect(page.locator("#live .live")).to_have_count(0)
                await route.fulfill(response=answer)

            await page.route("**/do/cancel", late)
            await conversation.say("@max go")
            await page.locator("#live header").get_by_role("button", name="Cancel").click()
            await expect(page.locator("#problem")).to_contain_text("Cancelled: max. /retry 1 runs it again.")
            await page.unroute_all(behavior="wait")

    play(story())


@both
def test_what_is_typed_has_the_whole_width_however_much_is_said_about_it(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch, size: ViewportSize
) -> None:
    async def story() -> None:
        async with opened_page(team_of(tmp_path, monkeypatch, []), open_browser, size) as (_, page):
            await page.locator("#text").fill("/undo")
            await expect(page.locator("#addressees")).to_contain_text("take back what a turn changed")
            text, whole = await box(page.locator("#text")), await box(page.locator("#composer"))
            assert text["right"] - text["x"] > 0.9 * (whole["right"] - whole["x"])
            assert (await box(page.locator("#addressees")))["y"] >= text["bottom"]

    play(story())


def test_of_many_tools_the_last_three_are_shown_and_a_line_counts_the_others(
    tmp_path: Path, open_browser: OpenBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan: Script = [{"todo": [{"text": "build", "completed": False}]}]
    script = [*plan, *reads(3), {"wait_for": str(tmp_path / "go")}, *reads(30, failed=(4,))[3:], {"hang": True}]

    async def story() -> None:
        async with opened_page(team_of(tmp_path, monkeypatch, script), open_browser, DESK) as (conversation, page):
            await conversation.say("@max go")
            steps = page.locator("#live .steps .step:not(.todo)")
            await expect(steps).to_have_count(3)
            await expect(page.locator("#live .earlier")).to_be_hidden()
            # Who reads what a tool said goes on reading it.
            await steps.nth(1).locator("summary").click()
            (tmp_path / "go").touch()
            await expect(steps).to_have_count(30)
            for is_open in (True, False):
                await expect(page.locator("#live .earlier summary")).to_have_text("27 earlier tools · 1 failed")
                await expect(page.locator("#live .step.todo")).to_be_visible()
                assert [await steps.nth(at).is_visible() for at in (0, 26, 27, 29)] == [False, False, True, True]
                assert await steps.nth(1).is_visible() == is_open
                await page.reload()
            await page.locator("#live .earlier summary").click()
            await expect(steps.first).to_be_visible()

    play(story())


def reviewed_team(folder: Path) -> Path:
    """Write a team whose ann changes a file, which is checked, and whose bob approves it."""
    scripts = {
        "ann": [{"write_file": {"path": str(folder / "a.txt"), "text": "a"}}, {"say": "Done."}],
        "bob": [{"say": "Good.\n\n[VERDICT: approve]"}],
    }
    more = {"ann": 'permissions = "edit"', "bob": 'reviews = "ann"\nuntil = "approved"'}
    parts = ['lead = "ann"', '[[member]]\nname = "kim"']
    for name, script in scripts.items():
        command = json.dumps([*AGENT, "--as", "text", "--script", json.dumps(script)])
        parts.append(f'[[member]]\nname = "{name}"\ncommand = {command}\n{more[name]}')
    parts.append('[[check]]\nname = "unit"\ncommand = ["true"]')
    team = folder / "team.toml"
    team.write_text("\n".join(parts), encoding="utf-8")
    return team


@both
def test_a_verdict_and_a_check_are_chips_and_what_bullpen_says_is_a_line_that_leads_to_the_diff(
    tmp_path: Path, open_browser: OpenBrowser, size: ViewportSize
) -> None:
    async def story() -> None:
        async with opened_page(reviewed_team(tmp_path), open_browser, size, touch=size is PHONE) as (
            conversation,
            page,
        ):
            await conversation.say("Go.")
            await conversation.until_quiet()
            for _ in range(2):
                await expect(page.locator("#m18 > header .chip.green")).to_have_text("✓ approved")
                await expect(page.locator("#m17 > .check.green summary")).to_contain_text("✓ unit: green")
                await expect(page.locator("#m17 .chip")).to_have_count(0)
                await expect(page.locator("#m19 > header .body")).to_contain_text("bob approved what ann did")
                await expect(page.locator("#m19 .face, #m19 h2")).to_have_count(0)
                await page.reload()
            assert (await box(page.locator("#m19 > header")))["height"] < 60
            assert "/diff" not in await page.locator("#m19").inner_text()
            await page.get_by_role("link", name="The diff of turn 1").first.click()
            await expect(page).to_have_url(f"{page.url.partition('/changes')[0]}/changes?turns=1")
            await expect(page.locator("#main")).to_contain_text("a.txt")

    play(story())


@both
def test_a_notice_is_a_line_above_the_composer_that_covers_nothing(
    tmp_path: Path, open_browser: OpenBrowser, size: ViewportSize
) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "ok"}]})
        async with opened_page(team, open_browser, size) as (_, page):
            await page.get_by_label("Your message").fill("/retry 99")
            await page.get_by_label("Your message").press("Control+Enter")
            await expect(page.locator("#problem .problem")).to_be_visible()
            await page.evaluate(DRAWN)
            notice, last = await box(page.locator("#problem")), await box(page.locator("#m15 .body"))
            composer = await box(page.locator("#composer"))
            assert last["bottom"] <= notice["y"]
            assert notice["bottom"] <= composer["y"]
            # The next thing that somebody does ends it.
            await page.get_by_label("Your message").fill("/note seen")
            await page.get_by_label("Your message").press("Control+Enter")
            await expect(page.locator("#m16")).to_be_in_viewport()
            await expect(page.locator("#problem .problem")).to_have_count(0)

    play(story())


def test_on_a_phone_a_message_has_one_button_until_more_are_wanted(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "ok"}]})
        async with opened_page(team, open_browser, PHONE, touch=True) as (_, page):
            actions = page.locator("#m15 .actions button:visible")
            await expect(actions).to_have_count(1)
            await actions.tap()
            await expect(actions).to_have_count(5)
            await expect(page.locator("#m14 .actions button:visible")).to_have_count(1)

    play(story())
