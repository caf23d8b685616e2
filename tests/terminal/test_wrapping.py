"""Text from agents on its way to the page: safe, indented, wrapped, however it is cut into pieces."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bullpen.terminal.columns import cut, width
from bullpen.terminal.wrapping import Wrapper, wrapped

COLUMNS = 24


def test_words_stay_whole_and_lines_indented() -> None:
    text = "The quick brown fox jumps over it.\n\n    code stays indented\n"

    lines = [line.rstrip() for line in wrapped(text, COLUMNS).splitlines()]

    assert lines == ["  The quick brown fox", "  jumps over it.", "", "      code stays", "  indented"]


def test_chinese_breaks_anywhere_and_takes_two_columns() -> None:
    assert wrapped("你好世界" * 5, COLUMNS) == "  你好世界你好世界你好世\n  界你好世界你好世界\n"


def test_a_word_longer_than_a_line_is_broken() -> None:
    assert wrapped("x" * 50, COLUMNS) == f"  {'x' * 22}\n  {'x' * 22}\n  {'x' * 6}\n"


def test_without_a_terminal_lines_are_as_long_as_they_are() -> None:
    assert wrapped("word " * 100, None) == f"  {'word ' * 100}\n"


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["a\x1b", "[31mb"], "  a\ufffd[31mb\n"),
        (["a\x1b]0;t", "itle\x07b"], "  a\ufffd]0;title\ufffdb\n"),
        (["one\r", "\ntwo"], "  one\n  two\n"),
        (["one\r", "two"], "  one\ufffdtwo\n"),
        (["a\tb"], "  a    b\n"),
        (["\x9b2Ja\u202eb\u2066"], "  \ufffd2Ja\ufffdb\ufffd\n"),
    ],
)
def test_what_a_terminal_would_obey_does_not_get_through_in_pieces_either(pieces: list[str], shown: str) -> None:
    wrapper = Wrapper(COLUMNS)

    assert "".join(map(wrapper.feed, pieces)) + wrapper.end_line() == shown


@given(st.lists(st.text(max_size=40), max_size=8), st.one_of(st.none(), st.integers(20, 60)))
@example(["word word word wor", "d a"], 20)
def test_any_text_in_any_pieces(pieces: list[str], columns: int | None) -> None:
    wrapper = Wrapper(columns)

    out = "".join(map(wrapper.feed, pieces)) + wrapper.end_line()

    assert not [letter for letter in out if letter != "\n" and unicodedata.category(letter) == "Cc"]
    assert all(line.startswith("  ") for line in out.split("\n") if line)
    assert columns is None or all(width(line) <= columns for line in out.split("\n"))
    # Nothing but space is lost.
    kept = "".join(pieces).replace("\r\n", "").replace("\r", "\ufffd")
    if all(unicodedata.category(letter)[0] != "C" for letter in kept.replace("\n", "")):
        assert "".join(out.split()) == "".join(kept.split())


def test_cutting_marks_what_is_missing() -> None:
    assert cut("你好世界", 8) == "你好世界"
    assert cut("你好世界", 7) == "你好世…"
    assert cut("abcdef", 4) == "abc…"
