"""The mistakes that torture plants fit the product as it is."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from proofs.torture import (
    asking_mistakes,
    consent_mistakes,
    failing_mistakes,
    file_mistakes,
    impostors,
    looking_up_mistakes,
    lost_logs,
    remembering_mistakes,
    same_line_mistakes,
    simulated_mistakes,
    strangers,
)
from proofs.torture.cluster import mistakes as cluster_mistakes
from proofs.torture.planting import ALL_FOUND, Planted, each_found, one_line

AS_TUPLES = (
    asking_mistakes,
    consent_mistakes,
    failing_mistakes,
    looking_up_mistakes,
    remembering_mistakes,
    same_line_mistakes,
    simulated_mistakes,
)
IN_MODULES = [
    (name, module, right) for mistakes in AS_TUPLES for name, (module, right, *_) in mistakes.MISTAKES.items()
]
IN_MODULES += [(name, one.module, one.right) for name, one in file_mistakes.MISTAKES.items()]
IN_MODULES += [(name, one.module, one.right) for name, one in cluster_mistakes.MISTAKES.items() if one.module]
IN_SQL = {name: mistake for name, mistake in cluster_mistakes.MISTAKES.items() if mistake.function}
FAULTS = {**strangers.FAULTS, **lost_logs.FAULTS, **impostors.FAULTS}


@pytest.mark.parametrize(("name", "module", "right"), IN_MODULES, ids=[name for name, *_ in IN_MODULES])
def test_a_mistake_has_exactly_one_place(name: str, module: str, right: str) -> None:
    spec = find_spec(module)

    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).read_text(encoding="utf-8").count(right) == 1


@pytest.mark.parametrize("name", IN_SQL)
def test_a_mistake_in_a_function_of_the_database_has_exactly_one_place(name: str) -> None:
    assert IN_SQL[name].wrong in cluster_mistakes.with_mistake(IN_SQL[name])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_can_be_planted(name: str) -> None:
    with FAULTS[name].plant():
        pass


def test_a_line_is_wrong_only_meanwhile() -> None:
    with one_line(larger, "max(", "min(")():
        assert larger(1, 2) == 1
    assert larger(1, 2) == 2
    with (
        pytest.raises(ValueError, match="larger does not contain this exactly once: sum"),
        one_line(larger, "sum", "")(),
    ):
        pass


def test_all_were_found_only_if_each_was_seen_as_what_it_leads_to() -> None:
    def fault(seen_as: str) -> Planted:
        return Planted(one_line(larger, "max(", "min("), lambda seed: [f"{larger(seed, 2)} is larger"], seen_as)

    assert each_found({"a": fault("1 is"), "b": fault("larger")}, seed=1).failures == (ALL_FOUND,)
    assert each_found({"a": fault("1 is"), "b": fault("2 is")}, seed=1).failures == ("missed: b",)


def larger(one: int, other: int) -> int:
    return max(one, other)
