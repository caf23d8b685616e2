"""Which rows are shown of what a person writes, and where the cursor is in them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.terminal.cells import clusters, width
from bullpen.terminal.input_area import BLOCK_ROWS, InputRows

PROMPT = "kim ▸ "
LETTERS = st.sampled_from(["a", "b ", "\n", "\t", "字", "👍🏽", "⚠️", "👩‍💻", "e\u0301", "\x1b", "\u0301", "\u200d"])


def all_rows(text: str, columns: int) -> list[str]:
    """Lay out a whole text, cluster by cluster."""
    rows = []
    for number, line in enumerate(text.split("\n")):
        rows.append("… " if number else PROMPT)
        taken = width(rows[-1])
        for cluster, size in clusters(line.replace("\x1b", "\ufffd").replace("\t", "\ue000")):
            shown, size = (cluster.replace("\ue000", "    "), 4) if "\ue000" in cluster else (cluster, size)
            if taken + size > columns and taken:
                rows.append("")
                taken = 0
            rows[-1] += shown
            taken += size
    return rows


@given(st.lists(LETTERS, max_size=60).map("".join), st.integers(8, 30), st.data())
def test_rows_are_those_of_the_whole_text(text: str, columns: int, data: st.DataObject) -> None:
    cursor = data.draw(st.integers(0, len(text)))
    expected = all_rows(text, columns)

    rows, (row, column) = InputRows(text, PROMPT, columns).around(cursor, 5)

    assert len(rows) == min(5, len(expected))
    assert "\0".join(rows) in "\0".join(expected)
    assert 0 <= row < len(rows)
    assert column <= width(rows[row])
    assert rows[row].startswith(all_rows(text[:cursor], columns)[-1]) or cursor < len(text)


@given(
    st.lists(LETTERS.filter(lambda letter: letter != "\n"), max_size=600).map("".join), st.integers(4, 12), st.data()
)
def test_a_line_of_many_blocks_is_shown_without_a_gap(text: str, columns: int, data: st.DataObject) -> None:
    text = text.lstrip("\u0301\u200d")
    layout = InputRows(text, "", columns)
    cursor = data.draw(st.integers(0, len(text)))

    rows, (row, _) = layout.around(cursor, 10_000)
    some, (row_of_some, _) = layout.around(cursor, 5)

    shown = text.replace("\t", "    ").replace("\x1b", "\ufffd")
    assert "".join(rows) == shown
    assert some[row_of_some] == rows[row]
    assert "\0".join(some) in "\0".join(rows)
    assert all(width(one) <= columns for one in rows)
    assert text[:cursor].replace("\t", "    ").replace("\x1b", "\ufffd") in "".join(rows[: row + 1])


def test_the_cursor_is_in_the_middle() -> None:
    text = "\n".join(map(str, range(100)))

    rows, at = InputRows(text, PROMPT, 80).around(text.index("50") + 1, 10)

    assert rows == [f"… {number}" for number in range(45, 55)]
    assert at == (5, 3)


@pytest.mark.parametrize("unit", ["x", "字", "👍🏽", "word ", "e\u0301"])
def test_narrow_text_has_no_short_rows(unit: str) -> None:
    columns = 20
    text = unit * 100 * BLOCK_ROWS

    rows, (row, column) = InputRows(text, PROMPT, columns).around(len(text), 10)

    assert row == 9
    assert column == width(rows[-1])
    short = [one for one in rows[:-1] if width(one) < columns]
    assert len(short) <= (0 if unit.isascii() else 1)


def test_a_terminal_narrower_than_the_prompt() -> None:
    assert InputRows("ab字", PROMPT, 2).around(4, 10) == ([PROMPT, "ab", "字"], (2, 2))
    assert InputRows("字", PROMPT, 1).around(0, 10) == ([PROMPT, "字"], (0, 6))
