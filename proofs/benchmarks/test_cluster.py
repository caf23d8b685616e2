"""The benchmarks of many machines run in a small size, with real nodes and workers."""

from types import ModuleType

import pytest

pytest.importorskip("procrastinate", reason="the extra bullpen-chat[cluster] is not installed")

from benchmarks.measure import part
from benchmarks.report import section
from tests.store.postgres.server import needs_own_server

from benchmarks import cluster_say, cluster_turns


@needs_own_server
@pytest.mark.parametrize("benchmark", [cluster_say, cluster_turns])
def test_it_measures(benchmark: ModuleType) -> None:
    figure = benchmark.measure(quick=True)

    assert len(figure.rows) == 2
    assert all(len(row) == len(figure.columns) for row in figure.rows)
    assert figure.title in section(figure)
    assert all(size > 0 and value > 0 for plot in figure.plots for line in plot.series.values() for size, value in line)


def test_a_part_of_the_values() -> None:
    taken = [float(number) for number in range(100, 0, -1)]

    assert part(taken, 0.5) == 51
    assert part(taken, 0.99) == 100
    assert part([3.0], 0.99) == 3
