"""Every regular expression of the package gets input that doubles: the time may double too, and no more."""

import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from time import process_time

from proofs.torture.hostile_inputs import BLOCKS, CODE, MARKERS, NAME, QUOTES

import bullpen
from bullpen.context import ClaudeContextAssembler, GeminiContextAssembler
from bullpen.text.patterns import _Pattern as LazyPattern

CHARACTERS = 4_000
QUICK_SECONDS = 0.004
"""What takes no longer for the longest input is not looked at again: were it quadratic, it would take much longer."""
DOUBLINGS = 3
MOST_GROWTH = 3.0
"""For each doubling; 2 is linear, 4 is quadratic."""
REPEATS = 3

Use = Callable[[re.Pattern[str], str], None]


def all_patterns() -> dict[str, re.Pattern[str]]:
    """Return every compiled pattern that a module holds, and those that objects make for themselves."""
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.walk_packages(bullpen.__path__, "bullpen."):
        if module.name.endswith("__main__"):
            continue
        try:
            values = vars(importlib.import_module(module.name))
        except ImportError:
            continue  # An extra that is not installed.
        expressions = {f"{module.name}.{name}": _compiled(value) for name, value in values.items()}
        found |= {name: value for name, value in expressions.items() if value is not None}
    for assembler in (ClaudeContextAssembler(), GeminiContextAssembler()):
        assembler._set_names(("max", "a -> b"))
        found |= {
            f"{type(assembler).__name__}.{name}": compiled
            for name, value in vars(assembler._message_guard).items()
            if (compiled := _compiled(value)) is not None
        }
    return found


def _compiled(value: object) -> re.Pattern[str] | None:
    """Return a pattern, also one that is compiled when it is first used; None if it is something else."""
    if isinstance(value, LazyPattern):
        value = re.compile(value._source, value._flags)
    return value if isinstance(value, re.Pattern) and isinstance(value.pattern, str) else None


def _only_matched(name: str) -> bool:
    """Tell whether our code never searches with a pattern, but only tries it where a text begins."""
    module, _, variable = name.rpartition(".")
    file = getattr(sys.modules.get(module), "__file__", None)
    used = set(re.findall(rf"\b{variable}\.(\w+)\(", Path(file).read_text(encoding="utf-8"))) if file else set()
    return bool(used) and used <= {"match", "fullmatch"}


def slow_patterns(patterns: dict[str, re.Pattern[str]] | None = None) -> tuple[int, list[str]]:
    """Return how many patterns there are, and which of them take more than their input's share of time."""
    patterns = all_patterns() if patterns is None else patterns
    slow = [
        f"{name}: {problem}"
        for name, pattern in patterns.items()
        for problem in _problems(pattern, only_matched=_only_matched(name))
    ]
    return len(patterns), slow


def _problems(pattern: re.Pattern[str], *, only_matched: bool) -> Iterator[str]:
    use = _match if only_matched else _search
    for beginning, unit, end in _inputs(pattern.pattern):
        if _seconds(pattern, use, _text(beginning, unit, end, CHARACTERS)) < QUICK_SECONDS:
            continue
        sizes = [CHARACTERS >> shift for shift in range(DOUBLINGS, -1, -1)]
        texts = [_text(beginning, unit, end, size) for size in sizes]
        taken = [min(_seconds(pattern, use, text) for _ in range(REPEATS)) for text in texts]
        if taken[-1] > taken[0] * MOST_GROWTH**DOUBLINGS:
            yield f"{beginning!r} {unit!r} × n {end!r} takes {[round(1000 * one, 1) for one in taken]} ms"
            return


def _inputs(pattern: str) -> Iterator[tuple[str, str, str]]:
    """Yield what to repeat: characters and words of the pattern itself, alone and in pairs, and our nasty pieces."""
    letters = sorted(set(re.findall(r"[^\\\w]|[a-zA-Z0-9_]", pattern)) | set(" \n\t\r`[]：a0-.>~*_"))[:60]
    words = re.findall(r"[A-Za-z_]{2,}", pattern)[:12]
    pieces = [piece.replace(NAME, "x") for piece in (*MARKERS, *CODE, *QUOTES, *BLOCKS)]
    pairs = ["".join(pair) for pair in product(letters[:9], repeat=2)]
    units = dict.fromkeys([*letters, *words, *pieces, *pairs])
    for unit in units:
        yield "", unit, "!"
    for beginning, unit in product(("[NEXT: ", "```"), letters[:30]):
        yield beginning, unit, "\n!"


def _text(beginning: str, unit: str, end: str, characters: int) -> str:
    return beginning + unit * (characters // len(unit)) + end


def _seconds(pattern: re.Pattern[str], use: Use, text: str) -> float:
    began = process_time()
    use(pattern, text)
    return process_time() - began


def _match(pattern: re.Pattern[str], text: str) -> None:
    pattern.match(text)


def _search(pattern: re.Pattern[str], text: str) -> None:
    for _ in pattern.finditer(text):
        pass
