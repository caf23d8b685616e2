"""The timeline in a real browser: every bar and dot leads to what was said."""

import re
from itertools import pairwise
from pathlib import Path

from playwright.async_api import expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.testing.site import site
from bullpen.testing.stage import Script, write_team
from bullpen.view.timeline import Timeline, TimelineTurn
from bullpen.web.timeline import LETTER_WIDTH, drawing, svg_of

AGENTS: dict[str, Script] = {"max": [{"say": "Done."}], "sarah": [{"stderr": "no"}, {"exit": 3}]}


def test_a_bar_leads_to_its_message_and_a_failed_one_to_its_turn(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        async with site(tmp_path, write_team(tmp_path, AGENTS)) as served, open_browser() as browser:
            conversation = (await served.hub.begin()).conversation
            await conversation.say("[NEXT: max, sarah] Go.")
            await conversation.until_quiet()
            page = await browser.new_page(viewport={"width": 1280, "height": 800})
            await served.let_in(page)
            timeline = f"{served.url}/c/{conversation.id}/timeline"
            await page.goto(timeline)
            await page.get_by_role("link", name="turn 1: max").press("Enter")
            await expect(page.locator("#m2")).to_be_in_viewport()
            await expect(page.locator("#m2:target .body")).to_have_text("Done.")
            await page.goto(timeline)
            await page.locator("a:has(.turn.failed)").click()
            await expect(page.get_by_role("heading", level=1)).to_have_text("What sarah was given")
            await page.goto(timeline)
            await page.get_by_role("link", name="#1: [NEXT").click()
            await expect(page.locator("#m1:target")).to_be_in_viewport()

    play(story())


def test_a_pause_that_is_cut_out_is_called_one() -> None:
    turns = tuple(
        TimelineTurn(turn=f"{number}", member="max", state="done", start=start, end=start + 6_000)
        for number, start in ((1, 0), (2, 56_000))
    )
    drawn = drawing(Timeline(began_at=0, colors={"max": "blue"}, turns=turns, messages=()))
    assert ">pause 50 s</text>" in svg_of(drawn, "quiet-river-4f2a")


def test_labels_of_pauses_that_would_touch_are_left_out_and_stay_as_titles() -> None:
    pauses = (230, 16, 8.9, 36, 61, 12, 300, 20, 9, 47)
    starts = [0.0]
    for pause in pauses:
        starts.append(starts[-1] + 1 + pause)
    turns = tuple(
        TimelineTurn(
            turn=f"{number}", member="max", state="done", start=int(start * 1000), end=int(start * 1000) + 1000
        )
        for number, start in enumerate(starts)
    )
    drawn = drawing(Timeline(began_at=0, colors={"max": "blue"}, turns=turns, messages=()))
    svg = svg_of(drawn, "quiet-river-4f2a")
    assert svg.count("<title>pause ") == len(pauses)
    labels = re.findall(r'<text x="([\d.]+)" y="14">(pause [^<]+)</text>', svg)
    assert 2 < len(labels) < len(pauses)
    assert "pause 5 min 00 s" in [label for _, label in labels]
    halves = [(float(x), len(label) * LETTER_WIDTH / 2) for x, label in labels]
    assert all(x + half < nexts - other for (x, half), (nexts, other) in pairwise(halves))
