"""The difference of two texts: what it gives back is exactly the second one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.store.packing import DamagedData
from bullpen.store.text_delta import applied, delta

LINES = st.lists(
    st.sampled_from(["", "a", "b" * 70, "同じ" * 30, "x\u2028y", "- kim -> all: hello there, how are you?"])
)


@given(LINES, LINES)
def test_a_difference_gives_back_the_second_text(old: list[str], new: list[str]) -> None:
    before, after = "\n".join(old), "\n".join(new)

    difference = delta(before, after)

    assert difference is None or applied(before, difference) == after


def test_a_window_that_moves_on_takes_little_room() -> None:
    lines = [f"- kim -> all: message number {number} with some words in it" for number in range(1_100)]
    before, after = "\n".join(lines[:1_000]), "\n".join([*lines[50:1_050], "[MESSAGE]", "Now?"])

    difference = delta(before, after)

    assert difference is not None
    assert applied(before, difference) == after
    assert len(difference) < len("\n".join(lines[1_000:1_050])) + 200


def test_texts_that_have_little_in_common_are_not_worth_a_difference() -> None:
    assert delta("one\n" * 50, "two\n" * 50) is None
    assert delta("", "two") is None


@pytest.mark.parametrize("damaged", [b"{}", b"[[0, 99]]", b"[[-1, 2]]", b"[[3, 1]]", b"[1]", b"\xff"])
def test_damage_is_found(damaged: bytes) -> None:
    with pytest.raises(DamagedData):
        applied("short", damaged)
