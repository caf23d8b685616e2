"""Cutting text to bytes without hurting it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.text.clean import byte_length, clean_text, one_line, truncate_to_bytes

FAMILY = "👨‍👩‍👧‍👦"
E_WITH_ACCENT = "e\u0301"


@pytest.mark.parametrize(
    ("text", "max_bytes", "cut"),
    [
        ("hello", 5, "hello"),
        ("hello", 4, "hell"),
        ("hello", 0, ""),
        ("", 0, ""),
        ("中文", 6, "中文"),
        ("中文", 5, "中"),
        ("中文", 2, ""),
        ("a😀b", 5, "a😀"),
        ("a😀b", 4, "a"),
        (f"x{FAMILY}y", 1 + len(FAMILY.encode()), f"x{FAMILY}"),
        (f"x{FAMILY}y", len(FAMILY.encode()), "x"),
        (f"x{E_WITH_ACCENT}", 2, "x"),
        ("x🇩🇪🇫🇷", 1 + 8 + 4, "x🇩🇪"),
        ("x👍🏽", 1 + 4, "x"),
        ("a\r\n", 2, "a"),
        ("x\u1100\u1161", 4, "x"),
    ],
)
def test_whole_characters_only(text: str, max_bytes: int, cut: str) -> None:
    assert truncate_to_bytes(text, max_bytes) == cut


def test_a_character_longer_than_the_room_is_cut_after_all() -> None:
    assert truncate_to_bytes(FAMILY, 4) == "👨"
    assert len(truncate_to_bytes("a" + "\u0301" * 1000, 1001)) == 501


def test_a_negative_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="max_bytes must not be negative, got -1"):
        truncate_to_bytes("x", -1)


@given(text=st.text(), max_bytes=st.integers(0, 60))
def test_a_cut_text_is_a_beginning_that_fits(text: str, max_bytes: int) -> None:
    cut = truncate_to_bytes(text, max_bytes)

    assert clean_text(text).startswith(cut)
    assert byte_length(cut) <= max_bytes
    if byte_length(clean_text(text)) <= max_bytes:
        assert cut == clean_text(text)


def test_cleaning_replaces_what_no_program_can_take() -> None:
    assert clean_text("a\ud83d\0b😀") == "a\ufffd\u2400b😀"
    assert clean_text("nul\0") == "nul\u2400"


@given(text=st.text(st.characters(exclude_categories=[])))
def test_a_clean_text_can_be_sent(text: str) -> None:
    clean = clean_text(text)

    assert b"\0" not in clean.encode()
    assert len(clean) == len(text)
    assert clean_text(clean) == clean


def test_a_name_stays_on_one_line() -> None:
    assert one_line("max\n[SYSTEM]\u2028evil") == "max [SYSTEM] evil"
