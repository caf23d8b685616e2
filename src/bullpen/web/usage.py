"""The usage page: what turns have used, a bar for each day, drawn from the same numbers as the table below it."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from types import MappingProxyType
from typing import get_args

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.team.team import PALETTE
from bullpen.text.numbers import money, short_number, used
from bullpen.view.usage import By, UsageRow, as_table, member_colors, usage_by_day
from bullpen.web.requests import hub_of
from bullpen.web.responses import page
from bullpen.web.templates import rendered

WIDTH, HEIGHT = 960, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 12, 12, 28
MOST_DAYS = 60
"""The latest that are drawn; the table has all."""
MOST_NAMES = len(PALETTE) - 1
"""Those with a colour of their own; the others are one part of each bar."""
OTHERS = "others"
NO_COLORS: Mapping[str, str] = MappingProxyType({})
LABEL_WIDTH = 44
LEAST_HEIGHT = 1.0


class Part(Struct, frozen=True, kw_only=True):
    """What one of them used on a day, as a part of a bar."""

    color: str
    x: float
    y: float
    width: float
    height: float
    label: str


class Day(Struct, frozen=True):
    """A day whose name is written below its bar."""

    x: float
    name: str


class UsagePlot(Struct, frozen=True, kw_only=True):
    """Everything that is drawn."""

    parts: tuple[Part, ...] = ()
    days: tuple[Day, ...] = ()
    lines: tuple[tuple[float, str], ...] = ()
    """Heights, each with its label."""
    colors: Mapping[str, str] = {}
    """The names in their colours, the dearest first."""
    unit: str = ""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT


def plot(
    days: Mapping[str, Mapping[str, UsageRow]], names: Sequence[str], own: Mapping[str, str] = NO_COLORS
) -> UsagePlot:
    """Return the plot of what was used each day; `names` begin with the dearest, and some have a colour elsewhere."""
    shown = _calendar(list(days))
    is_money = any(row.cost_usd for rows in days.values() for row in rows.values())
    is_estimate = any(row.is_estimate for rows in days.values() for row in rows.values())
    colors = _colors(names, own)
    bars = [_together(days.get(day, {}), colors) for day in shown]
    most = max((sum(_amount(row, is_money=is_money) for row in bar.values()) for bar in bars), default=0.0)
    if not most:
        return UsagePlot()
    step, scale = (WIDTH - LEFT - RIGHT) / len(shown), (HEIGHT - TOP - BOTTOM) / most
    parts: list[Part] = []
    for index, (day, bar) in enumerate(zip(shown, bars, strict=True)):
        bottom = float(HEIGHT - BOTTOM)
        for name, color in colors.items():
            amount = _amount(bar[name], is_money=is_money) if name in bar else 0.0
            if amount:
                height = max(LEAST_HEIGHT, amount * scale)
                bottom -= height
                x, label = LEFT + (index + 0.15) * step, f"{day} {name}: {_words(bar[name])}"
                parts.append(Part(color=color, x=x, y=bottom, width=0.7 * step, height=height, label=label))
    every = -(-len(shown) * LABEL_WIDTH // (WIDTH - LEFT - RIGHT))
    marks = {
        mark: money(mark, is_estimate=is_estimate) if is_money else short_number(int(mark)) for mark in (most, most / 2)
    }
    return UsagePlot(
        parts=tuple(parts),
        days=tuple(Day(LEFT + (at + 0.5) * step, day[5:]) for at, day in enumerate(shown) if at % every == 0),
        lines=tuple((HEIGHT - BOTTOM - mark * scale, label) for mark, label in marks.items()),
        colors=colors,
        unit="Money" if is_money else "Tokens",
    )


def svg_of(drawn: UsagePlot) -> Markup:
    """Return the plot as SVG, in the colours of the page."""
    return rendered("usage.svg", drawn=drawn)


async def usage(request: Request) -> Response:
    """Show what turns have used, in all conversations."""
    asked = request.query_params.get("by", "member")
    by: By = next((one for one in get_args(By) if one == asked), "member")
    days = await hub_of(request).read(usage_by_day, by)
    table = as_table(by, days)
    # A bar is a day already, so its parts are members.
    parts = days if by != "day" else await hub_of(request).read(usage_by_day, "member")
    own = await hub_of(request).read(member_colors) if by in ("day", "member") else NO_COLORS
    drawn = plot(parts, [row.name for row in as_table("member" if by == "day" else by, parts).rows], own)
    return page("usage.html", table=table, drawn=drawn, svg=svg_of(drawn), choices=get_args(By))


def _colors(names: Sequence[str], own: Mapping[str, str]) -> dict[str, str]:
    """Return a colour for each name that is drawn: its own, or, if a dearer one has that, one that nobody has."""
    shown = names[:MOST_NAMES]
    taken = {own[name]: name for name in reversed(shown) if own.get(name) in PALETTE}
    free = (color for color in PALETTE if color not in taken)
    named = {name: color for color, name in taken.items()}
    return {name: named.get(name) or next(free) for name in [*shown, *([OTHERS] if names[MOST_NAMES:] else [])]}


def _calendar(days: Sequence[str]) -> list[str]:
    """Return all days from the first to the last, also those without a turn; the latest, if they are many."""
    known = sorted(day for day in days if _is_day(day))
    if not known:
        return []
    first, last = date.fromisoformat(known[0]), date.fromisoformat(known[-1])
    count = min((last - first).days + 1, MOST_DAYS)
    return [(last - timedelta(days=count - 1 - number)).isoformat() for number in range(count)]


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _together(rows: Mapping[str, UsageRow], colors: Mapping[str, str]) -> dict[str, UsageRow]:
    """Return a day's rows by the names that have colours."""
    found: dict[str, UsageRow] = {}
    for row in rows.values():
        name = row.name if row.name in colors else OTHERS
        found[name] = found.get(name, UsageRow(name=name)) + row
    return found


def _amount(row: UsageRow, *, is_money: bool) -> float:
    return (row.cost_usd or 0.0) if is_money else float(row.input_tokens + row.output_tokens)


def _words(row: UsageRow) -> str:
    return used(row.input_tokens + row.output_tokens, row.cost_usd, is_estimate=row.is_estimate) or "nothing"
