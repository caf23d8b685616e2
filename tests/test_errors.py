"""Every error crosses to another process whole, and can be copied: its kind, its sentence and all that it carries."""

import copy
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, get_type_hints

import pytest

import bullpen
from bullpen.errors import BullpenError, StoreDamaged, TeamProblem
from bullpen.turn_events import Failed

PROBLEM = TeamProblem("is no color", line=3, key="color", severity="warning")
VALUES: dict[object, object] = {
    str: "a text",
    object: "a/path",
    int: 7,
    bool: True,
    float: 0.5,
    str | None: "a text",
    int | None: 7,
    Iterable[str]: ("one", "two"),
    Sequence[str]: ("one", "two"),
    Mapping[str, int]: {"one": 1},
    Iterable[TeamProblem]: (PROBLEM,),
    Failed: Failed(kind="crashed", message="It broke.", hint="Try again.", exit_code=3),
}


def modules() -> Iterator[str]:
    """Yield every module of the package; a __main__ would run its program."""
    yield bullpen.__name__
    for module in pkgutil.walk_packages(bullpen.__path__, f"{bullpen.__name__}."):
        if not module.name.endswith(".__main__"):
            yield module.name


def kinds() -> list[type[BaseException]]:
    """Return every exception class that the package defines."""
    found = {
        thing
        for name in modules()
        for thing in vars(importlib.import_module(name)).values()
        if isinstance(thing, type) and issubclass(thing, BaseException) and thing.__module__ == name
    }
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


def made(kind: type[BaseException]) -> BaseException:
    """Return an error of a kind, made of a value for each parameter."""
    if kind.__init__ in (
        BaseException.__init__,
        Exception.__init__,
        ValueError.__init__,
        LookupError.__init__,
        OSError.__init__,
    ):
        return kind("A sentence for people.")
    types = get_type_hints(kind.__init__)
    args: list[Any] = []
    options: dict[str, Any] = {}
    for name, parameter in inspect.signature(kind).parameters.items():
        assert types[name] in VALUES, f"{kind.__qualname__} takes a {types[name]}: add a value of it to VALUES"
        if parameter.kind is parameter.KEYWORD_ONLY:
            options[name] = VALUES[types[name]]
        else:
            args.append(VALUES[types[name]])
    return kind(*args, **options)


def carried(thing: object) -> object:
    """Return all that a thing carries, as values that can be compared."""
    if isinstance(thing, (list, tuple)):
        return [carried(one) for one in thing]
    if isinstance(thing, (BaseException, TeamProblem)):
        return type(thing), str(thing), {name: carried(value) for name, value in vars(thing).items()}
    return thing


def test_an_error_stays_as_it_is() -> None:
    assert [kind.__qualname__ for kind in kinds() if not stays_as_it_is(made(kind))] == []


def stays_as_it_is(error: BaseException) -> bool:
    """Return whether copies of an error, pickled ones too, carry what it does."""
    error.add_note("It was seen in a test.")
    pickled = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    copies = (*pickled, copy.copy(error), copy.deepcopy(error))
    return all(again is not error and carried(again) == carried(error) and again.args == error.args for again in copies)


def test_all_errors_were_looked_at() -> None:
    below = [BullpenError]
    for kind in below:
        below += kind.__subclasses__()

    assert {kind for kind in below if kind.__module__.startswith("bullpen.")} <= set(kinds())
    assert len(below) > 50


def test_an_error_crosses_a_process_pool() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(StoreDamaged) as caught:
        pool.submit(damaged).result()

    assert caught.value.reason == "a page is torn"
    assert str(caught.value) == str(StoreDamaged("a.db", "a page is torn"))


def damaged() -> None:
    raise StoreDamaged("a.db", "a page is torn")
