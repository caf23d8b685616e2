"""Escape sequences do not get into what agents say, however they are cut in pieces."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.text.safe import EscapeStripper, strip_escape_sequences

SEQUENCES = [
    "\x1b[31m",
    "\x1b[0m",
    "\x1b[38;5;208m",
    "\x1b[38:2::255:0:0m",
    "\x1b[2J",
    "\x1b[?25l",
    "\x1b[1 q",
    "\x9b31m",
    "\x1b]0;a title\x07",
    "\x1b]8;;http://example.com\x1b\\",
    "\x9d0;title\x9c",
    "\x1bPq#0;2\x1b\\",
    "\x1b_hidden\x1b\\",
    "\x1b(B",
    "\x1b7",
    "\x1b=",
    "\x1bc",
]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_each_is_taken_out(sequence: str) -> None:
    assert strip_escape_sequences(f"我{sequence}理解{sequence}了") == "我理解了"


@pytest.mark.parametrize(
    ("text", "stripped"),
    [
        ("a\x1b]0;no end, and yet words", "a0;no end, and yet words"),
        ("a\x1b", "a"),
        ("a\x1b[31", "a"),
        ("a\x1b[\nb", "a\nb"),
        ("[31m is text, and so is \\x1b[0m", "[31m is text, and so is \\x1b[0m"),
        ("line\x85break\tand\rothers\b", "line\x85break\tand\rothers\b"),
    ],
)
def test_what_is_broken_takes_no_words_with_it(text: str, stripped: str) -> None:
    assert strip_escape_sequences(text) == stripped


@given(
    st.lists(st.sampled_from([*SEQUENCES, "x", "\n", "[", "]", "\\", "\x1b", "31m", "中"]), max_size=12), st.integers()
)
def test_pieces_come_to_the_same_as_the_whole(parts: list[str], seed: int) -> None:
    text, random = "".join(parts), Random(seed)
    stripper, shown, done = EscapeStripper(), "", 0
    while done < len(text):
        size = random.randint(1, 5)
        shown += stripper.feed(text[done : done + size])
        done += size

    assert shown + stripper.finish() == strip_escape_sequences(text)


def test_a_sequence_without_an_end_does_not_hold_back_a_whole_reply() -> None:
    stripper = EscapeStripper()

    shown = stripper.feed("\x1b]") + "".join(stripper.feed("word ") for _ in range(1_000))

    assert shown.count("word") == 1_000
