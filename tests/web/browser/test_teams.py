"""Changing a team file in a real browser: each problem beside its line, while one types."""

from pathlib import Path

from playwright.async_api import expect
from tests.web.browser.stage import OpenBrowser, play

from bullpen.team.trust import Trust
from bullpen.testing.site import site
from bullpen.testing.stage import write_team


def test_a_problem_is_shown_beside_its_line_and_the_rest_is_asked(tmp_path: Path, open_browser: OpenBrowser) -> None:
    async def story() -> None:
        team = write_team(tmp_path, {"max": [{"say": "Done."}]})
        lines = team.read_text().split("\n")
        async with site(tmp_path, team) as served, open_browser() as browser:
            page = await browser.new_page(viewport={"width": 1280, "height": 900})
            await served.let_in(page)
            await page.get_by_role("link", name="Teams").click()
            await page.get_by_role("link", name="Edit").click()
            box = page.get_by_label("The team file")
            await expect(box).to_have_value("\n".join(lines))
            await box.fill("\n".join([*lines, "", "[[member]]", 'name = "new"', 'agent = "cloude"']))
            problem = page.locator("#problems .error")
            await expect(problem).to_contain_text("there is no agent type 'cloude'")
            line = page.locator(".gutter span.error")
            await expect(line).to_have_text(f"{len(lines) + 4}\n")
            place, beside = await line.bounding_box(), await problem.bounding_box()
            assert place is not None
            assert beside is not None
            assert abs(place["y"] - beside["y"]) < 10
            assert beside["x"] > place["x"]
            await box.fill("\n".join([*lines, "# fine again"]))
            await expect(problem).to_have_count(0)
            await page.get_by_role("button", name="Save").click()
            await expect(page.get_by_role("heading", name="May it run?")).to_be_visible()
            await page.get_by_role("button", name="Back to the text").click()
            await expect(box).to_have_value("\n".join([*lines, "# fine again"]))
            await page.get_by_role("button", name="Save").click()
            await page.get_by_role("button", name="Save, and let it run").click()
            await page.wait_for_url("**/teams")
            assert team.read_text().endswith("# fine again")
            assert Trust().knows(team, team.read_text())
            await page.get_by_role("button", name="Start").click()
            await page.wait_for_url("**/c/*")

    play(story())
