"""The page: a summary, then every figure with a text, a table, and a picture where something grows."""

import json
import os
import platform
import re
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from msgspec import Struct

import bullpen
from benchmarks.plot import Plot

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PICTURES = PAGE.parent / "pictures"
EARLIER = Path(__file__).with_name("earlier.json")

INTRODUCTION = """# How fast is bullpen, and how much memory does it take?

Written by `make bench`; every number on this page comes from that run. Candidates run in turn, and each number is a
median. Times are processor time, which is least affected by other work on the machine, unless a figure says wall-clock
time. The messages are those of `benchmarks/corpus.py`: English, code, Chinese, and English with emoji, many short and a
few long, most with a `[NEXT: x]`. Other libraries run in their own environments, created for the run."""


class Figure(Struct, frozen=True, kw_only=True):
    """One thing that was measured."""

    title: str
    goal: str
    met: bool
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    meaning: str
    """What the numbers say, in a sentence or two."""
    measured: str = ""
    """What to compare with the goal, in a few words."""
    reason: str = ""
    """Why the goal is missed. It is kept in the code with the figure, so that the next run does not lose it."""
    plots: tuple[Plot, ...] = ()


def page(figures: Sequence[Figure]) -> str:
    """Return the whole page in Markdown."""
    about = [_table(("machine", ""), _machine()), summary(figures), *comparison(figures)]
    parts = [INTRODUCTION, *about, *map(section, figures)]
    return "\n\n".join(parts) + "\n"


def write(figures: Sequence[Figure]) -> None:
    """Write the page and its pictures, and remove the pictures of an earlier run."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("bench-*.svg"):
        old.unlink()
    for plot in (plot for figure in figures for plot in figure.plots):
        (PICTURES / _file(plot)).write_text(plot.svg(), encoding="utf-8")
    PAGE.write_text(page(figures), encoding="utf-8")


def update(figures: Sequence[Figure]) -> None:
    """Write the sections of some figures into the page, with their pictures and their rows of the summary."""
    for plot in (plot for figure in figures for plot in figure.plots):
        (PICTURES / _file(plot)).write_text(plot.svg(), encoding="utf-8")
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")


def updated(text: str, figures: Sequence[Figure]) -> str:
    """Return the page with other sections for some figures; new ones come last."""
    first, *rest = text.rstrip("\n").split("\n\n## ")
    sections = {part.partition("\n")[0]: part for part in rest}
    for figure in figures:
        sections[figure.title] = section(figure).removeprefix("## ")
        sections["Summary"] = _with_row(sections["Summary"], figure)
    return "\n\n## ".join([first, *sections.values()]) + "\n"


def _with_row(text: str, figure: Figure) -> str:
    row = next(line for line in summary([figure]).splitlines() if line.startswith("| ["))
    start = f"| [{figure.title}]("
    lines = text.splitlines()
    place = next((number for number, line in enumerate(lines) if line.startswith(start)), len(lines))
    lines[place : place + 1] = [row]
    rows = [line for line in lines if line.startswith("| [")]
    met = sum(line.endswith("| met |") for line in rows)
    return "\n".join(f"{met} of {len(rows)} goals are met." if " goals are met." in line else line for line in lines)


def summary(figures: Sequence[Figure]) -> str:
    """Return every goal and whether it is met, in one table."""
    met = sum(figure.met for figure in figures)
    rows = [
        (f"[{figure.title}](#{_anchor(figure.title)})", figure.goal, figure.measured or "see below", _verdict(figure))
        for figure in figures
    ]
    table = _table(("figure", "goal", "measured", "verdict"), rows, numbers=False)
    return f"## Summary\n\n{met} of {len(figures)} goals are met.\n\n{table}"


def comparison(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield a comparison with an earlier run, if that run had the same figures."""
    earlier = json.loads(EARLIER.read_text(encoding="utf-8"))
    if len(figures) == len(earlier["measured"]):
        rows = [
            (figure.title, before, figure.measured or "see below")
            for figure, before in zip(figures, earlier["measured"], strict=True)
        ]
        table = _table(("figure", f"before, {earlier['date']}", "now"), rows, numbers=False)
        yield f"## Compared with the run of {earlier['date']}\n\n{table}"


def section(figure: Figure) -> str:
    """Return one figure in Markdown."""
    goal = f"Goal: {figure.goal}. **{'Met' if figure.met else 'Missed'}.**"
    if figure.measured:
        goal += f" Measured: {figure.measured}."
    if figure.reason and not figure.met:
        goal += f"\n\nWhy it is missed: {figure.reason}"
    pictures = [f"![{plot.words()}](pictures/{_file(plot)})" for plot in figure.plots]
    return "\n\n".join([f"## {figure.title}", goal, *pictures, _table(figure.columns, figure.rows), figure.meaning])


def times(ratio: float) -> str:
    """Return a ratio for a table."""
    return f"{ratio:.2f}"


def duration(seconds: float) -> str:
    """Return a time in a suitable unit."""
    if seconds >= 1:
        return f"{seconds:.2f} s"
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def code(text: str) -> str:
    r"""Return a text as a code span for a table, line breaks as \n."""
    shown = text.replace("\n", "\\n").replace("|", "\\|")
    return f"```` {shown} ````" if "`" in shown else f"`{shown}`"


def _verdict(figure: Figure) -> str:
    if figure.met:
        return "met"
    return f"**missed**: {figure.reason}" if figure.reason else "**missed**"


def _file(plot: Plot) -> str:
    return f"bench-{plot.name}.svg"


def _anchor(title: str) -> str:
    """Return the name that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, numbers: bool = True) -> str:
    divider = ("---", *["---:" if numbers else "---"] * (len(columns) - 1))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, divider, *rows))


def _machine() -> list[tuple[str, str]]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return [
        ("CPU", _cpu()),
        ("cores", str(os.cpu_count())),
        ("memory", f"{memory / 2**30:.1f} GiB"),
        ("system", platform.platform()),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("bullpen", f"{bullpen.__version__}, msgspec {version('msgspec')}, SQLite {sqlite3.sqlite_version}"),
        ("date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"),
    ]


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
