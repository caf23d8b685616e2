"""docs/reliability.md, written from what was measured, which is kept beside it in JSON class by class."""

import os
import platform
import re
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import msgspec
from benchmarks.report import _cpu
from msgspec import Struct
from proofs.torture.outcome import Outcome, Torture
from proofs.torture.picture import Bar, drawn

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reliability.md"
RESULTS = DOCS / "reliability.json"
PICTURE = DOCS / "pictures" / "reliability.svg"

INTRODUCTION = """# What can break bullpen?

Written by `make torture`; every figure here comes from a run of it. Each class of torture does something bad to
bullpen very often and looks for broken promises afterwards. The seed repeats what is done, but not what processes do at
the same moment. Each class also proves once that it can find something: a fault is planted, in the test and never in
the product, and it must be caught. One class alone is run again with `python -m proofs.torture --only NAME`, and dated
by itself; CI runs all of them at a smaller size.

![How often each thing was tried, and how often a promise broke](pictures/reliability.svg)"""


class Result(Struct, frozen=True, kw_only=True):
    """What came out of one class, and all that the page says about it."""

    name: str
    does: str
    promise: str
    fault: str
    fault_caught: bool
    tried: int
    unit: str
    failures: tuple[str, ...]
    figures: dict[str, int]
    skipped: str
    seed: int
    seconds: int
    date: str
    machine: str
    order: int

    @classmethod
    def of(cls, torture: Torture, outcome: Outcome, *, seed: int, seconds: int, fault_caught: bool) -> Self:
        """Return the result of a run that has just ended on this machine."""
        return cls(
            name=torture.name,
            does=torture.does,
            promise=torture.promise,
            fault=torture.fault,
            fault_caught=fault_caught,
            tried=outcome.tried,
            unit=outcome.unit,
            failures=outcome.failures,
            figures=outcome.figures,
            skipped=outcome.skipped,
            seed=seed,
            seconds=seconds,
            date=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            machine=_machine(),
            order=torture.order,
        )

    @property
    def is_good(self) -> bool:
        """Whether it was tried, no promise broke, and the planted fault was caught."""
        return not self.failures and not self.skipped and self.fault_caught

    @property
    def sentence(self) -> str:
        """What came out, in a line."""
        if self.skipped:
            return f"skipped: {self.skipped}"
        fault = "caught" if self.fault_caught else "NOT CAUGHT"
        return f"{self.tried:,} {self.unit}, {len(self.failures):,} broken promises, planted fault {fault}"


def read_results() -> list[Result]:
    """Return what earlier runs found."""
    return msgspec.json.decode(RESULTS.read_bytes(), type=list[Result]) if RESULTS.exists() else []


def merged(before: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """Return the newest result of each class."""
    newest = {result.name: result for result in (*before, *new)}
    return sorted(newest.values(), key=lambda result: (result.order, result.name))


def write_page(results: list[Result]) -> None:
    """Write the page, its picture and the figures."""
    RESULTS.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    PAGE.write_text(page(results), encoding="utf-8")
    PICTURE.write_text(picture(results), encoding="utf-8")


def page(results: list[Result]) -> str:
    """Return the page in Markdown."""
    return "\n\n".join([INTRODUCTION, _overview(results), *map(_section, results)]) + "\n"


def picture(results: list[Result]) -> str:
    """Return the picture: one bar for each class that was measured."""
    return drawn([Bar(result.name, result.tried, result.unit, len(result.failures)) for result in _measured(results)])


def _measured(results: list[Result]) -> list[Result]:
    return [result for result in results if not result.skipped]


def _overview(results: list[Result]) -> str:
    columns = ("class", "tried", "promises broken", "planted fault caught", "seed", "minutes", "date")
    rows = [
        (
            f"[{result.name}](#{_anchor(result.name)})",
            f"{result.tried:,} {result.unit}",
            f"{len(result.failures):,}",
            "yes" if result.fault_caught else "**no**",
            str(result.seed),
            f"{result.seconds / 60:.1f}",
            result.date,
        )
        for result in _measured(results)
    ]
    return _table(columns, rows)


def _section(result: Result) -> str:
    if result.skipped:
        return f"## {result.name}\n\nNot measured: {result.skipped}."
    parts = [
        f"## {result.name}",
        f"{result.does}\n\nPromise: {result.promise}",
        _table(("figure", "value"), [(key, f"{count:,}") for key, count in result.figures.items()]),
        f"Planted fault: {result.fault} **{'Caught' if result.fault_caught else 'Not caught'}.**",
    ]
    if result.failures:
        parts.append("Broken:\n\n" + "\n".join(f"- {failure}" for failure in result.failures[:10]))
    return "\n\n".join([*parts, f"On {result.machine}."])


def _anchor(heading: str) -> str:
    """Return what leads to a heading, as GitHub and others make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    divider = ("---", *["---:"] * (len(columns) - 1))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, divider, *rows))


def _machine() -> str:
    system = f"{platform.system()} {platform.release()}"
    versions = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    return f"{_cpu()} with {os.cpu_count()} cores, {system}, {versions}"
