"""The line that a person writes in: keys, pasting, history, completion."""

import pytest

from bullpen.cli.plain.terminal_chat import completion_for
from bullpen.team.team import Limits, Member, Team
from bullpen.terminal.keys import KeyReader, Pressed, Typed
from bullpen.terminal.line_editor import LineEditor

TEAM = Team(
    name="t",
    members=(
        Member(name="kim", type="human"),
        *(Member(name=name, type="ai", agent="claude") for name in ("ada", "adam", "小明")),
    ),
    lead="ada",
    limits=Limits(),
)


def typed(editor: LineEditor, text: str) -> list[str]:
    """Press keys as a terminal sends them, one at a time; return what was sent."""
    reader = KeyReader()
    pieces = [text] if "\x1b" in text else list(text)
    keys = [key for piece in pieces for key in reader.feed(piece.encode())]
    return [sent for key in keys if (sent := editor.press(key)) is not None]


@pytest.mark.parametrize(
    ("keys", "text", "cursor"),
    [
        ("hello", "hello", 5),
        ("hello\x7f\x7f", "hel", 3),
        ("hello\x01X", "Xhello", 1),
        ("one two\x17three", "one three", 9),
        ("one two\x15", "", 0),
        ("one two\x15\x19\x19", "one twoone two", 14),
        ("你好\x1b[D吗", "你吗好", 2),
        ("ab\x1b[D\x1b[3~", "a", 1),
        ("one two\x1bb\x1bb\x1bf", "one two", 3),
        ("ab\x1b\nc", "ab\nc", 4),
        ("first\x1b\nsecond\x1b[Ax", "firstx\nsecond", 6),
        ("abc\x1b\nx\x1b[A\x1b[B!", "abc\nx!", 6),
        ("\x1b[200~a\r\nb\rc\x1b[201~", "a\nb\nc", 5),
        ("\x1b[200~\x1b[31m\x07x\x1b[201~", "[31mx", 5),
        ("\x1b[99;99~\x1b[Za", "a", 1),
    ],
)
def test_keys(keys: str, text: str, cursor: int) -> None:
    editor = LineEditor()

    assert typed(editor, keys) == []
    assert (editor.text, editor.cursor) == (text, cursor)


def test_enter_sends_and_a_backslash_goes_on() -> None:
    editor = LineEditor()

    assert typed(editor, "one\\\ntwo\nthree\n") == ["one\ntwo", "three"]
    assert editor.text == ""


def test_lines_that_arrive_at_once_are_pasted_and_not_sent() -> None:
    assert list(KeyReader().feed(b"one\ntwo\n")) == [Typed("one\ntwo\n", is_pasted=True)]
    assert list(KeyReader().feed(b"one\n")) == [Typed("o"), Typed("n"), Typed("e"), Pressed("enter")]


def test_what_is_split_over_two_reads_is_put_together() -> None:
    reader = KeyReader()
    pieces = ["你".encode()[:2], "你".encode()[2:], b"\x1b[", b"A", b"\x1b[200~pa", b"sted\x1b[20", b"1~", b"x"]

    assert [key for piece in pieces for key in reader.feed(piece)] == [
        Typed("你"),
        Pressed("up"),
        Typed("pasted", is_pasted=True),
        Typed("x"),
    ]


@pytest.mark.parametrize("size", [1, 3, 7, 64])
def test_a_paste_is_whole_however_it_is_split(size: int) -> None:
    data = b"one\x1b[31m\x1b[20\r\ntwo\x1b\x1b[201~x"
    reader = KeyReader()

    assert list(reader.feed(b"\x1b[200~")) == []
    keys = [key for start in range(0, len(data), size) for key in reader.feed(data[start : start + size])]

    assert keys == [Typed("one\x1b[31m\x1b[20\ntwo\x1b", is_pasted=True), Typed("x")]


@pytest.mark.parametrize(
    ("text", "cursor", "left", "right"),
    [
        ("one  two ", 9, 5, 9),
        ("one  two ", 5, 0, 8),
        ("one  two ", 3, 0, 8),
        ("  one", 2, 0, 5),
        ("  one", 0, 0, 5),
        ("one\n\u3000two", 4, 0, 8),
        ("   ", 2, 0, 3),
        ("", 0, 0, 0),
    ],
)
def test_moving_by_words(text: str, cursor: int, left: int, right: int) -> None:
    for name, place in (("word left", left), ("word right", right)):
        editor = LineEditor()
        editor.text, editor.cursor = text, cursor
        editor.press(Pressed(name))
        assert editor.cursor == place


def test_the_history_keeps_what_was_begun() -> None:
    editor = LineEditor(["first", "second"])

    typed(editor, "begun\x1b[A\x1b[A\x1b[A")
    assert editor.text == "first"
    typed(editor, "\x1b[B\x1b[B")
    assert editor.text == "begun"


def test_what_stood_in_the_line_is_in_the_history_when_something_is_put_back() -> None:
    editor = LineEditor()
    typed(editor, "new")

    editor.put("not sent")

    assert editor.text == "not sent"
    typed(editor, "\x1b[A")
    assert editor.text == "new"


@pytest.mark.parametrize(
    ("before", "after", "choices"),
    [
        ("/qu", "/qu", ("/queue ", "/quit ")),
        ("/que", "/queue ", ()),
        ("Hi [NEXT: k", "Hi [NEXT: kim] ", ()),
        ("[NEXT: kim & a", "[NEXT: kim & a", ("ada] ", "adam] ", "all] ")),
        ("[next:小", "[next:小明] ", ()),
        ("ask @AD", "ask @ada", ("@ada ", "@adam ")),
        ("/hand k", "/hand kim", ()),
        ("mail@k", "mail@k", ()),
        ("nothing", "nothing", ()),
    ],
)
def test_tab(before: str, after: str, choices: tuple[str, ...]) -> None:
    editor = LineEditor((), completion_for(TEAM))

    typed(editor, f"{before}\t")

    assert (editor.text, editor.choices) == (after, choices)
