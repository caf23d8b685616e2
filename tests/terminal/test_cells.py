"""How many columns a text takes."""

import pytest

from bullpen.terminal.cells import clusters, cut, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("plain", 5),
        ("你好", 4),
        ("e\u0301", 1),
        ("⚠️", 2),
        ("👍🏽", 2),
        ("👩‍💻", 2),
        ("👨‍👩‍👧‍👦", 2),
        ("🏴‍☠️", 2),
        ("🇩🇪", 2),
        ("1️⃣", 2),
        ("\ufffd", 1),
        # A joiner between letters does not hide the second one.
        ("a\u200db", 2),
        ("क्\u200dष", 2),
        ("a" + "\u200d字" * 10, 21),
    ],
)
def test_width(text: str, columns: int) -> None:
    assert width(text) == columns
    assert sum(size for _, size in clusters(text)) == columns
    assert "".join(cluster for cluster, _ in clusters(text)) == text


def test_what_is_seen_as_one_character() -> None:
    assert list(clusters("a👍🏽⚠️e\u0301字")) == [("a", 1), ("👍🏽", 2), ("⚠️", 2), ("e\u0301", 1), ("字", 2)]


@pytest.mark.parametrize(
    ("text", "room", "shown"),
    [
        ("你好世界", 8, "你好世界"),
        ("你好世界", 7, "你好世…"),
        ("你好世界", 6, "你好…"),
        ("abcdef", 4, "abc…"),
        ("ab  ef", 4, "ab…"),
        ("👍🏽👍🏽👍🏽", 6, "👍🏽👍🏽👍🏽"),
        ("👍🏽👍🏽👍🏽", 5, "👍🏽👍🏽…"),
    ],
)
def test_cutting_marks_what_is_missing(text: str, room: int, shown: str) -> None:
    assert cut(text, room) == shown
