"""The usage page: a bar for each day, in parts, and the same in numbers."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import write_example
from bullpen.testing.site import site
from bullpen.view.usage import UsageRow
from bullpen.web.usage import HEIGHT, MOST_DAYS, OTHERS, plot


def row(name: str, cost: float | None = None, tokens: int = 0, *, is_estimate: bool = False) -> UsageRow:
    return UsageRow(name=name, turns=1, input_tokens=tokens, cost_usd=cost, is_estimate=is_estimate)


def test_a_bar_is_a_day_and_its_parts_are_as_high_as_what_they_cost() -> None:
    days = {
        "2026-11-15": {"max": row("max", 3.0), "eva": row("eva", 1.0)},
        "2026-11-17": {"eva": row("eva", 2.0, is_estimate=True)},
    }
    drawn = plot(days, ["max", "eva"])

    assert [(one.label, one.color) for one in drawn.parts] == [
        ("2026-11-15 max: $3.00", drawn.colors["max"]),
        ("2026-11-15 eva: $1.00", drawn.colors["eva"]),
        ("2026-11-17 eva: ~$2.00", drawn.colors["eva"]),
    ]
    first, second, third = drawn.parts
    assert first.height == pytest.approx(3 * second.height)
    assert third.height == pytest.approx(2 * second.height)
    assert second.y + second.height == pytest.approx(first.y), "one on the other"
    assert second.x == first.x < third.x
    assert [day.name for day in drawn.days] == ["11-15", "11-16", "11-17"], "also a day on which nothing was used"
    assert [label for _, label in drawn.lines] == ["~$4.00", "~$2.00"]
    assert drawn.unit == "Money"


def test_without_money_tokens_are_drawn_and_without_both_nothing() -> None:
    drawn = plot({"2026-11-15": {"max": row("max", tokens=1200)}}, ["max"])
    assert (drawn.unit, [one.label for one in drawn.parts]) == ("Tokens", ["2026-11-15 max: 1.2k tokens"])
    assert plot({"2026-11-15": {"max": row("max")}}, ["max"]).parts == ()
    assert plot({}, []).parts == ()
    assert plot({"unknown": {"max": row("max", 1.0)}}, ["max"]).parts == ()


def test_members_have_the_colours_that_they_have_elsewhere() -> None:
    days = {"2026-11-15": {name: row(name, 1.0) for name in ("max", "eva", "ada")}}
    own = {"max": "green", "eva": "cyan", "ada": "green"}
    drawn = plot(days, ["max", "eva", "ada"], own)
    assert (drawn.colors["max"], drawn.colors["eva"]) == ("green", "cyan")
    assert drawn.colors["ada"] not in ("green", "cyan"), "a dearer one of another team has its colour"


def test_many_names_and_many_days_fit() -> None:
    names = [f"m{number}" for number in range(20)]
    days = {f"20{year}-01-01": {name: row(name, 1.0) for name in names} for year in range(10, 27)}
    drawn = plot(days, names)

    assert [*drawn.colors][-1] == OTHERS
    assert len(drawn.parts) == len(drawn.colors), "one day in so many"
    assert sum(part.height for part in drawn.parts) <= HEIGHT
    assert len(drawn.days) < MOST_DAYS


def test_the_page_shows_all_conversations_in_a_picture_and_in_numbers(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "conversations.db") as store:
        write_example(store)

    async def story() -> None:
        async with (
            site(tmp_path) as served,
            httpx.AsyncClient(base_url=served.url, follow_redirects=True, headers={"Origin": served.url}) as client,
        ):
            await client.post(served.new_url())
            shown, listed = (await client.get("/usage")).text, (await client.get("/")).text
            assert 'aria-label="Money used each day"' in shown
            assert re.findall(r"<title>\S+ (\w+): ([^<]*)</title>", shown)
            chat = (await client.get(found[1])).text if (found := re.search(r'href="(/c/[^"]+)"', listed)) else ""
            colors = dict(re.findall(r'<li class="member c-(\w+)[^"]*" data-member="(\w+)"', chat))
            legend = re.findall(r'<li class="c-(\w+)"><span class="swatch tinted"[^>]*></span><bdi>(\w+)</bdi>', shown)
            assert legend
            assert set(legend) <= set(colors.items())
            assert "<td><bdi>max</bdi></td>" in shown
            by_agent = (await client.get("/usage", params={"by": "agent"})).text
            assert "<option selected>agent</option>" in by_agent
            assert "<td><bdi>claude</bdi></td>" in by_agent
            by_conversation = (await client.get("/usage", params={"by": "conversation"})).text
            assert re.search(r'<a href="/c/[\w-]+/timeline">', by_conversation)
            assert re.search(r"<td><bdi>\d{4}-\d\d-\d\d</bdi>", (await client.get("/usage", params={"by": "day"})).text)
            assert (await client.get("/usage", params={"by": "<x>"})).status_code == 200
            assert 'href="/usage"' in (await client.get("/")).text

    asyncio.run(story())


def test_nothing_was_used_yet(tmp_path: Path) -> None:
    async def story() -> str:
        async with site(tmp_path) as served, httpx.AsyncClient(base_url=served.url, follow_redirects=True) as client:
            await client.post(served.new_url(), headers={"Origin": served.url})
            return (await client.get("/usage")).text

    assert "Nothing has been used: no turn has ended." in asyncio.run(story())
