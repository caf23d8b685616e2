"""Text from agents on its way to the page: safe, indented, wrapped, however it is cut into pieces."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bullpen.terminal.cells import width
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
    assert wrapped("ab\tcd \n\n ef\r\n你好", None) == "  ab    cd \n\n   ef\n  你好\n"


@pytest.mark.parametrize("emoji", ["⚠️", "👍🏽", "👩‍💻", "e\u0301\u0302"])
def test_an_emoji_of_several_characters_stays_whole_however_it_comes(emoji: str) -> None:
    room = 18 // width(emoji)
    wrapper = Wrapper(20)

    out = "".join(map(wrapper.feed, emoji * (room + 1))) + wrapper.end_line()

    assert out == f"  {emoji * room}\n  {emoji}\n"


def test_a_letter_with_endless_accents_is_not_held_back_for_ever() -> None:
    wrapper = Wrapper(20)

    out = wrapper.feed("e" + "\u0301" * 1000) + wrapper.feed("\u0302" * 1000 + "x") + wrapper.end_line()

    assert out == "  e" + "\u0301" * 1000 + "\u0302" * 1000 + "x\n"


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
    kept = "".join(pieces).removesuffix("\r").replace("\r\n", "").replace("\r", "\ufffd")
    if all(unicodedata.category(letter)[0] != "C" for letter in kept.replace("\n", "")):
        assert "".join(out.split()) == "".join(kept.split())
