"""Growth as a picture: both axes logarithmic, one line per candidate with its name at the end, as SVG."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from msgspec import Struct

WIDTH, HEIGHT = 820, 420
LEFT, RIGHT, TOP, BOTTOM = 78, 266, 62, 52
LINE_HEIGHT = 16
MOST_MARKS = 9
# Okabe and Ito's colours, which colour-blind people can distinguish; the last ones are darker or lighter than theirs,
# so that each has enough contrast with both backgrounds.
COLOURS = ("#d55e00", "#0a84c6", "#00916e", "#b8629c", "#8a7a00", "#7d7d86", "#6a63d9", "#a0522d")
# The picture has its own background, since the background of the page is unknown.
STYLE = """
text{font:13px system-ui,sans-serif;fill:#24292f}.title{font-size:15px;font-weight:600}.quiet{fill:#57606a}
.paper{fill:#fff;stroke:#d0d7de}.grid{stroke:#e4e8ec}.line{fill:none;stroke-width:2.2;stroke-linejoin:round}
.leader{fill:none;stroke-width:1;opacity:.6}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9aa4af}.paper{fill:#0d1117;stroke:#30363d}
.grid{stroke:#242b33}}
"""

Point = tuple[float, float]
Unit = Callable[[float], str]


class Plot(Struct, frozen=True, kw_only=True):
    """One picture: how something grows."""

    name: str
    """Its file is bench-NAME.svg."""
    title: str
    across: str
    """What grows, for the axis."""
    up: str
    unit: str
    """The unit of the values: seconds, ratio, bytes or plain."""
    series: Mapping[str, Sequence[Point]]

    def svg(self) -> str:
        """Return the picture."""
        return "\n".join([_beginning(self), *_Drawing(self).parts(), "</svg>", ""])

    def words(self) -> str:
        """Return a description for people who cannot see the picture."""
        return f"{self.title}: {self.up} against {self.across}"


class _Drawing:
    """A picture while it is drawn: which value goes where."""

    def __init__(self, plot: Plot) -> None:
        self._plot = plot
        self._series = {name: [point for point in points if min(point) > 0] for name, points in plot.series.items()}
        points = [point for line in self._series.values() for point in line]
        self._x = sorted({x for x, _ in points})
        self._y = _marks(min(y for _, y in points), max(y for _, y in points))

    def parts(self) -> Iterable[str]:
        yield from self._grid()
        yield from self._lines()
        yield from self._labels()

    def _place(self, point: Point) -> Point:
        across, up = _share(point[0], self._x), _share(point[1], self._y)
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def _grid(self) -> Iterable[str]:
        unit = UNITS[self._plot.unit]
        for value in self._y:
            _, y = self._place((self._x[0], value))
            yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
            yield _text(LEFT - 8, y + 4, unit(value), kind="quiet", anchor="end")
        for value in self._x:
            x, _ = self._place((value, self._y[0]))
            yield f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
            yield _text(x, HEIGHT - BOTTOM + 20, f"{value:,.0f}", kind="quiet", anchor="middle")
        yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, self._plot.across, kind="quiet", anchor="middle")

    def _lines(self) -> Iterable[str]:
        for (_, points), colour in zip(self._series.items(), COLOURS, strict=False):
            places = [self._place(point) for point in points]
            way = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
            yield f'<path class="line" stroke="{colour}" d="M{way}"/>'
            yield "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" fill="{colour}"/>' for x, y in places)

    def _labels(self) -> Iterable[str]:
        """Yield each name next to the end of its line, moved apart where ends are close together."""
        ends = {
            name: (*self._place(points[-1]), colour)
            for (name, points), colour in zip(self._series.items(), COLOURS, strict=False)
            if points
        }
        heights = _apart({name: y for name, (_, y, _) in ends.items()})
        x = WIDTH - RIGHT + 18
        for name, (end_x, end_y, colour) in ends.items():
            y = heights[name]
            yield f'<path class="leader" stroke="{colour}" d="M{end_x + 5:.1f} {end_y:.1f}L{x - 3} {y:.1f}"/>'
            yield _text(x, y + 4, name, colour=colour)


def _beginning(plot: Plot) -> str:
    words = escape(plot.words())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words}">'
        f"<title>{words}</title><style>{STYLE}</style>"
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="6"/>'
        + _text(18, 26, plot.title, kind="title")
        + _text(18, 45, plot.up, kind="quiet")
    )


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "", colour: str = "") -> str:
    attributes = {"class": kind, "text-anchor": anchor, "style": f"fill:{colour}" if colour else ""}
    given = "".join(f' {name}="{value}"' for name, value in attributes.items() if value)
    return f'<text x="{x:.1f}" y="{y:.1f}"{given}>{escape(text)}</text>'


def _apart(heights: Mapping[str, float]) -> dict[str, float]:
    """Return heights at least a line apart, in the same order, as close as possible to the original ones."""
    order = sorted(heights, key=lambda name: heights[name])
    moved = dict(heights)
    for upper, lower in pairwise(order):
        moved[lower] = max(moved[lower], moved[upper] + LINE_HEIGHT)
    lowest = HEIGHT - BOTTOM + 8.0
    for name in reversed(order):
        moved[name] = min(moved[name], lowest)
        lowest = moved[name] - LINE_HEIGHT
    return moved


def _marks(lowest: float, highest: float) -> list[float]:
    """Return round numbers around and between two values: every power of ten, or also 2 and 5 when those are few."""
    # Never less than a factor of ten, so that small growth looks small.
    if (short := 10 / (highest / lowest)) > 1:
        lowest, highest = lowest / short**0.5, highest * short**0.5
    powers = range(floor(log10(lowest)) - 1, ceil(log10(highest)) + 2)
    for digits in ((1, 2, 5), (1,)):
        marks = [digit * 10.0**power for power in powers for digit in digits]
        below = max(mark for mark in marks if mark <= lowest * 1.001)
        above = min(mark for mark in marks if mark >= highest * 0.999)
        chosen = [mark for mark in marks if below <= mark <= above]
        if len(chosen) <= MOST_MARKS:
            break
    return chosen


def _share(value: float, marks: Sequence[float]) -> float:
    """Return where a value is between the first mark, 0, and the last, 1."""
    if len(marks) == 1:
        return 0.5
    return log10(value / marks[0]) / log10(marks[-1] / marks[0])


def _seconds(value: float) -> str:
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if value >= size * 0.999:
            return f"{value / size:,.0f} {unit}"
    return f"{value:g} s"


def _bytes(value: float) -> str:
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:,.0f} {unit}"
    return f"{value:,.0f} B"


UNITS: dict[str, Unit] = {
    "seconds": _seconds,
    "bytes": _bytes,
    "ratio": lambda value: f"{value:g}×",
    "plain": lambda value: f"{value:,g}",
}
