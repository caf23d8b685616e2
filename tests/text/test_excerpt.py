"""Excerpts: small enough, in order, marked where something is missing; and the errors are in them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bullpen.text.excerpt import LONGEST_LINE, Excerpt, excerpt
from bullpen.text.fence import fenced

MARK = re.compile(r"\[… ([\d,]+) lines? left out …\]")
LINES = st.lists(
    st.sampled_from(["", "ok", "installing 文", "x" * 300, "TypeError: no", "1 failed, 0 errors"]), max_size=400
)


def test_what_fits_is_whole() -> None:
    assert excerpt("one\ntwo", 7) == Excerpt(text="one\ntwo", lines=2)


def test_an_error_far_from_both_ends_is_kept_with_what_is_around_it() -> None:
    lines = [f"step {number}: fine" for number in range(5_000)]
    lines[2_000:2_002] = ["E   AssertionError: assert 1 == 2", "src/price.py:7"]

    found = excerpt("\n".join(lines), 8_000)

    assert "step 0: fine" in found.text
    assert "step 1999: fine\nE   AssertionError: assert 1 == 2\nsrc/price.py:7\nstep 2002: fine" in found.text
    assert found.text.endswith("step 4999: fine")
    assert sum(int(number.replace(",", "")) for number in MARK.findall(found.text)) == found.left_out > 4_000
    assert not found.is_whole


def test_that_nothing_failed_is_not_an_error() -> None:
    lines = ["."] * 5_000
    lines[2_000], lines[3_000] = "12 passed, 0 failed", "no errors"

    assert "passed" not in excerpt("\n".join(lines), 1_000).text


def test_one_line_of_megabytes_is_cut() -> None:
    found = excerpt("x" * 3_000_000, 8_000)

    assert found == Excerpt(text=f"{'x' * LONGEST_LINE} […]", lines=1, is_whole=False)


@given(lines=LINES, most=st.integers(min_value=500, max_value=6_000))
def test_excerpts_fit_and_say_how_much_is_missing(lines: list[str], most: int) -> None:
    text = "\n".join(lines)
    found = excerpt(text, most)

    assert len(found.text.encode()) <= most + 100
    shown = found.text.split("\n")
    marks = [MARK.fullmatch(line) for line in shown]
    if found.is_whole:
        assert found.text == text
    else:
        assert sum(int(mark[1].replace(",", "")) for mark in marks if mark) == found.left_out
        assert len(shown) - sum(map(bool, marks)) + found.left_out == found.lines
        following = iter(lines)
        assert all(line in following for line, mark in zip(shown, marks, strict=True) if not mark)


@given(text=st.text(alphabet="~`\n a"))
def test_nothing_in_a_fence_ends_it(text: str) -> None:
    fence, *inside, end = fenced(text).split("\n")

    assert fence == end
    assert not any(line.lstrip(" ").startswith(fence) for line in inside)
