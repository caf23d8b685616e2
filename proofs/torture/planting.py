"""One-line mistakes in the product, made in this process only, and whether each is found. It imports no product."""

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from textwrap import dedent
from types import FunctionType

from msgspec import Struct
from proofs.torture.outcome import Outcome

ALL_FOUND = "each of them was found"


class Planted(Struct, frozen=True):
    """A fault: how it is planted, what looks for it with a seed, and what it leads to."""

    plant: Callable[[], AbstractContextManager[object]]
    find: Callable[[int], Iterable[str]]
    seen_as: str


def each_found(faults: Mapping[str, Planted], seed: int) -> Outcome:
    """Plant one after the other. Say that all were found, or which were not."""
    missed = []
    for name, fault in faults.items():
        with fault.plant():
            if not any(re.search(fault.seen_as, failure, re.DOTALL) for failure in fault.find(seed)):
                missed.append(f"missed: {name}")
    return Outcome(tried=len(faults), unit="planted faults", failures=tuple(missed) or (ALL_FOUND,))


def in_words(faults: Iterable[str]) -> str:
    """Return what is planted, for the page."""
    return f"one after the other: {'; '.join(faults)}. Each must be found."


def one_line(function: object, right: str, wrong: str) -> Callable[[], AbstractContextManager[None]]:
    """Return what puts something wrong in the place of what a function has exactly once, whoever has imported it."""
    return partial(_mistaken, function, right, wrong)


@contextmanager
def _mistaken(function: object, right: str, wrong: str) -> Iterator[None]:
    assert isinstance(function, FunctionType)
    before = function.__code__
    make_mistake(function, right, wrong)
    try:
        yield
    finally:
        function.__code__ = before


def make_mistake(function: object, right: str, wrong: str) -> None:
    """Do the same until this process ends."""
    assert isinstance(function, FunctionType)
    source = dedent(inspect.getsource(function))
    if source.count(right) != 1:
        raise ValueError(f"{function.__qualname__} does not contain this exactly once: {right}")
    made: dict[str, FunctionType] = {}
    exec(source.replace(right, wrong), function.__globals__, made)
    function.__code__ = made[function.__name__].__code__


def plant_in(module: str, right: str, wrong: str, folder: Path) -> None:
    """Put something wrong in the place of what a module has exactly once, before anything has imported it."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    if source.count(right) != 1:
        raise ValueError(f"{module} does not contain this exactly once: {right}")
    if module in sys.modules:
        raise ValueError(f"{module} was imported too early")
    changed = folder / Path(spec.origin).name
    changed.write_text(source.replace(right, wrong), encoding="utf-8")
    mistaken = importlib.util.spec_from_file_location(module, changed)
    assert mistaken is not None
    assert mistaken.loader is not None
    made = importlib.util.module_from_spec(mistaken)
    sys.modules[module] = made
    package, _, last = module.rpartition(".")
    setattr(importlib.import_module(package), last, made)
    mistaken.loader.exec_module(made)
