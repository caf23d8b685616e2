"""Nothing in a text is hidden from people."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.text.visible import visible


def test_what_a_terminal_would_act_on_is_written_out() -> None:
    assert visible("rm x \x1b[8m; rm -rf .\x1b[0m") == "rm x \\x1b[8m; rm -rf .\\x1b[0m"
    assert visible("a\rb\u202ec\u200bd") == "a\\x0db\\u{202e}c\\u{200b}d"


@pytest.mark.parametrize(
    "sign", "\xa0\u1680\u2000\u200a\u202f\u205f\u2800\u3000\u3164\u2028\U0001bca0\U0001d173\U000e0041"
)
def test_what_is_blank_is_written_out(sign: str) -> None:
    assert visible(f"a{sign}b") in (f"a\\x{ord(sign):02x}b", f"a\\u{{{ord(sign):x}}}b")


def test_plain_text_stays_as_it_is() -> None:
    text = "pytest -q\n\tgrep 'é 你好 😀' | wc -l"

    assert visible(text) == text


@given(st.text())
def test_nothing_is_left_that_could_hide(text: str) -> None:
    shown = visible(text)

    kinds = ("Cc", "Cf", "Zl", "Zp", "Zs", "Cs")
    hidden = {char for char in shown if unicodedata.category(char) in kinds} - {"\n", "\t", " "}
    assert {char for char in hidden if unicodedata.category(char) != "Cf"} == set()
    assert not hidden & set("\u202e\u2066\u200b\u200f\ufeff")
