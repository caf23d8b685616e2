"""The picture of the page, drawn by hand in SVG: one bar for each class, as long as it was tried often."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH = 820
ROW = 34
TOP = 44
LABELS = 250
BARS = 330


class Bar(NamedTuple):
    """One class."""

    name: str
    tried: int
    unit: str
    broken: int


def drawn(bars: Sequence[Bar]) -> str:
    """Return the picture. Lengths grow with the logarithm, since some things can be tried a million times."""
    height = TOP + ROW * len(bars) + 12
    most = max([10, *(bar.tried for bar in bars)])
    rows = [_row(bar, TOP + ROW * place, most) for place, bar in enumerate(bars)]
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"
    font-family="ui-sans-serif, system-ui, sans-serif" font-size="13">
<title>How often each thing was tried, and how often a promise broke</title>
<rect width="{WIDTH}" height="{height}" rx="8" fill="#ffffff"/>
<text x="16" y="26" fill="#57606a">tried (each step to the right is ten times as often)</text>
<text x="{WIDTH - 16}" y="26" fill="#57606a" text-anchor="end">promises broken</text>
{"".join(rows)}</svg>
"""


def _row(bar: Bar, top: int, most: int) -> str:
    length = max(4, round(BARS * math.log10(max(bar.tried, 1)) / math.log10(most)))
    color = "#1a7f37" if bar.broken == 0 else "#cf222e"
    line = top + 21
    return f"""<text x="16" y="{line}" fill="#1f2328">{escape(bar.name)}</text>
<rect x="{LABELS}" y="{top + 6}" width="{length}" height="20" rx="3" fill="{color}" fill-opacity="0.25"/>
<text x="{LABELS + 8}" y="{line}" fill="#1f2328">{bar.tried:,} {escape(bar.unit)}</text>
<text x="{WIDTH - 16}" y="{line}" fill="{color}" font-weight="600" text-anchor="end">{bar.broken:,}</text>
"""
