"""Rows in colours: the text of each stays what it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.view.diff import Row, RowKind
from bullpen.view.syntax import LANGUAGES, MOST_CHARACTERS, colored_rows


def row(kind: RowKind, text: str) -> Row:
    return Row(kind, 1, 1, text)


def test_what_was_removed_and_added_is_read_as_two_texts() -> None:
    rows = [
        row("context", "def login():"),
        row("removed", '    """Old'),
        row("removed", '    words."""'),
        row("added", "    return 1"),
        row("context", "    # done"),
    ]

    assert colored_rows("src/login.py", rows) == [
        (("keyword", "def"), ("", " "), ("name", "login"), ("", "():")),
        (("", "    "), ("string", '"""Old')),
        (("string", '    words."""'),),
        (("", "    "), ("keyword", "return"), ("", " "), ("number", "1")),
        (("", "    "), ("comment", "# done")),
    ]


@pytest.mark.parametrize("language", sorted(set(LANGUAGES.values())))
def test_every_language_is_one_that_there_is(language: str) -> None:
    ending = next(ending for ending, name in LANGUAGES.items() if name == language)

    (pieces,) = colored_rows(f"x.{ending}", [row("added", "a = 1")])

    assert "".join(text for _, text in pieces) == "a = 1"


kinds: st.SearchStrategy[RowKind] = st.sampled_from(["context", "added", "removed", "note"])


@given(
    st.lists(st.tuples(kinds, st.text(st.sampled_from("a\"'`#/*{}<> \r\x0b\x0c\u2028\t深1"), max_size=12)), max_size=8),
    st.sampled_from(sorted(LANGUAGES)),
)
def test_no_text_is_changed(said: list[tuple[RowKind, str]], ending: str) -> None:
    rows = [row(kind, text) for kind, text in said]

    colored = colored_rows(f"x.{ending}", rows)

    assert ["".join(text for _, text in pieces) for pieces in colored] == [one.text for one in rows]


def test_too_much_is_plain() -> None:
    rows = [row("added", "def x(): pass")] * (MOST_CHARACTERS // 10)

    assert colored_rows("x.py", rows)[0] == (("", "def x(): pass"),)
