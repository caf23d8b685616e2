"""The mistakes that torture plants fit the product as it is."""

import importlib
from pathlib import Path

import pytest
from tests.torture import impostors, lost_logs, strangers
from tests.torture.file_mistakes import MISTAKES
from tests.torture.planting import ALL_FOUND, Planted, each_found, one_line

FAULTS = {**strangers.FAULTS, **lost_logs.FAULTS, **impostors.FAULTS}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_exactly_one_place(name: str) -> None:
    mistake = MISTAKES[name]
    file = importlib.import_module(mistake.module).__file__

    assert file is not None
    assert Path(file).read_text(encoding="utf-8").count(mistake.right) == 1


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
