"""Figure: reading and stripping markers in texts that are designed to be slow."""

import signal
from collections.abc import Callable, Iterator
from itertools import count, product
from math import inf
from statistics import median
from time import process_time
from types import FrameType

from msgspec import Struct

from benchmarks.measure import Run, medians
from benchmarks.plot import Plot
from benchmarks.report import Figure, code, duration, times
from bullpen.context import read_markers, strip_all_markers

GOAL_SECONDS = 0.05
LONGEST_CALL_SECONDS = 2
KIBIBYTE = 1024
SIZES = (256 * KIBIBYTE, 512 * KIBIBYTE, 1024 * KIBIBYTE)
FUNCTIONS: dict[str, Callable[[str], object]] = {"strip": strip_all_markers, "read": read_markers}


class Text(Struct, frozen=True):
    """A text of any size: a beginning, one thing repeated, and an end."""

    unit: str
    before: str = ""
    after: str = ""

    def beginning(self, size: int) -> str:
        """Return the text in this size, without the end."""
        return self.before + self.unit * ((size - len(self.before.encode())) // len(self.unit.encode()))

    def __str__(self) -> str:
        parts = (
            code(self.before) if self.before else "",
            f"{code(self.unit)} × n",
            code(self.after) if self.after else "",
        )
        return " ".join(filter(None, parts))


UNITS = (
    "[NEXT:",
    "[NEXT: x]",
    "[NEXT:x]a",
    "[TEAM_TASK]",
    "[TEAM_TASK:",
    "[TEAM_TASK:[a]",
    "[TEAM_TASK:[[[[",
    "`[NEXT:x]` ",
    "` [NEXT:x]",
    "\\`[NEXT:x]",
    "\n\n`[NEXT:x]",
    "```\n[NEXT:x]\n",
    "> [NEXT:x]\n",
    "\\[NEXT:x\\]",
    "[FR[NEXT:x]OM: h]",
    "[NEXT:x] ``` ` `` ",
    "[[[[NEXT:]",
    "[DROP: a|b]",
    "［NEXT：小明］",
)
TEXTS = (
    *map(Text, UNITS),
    Text("a, ", "[NEXT: ", "]"),
    Text("a!P1 & ", "[NEXT: ", "]"),
    Text(" ", "[NEXT: a", "b]"),
    Text("\\", "[NEXT: x] \\` "),
    Text("[", "[NEXT: x] "),
    Text("[", "[TEAM_TASK] "),
    Text(">\n", "[NEXT: x]\n"),
    Text("~~~\n", "[NEXT: x]\n"),
    Text(" \n", "[NEXT: x"),
    Text("Plain prose, as people write it. ", after="[NEXT: x]"),
)

Case = tuple[Text, str, int]


def measure(*, quick: bool) -> Figure:
    """Time both functions on every text in three sizes."""
    sizes = tuple(size // 4 for size in SIZES) if quick else SIZES
    cases = [(text, name, size) for text in TEXTS for name in FUNCTIONS for size in sizes]
    runs = {case: _run(case) for case in cases}
    taken = medians(
        {case: run for case, run in runs.items() if _ends(run)}, rounds=3 if quick else 7, clock=process_time
    )
    missed = [case for case in cases if case[2] == sizes[-1] and _misses(case, taken)]
    return Figure(
        title="Markers in texts that are designed to be slow",
        goal=f"at most {duration(_limit(sizes[-1]))} for any {_kibibytes(sizes[-1])} of text",
        met=not missed,
        measured=f"{len(missed)} of {len(TEXTS) * len(FUNCTIONS)} over it, the worst "
        f"{duration(max(time for (_, _, size), time in taken.items() if size == sizes[-1]))}; "
        f"{sizes[-1] // sizes[0]} times the text takes at most {times(_fastest_growth(taken, sizes))} times as long",
        reason="where a megabyte consists of markers, fences or quotes and no pattern matches many lines at once, each "
        "of them is handled in Python. Plain prose of that size is far below the goal.",
        columns=("text", *[f"{name} {_kibibytes(size)}" for name in FUNCTIONS for size in sizes]),
        rows=[(str(text), *_cells(text, sizes, taken)) for text in TEXTS],
        meaning="Twice the text must take twice the time: a message of a megabyte may come from an agent out of "
        f"control, or from an attacker. In bold: over the goal. {len(missed)} of "
        f"{len(TEXTS) * len(FUNCTIONS)} are.",
        plots=(_plot(taken, sizes),),
    )


def _plot(taken: dict[Case, float], sizes: tuple[int, ...]) -> Plot:
    series = {}
    for name in FUNCTIONS:
        by_size = {
            size: sorted(taken[text, name, size] for text in TEXTS if (text, name, size) in taken) for size in sizes
        }
        series[f"{name}, the worst text"] = [(size / KIBIBYTE, found[-1]) for size, found in by_size.items()]
        series[f"{name}, the middle one"] = [(size / KIBIBYTE, median(found)) for size, found in by_size.items()]
        series[f"{name}, plain prose"] = [(size / KIBIBYTE, taken[TEXTS[-1], name, size]) for size in sizes]
    return Plot(
        name="markers",
        title="Markers in texts that are designed to be slow",
        across="KiB of text",
        up="processor time, lower is better",
        unit="seconds",
        series=series,
    )


def _fastest_growth(taken: dict[Case, float], sizes: tuple[int, ...]) -> float:
    pairs = [(taken.get((*case, sizes[0])), taken.get((*case, sizes[-1]))) for case in product(TEXTS, FUNCTIONS)]
    return max(large / small if small and large else inf for small, large in pairs)


def _run(case: Case) -> Run:
    text, name, size = case
    beginning, function, calls = text.beginning(size), FUNCTIONS[name], count()
    # Each call gets a new text, since read_markers caches recent names.
    return lambda: function(f"{beginning}{next(calls)}{text.after}")


def _ends(run: Run) -> bool:
    """Return whether a call ends within LONGEST_CALL_SECONDS."""
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(LONGEST_CALL_SECONDS)
    try:
        run()
    except TimeoutError:
        return False
    finally:
        signal.alarm(0)
    return True


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def _limit(size: int) -> float:
    return GOAL_SECONDS * size / SIZES[-1]


def _misses(case: Case, taken: dict[Case, float]) -> bool:
    return case not in taken or taken[case] > _limit(case[2])


def _cells(text: Text, sizes: tuple[int, ...], taken: dict[Case, float]) -> Iterator[str]:
    for case in [(text, name, size) for name in FUNCTIONS for size in sizes]:
        time = duration(taken[case]) if case in taken else f"over {LONGEST_CALL_SECONDS} s"
        yield f"**{time}**" if case[2] == sizes[-1] and _misses(case, taken) else time


def _kibibytes(size: int) -> str:
    return f"{size // KIBIBYTE:,} KiB"
