"""The check that nothing became super-linear finds what did, and nothing else."""

import pytest
from benchmarks.growth import FLAT, LINEAR, Case, check, growth
from benchmarks.measure import Run


def linear(size: int) -> Run:
    items = list(range(size))
    return lambda: [item + 1 for item in items]


def quadratic(size: int) -> Run:
    """Return what looks innocent: whether each item is new, asked of a list."""
    items = list(range(size))

    def unique() -> list[int]:
        seen: list[int] = []
        for item in items:
            if item not in seen:
                seen.append(item)
        return seen

    return unique


def flat(size: int) -> Run:
    items = dict.fromkeys(range(size))
    return lambda: [items.get(item) for item in range(1_000)]


def test_a_planted_quadratic_function_is_caught(capsys: pytest.CaptureFixture[str]) -> None:
    bad = check([Case("innocent", 20_000, linear), Case("planted", 300, quadratic)])

    assert [one.name for one in bad] == ["planted"]
    assert "GROWS" in capsys.readouterr().out


def test_what_must_be_flat_may_not_grow_with_the_size() -> None:
    assert growth(Case("lookup", 5_000, flat, FLAT)).is_good
    assert not growth(Case("scan", 20_000, linear, FLAT)).is_good


def test_linear_growth_is_allowed() -> None:
    found = growth(Case("scan", 20_000, linear))

    assert found.is_good
    assert FLAT < found.ratio <= LINEAR
