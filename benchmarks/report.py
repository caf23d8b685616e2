"""The page: one figure after the other, in words and a table."""

import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"

INTRODUCTION = """# How fast is bullpen, and how much memory does it take?

Written by `make bench`; every number here comes from that run. Candidates take turns, and each is known by its median.
Times are processor time, which other work on the machine disturbs least. The messages are those of
`benchmarks/corpus.py`: English, code, Chinese, and English with emoji, many short and a few long, most with a
`[NEXT: x]`."""


class Figure(Struct, frozen=True, kw_only=True):
    """One thing that was measured."""

    title: str
    goal: str
    met: bool
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    meaning: str
    """What the numbers say, in a sentence or two."""


def page(figures: Sequence[Figure]) -> str:
    """Return the whole page in Markdown."""
    return "\n\n".join([INTRODUCTION, _table(("machine", ""), _machine()), *map(section, figures)]) + "\n"


def section(figure: Figure) -> str:
    """Return one figure in Markdown."""
    verdict = "met" if figure.met else "missed"
    goal = f"Goal: {figure.goal}. **{verdict.capitalize()}.**"
    return "\n\n".join([f"## {figure.title}", goal, _table(figure.columns, figure.rows), figure.meaning])


def times(ratio: float) -> str:
    """Return a ratio for a table."""
    return f"{ratio:.2f}"


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def code(text: str) -> str:
    r"""Return a text as a code span for a table, line breaks as \n."""
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    return f"```` {shown} ````" if "`" in shown else f"`{shown}`"


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    divider = ("---", *["---:"] * (len(columns) - 1))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, divider, *rows))


def _machine() -> list[tuple[str, str]]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [
        ("CPU", _cpu()),
        ("cores", str(os.cpu_count())),
        ("memory", f"{memory / 2**30:.1f} GiB"),
        ("system", platform.platform()),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}, msgspec {version('msgspec')}"),
        ("date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
    ]


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
