"""Text made safe and short."""

from hypothesis import given
from hypothesis import strategies as st

from bullpen.tui.text import beginning, one_line, reading_seconds, shown
from bullpen.tui.text_screen import wrapped


def test_a_text_is_cut_by_characters_by_lines_and_by_the_length_of_a_line() -> None:
    assert beginning("a\nb").left_out == 0
    assert (beginning("x" * 11, most_characters=10).text, beginning("x" * 11, most_characters=10).left_out) == (
        "x" * 10,
        1,
    )
    assert (beginning("a\nb\nc", most_lines=2).text, beginning("a\nb\nc", most_lines=2).left_out) == ("a\nb", 2)
    assert beginning("- a\n- b\n- c", most_lines=6).text == "- a\n- b"


def test_a_longer_text_takes_longer_to_read_and_a_chinese_character_as_long_as_two_letters() -> None:
    assert reading_seconds("No.") == 5
    assert reading_seconds("x" * 500) == 53
    assert reading_seconds("字" * 100) == reading_seconds("x" * 200) == 23


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    for made in (shown(text), one_line(text), beginning(text).text):
        assert not set(made) & {chr(code) for code in [*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066]}
    assert "\n" not in one_line(text)


@given(st.text(alphabet="ab 界🍪", max_size=80), st.integers(2, 12))
def test_a_wrapped_line_loses_only_spaces(line: str, width: int) -> None:
    pieces = list(wrapped(line, width))

    assert "".join(pieces).replace(" ", "") == line.replace(" ", "")
