"""The check that nothing became super-linear finds what did, and nothing else."""

from collections.abc import Callable
from itertools import count

import pytest
from benchmarks.growth import FLAT, Case, check, growth
from benchmarks.measure import Run


class Work:
    """Work whose duration is the number of its steps, so that the result does not depend on the machine."""

    def __init__(self) -> None:
        self.taken = 0.0
        self.rounds = count()

    def clock(self) -> float:
        return self.taken

    def of(self, steps: Callable[[int], int], slow_rounds: int = 0) -> Callable[[int], Run]:
        """Return work of this many steps per size. A busy machine makes its first rounds ten times as slow."""

        def prepare(size: int) -> Run:
            def run() -> None:
                slower = 10 if next(self.rounds) < slow_rounds else 1
                self.taken += slower * steps(size) / 1_000

            return run

        return prepare

    def linear(self, size: int) -> Run:
        return self.of(lambda size: size)(size)

    def quadratic(self, size: int) -> Run:
        return self.of(lambda size: size**2)(size)

    def flat(self, size: int) -> Run:
        return self.of(lambda size: 100)(size)


@pytest.fixture
def work() -> Work:
    return Work()


def test_a_planted_quadratic_function_is_caught(work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    bad = check([Case("innocent", 200, work.linear), Case("planted", 30, work.quadratic)], work.clock)

    assert [one.name for one in bad] == ["planted"]
    assert bad[0].ratio == pytest.approx(16)
    assert "GROWS" in capsys.readouterr().out


def test_what_must_be_flat_may_not_grow_with_the_size(work: Work) -> None:
    assert growth(Case("lookup", 50, work.flat, FLAT), work.clock).is_good
    assert not growth(Case("scan", 200, work.linear, FLAT), work.clock).is_good


def test_linear_growth_is_allowed(work: Work) -> None:
    found = growth(Case("scan", 200, work.linear), work.clock)

    assert found.is_good
    assert found.ratio == pytest.approx(4)


def test_slow_rounds_of_a_busy_machine_do_not_count(work: Work) -> None:
    assert growth(Case("scan", 200, work.of(lambda size: size, slow_rounds=20)), work.clock).ratio == pytest.approx(4)
