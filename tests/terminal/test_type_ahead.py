"""What is typed while a program starts: kept as a draft, and never sent."""

import os
import pty
import select
import termios

from bullpen.terminal.keys import Key, KeyReader, Pressed, Typed
from bullpen.terminal.raw_mode import typed_ahead


def test_what_was_typed_before_anybody_read_it_is_a_draft_without_blank_lines() -> None:
    person, terminal = pty.openpty()
    try:
        os.write(person, b"\r\rearly\r\r  bird\rand")
        select.select([terminal], [], [], 60)
        before = termios.tcgetattr(terminal)

        assert typed_ahead(terminal) == "early\n  bird\nand"
        assert termios.tcgetattr(terminal) == before
        assert typed_ahead(terminal) == ""
    finally:
        os.close(person)
        os.close(terminal)


def test_where_there_is_no_terminal_nothing_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a message\n")
    try:
        assert typed_ahead(reading) == ""
        assert os.read(reading, 100) == b"a message\n"
    finally:
        os.close(reading)
        os.close(writing)


def pressed(*pieces: bytes) -> list[Key]:
    keys = KeyReader()
    found = [key for piece in pieces for key in keys.feed(piece)]
    return [*found, *keys.flush()]


def test_an_escape_is_the_key_only_if_nothing_follows_it() -> None:
    assert pressed(b"\x1b") == [Pressed("escape")]
    assert pressed(b"\x1b", b"[A") == [Pressed("up")], "an arrow in two pieces is not an escape, and not text"
    assert pressed(b"a\x1b") == [Typed("a"), Pressed("escape")]
    assert pressed(b"\x1b[A") == [Pressed("up")]
