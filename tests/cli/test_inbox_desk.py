"""At a terminal, a key that was pressed before a question was on the screen for a moment does not answer it."""

import argparse
import os
import pty
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from bullpen.cli import inbox_desk
from bullpen.cli.inbox_desk import InboxDesk
from bullpen.database import Database
from bullpen.view.choices import YES, Choice, Decision
from bullpen.view.inbox import Item
from bullpen.view.shown_cards import SETTLED_SECONDS


def item() -> Item:
    choice = Choice(label="Yes", typed="/yes", action="answer", purpose="yes, this once", key=YES)
    asked = Decision(kind="question", text="max asks", choices=(choice,), turn="1", shown="rm -rf build")
    return Item(conversation="c", title="t", team="t", since=0, pid=1, people=("kim",), decision=asked)


def test_a_key_pressed_too_soon_answers_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keyboard, terminal = pty.openpty()
    stdin = os.fdopen(terminal)
    monkeypatch.setattr(sys, "stdin", stdin)
    desk = InboxDesk(cast("Database", None), argparse.Namespace(file=Path(), watch=False, sender=None))
    answered: list[Any] = []
    monkeypatch.setattr(desk, "_decide", lambda *given: answered.append(given))
    key, paused = desk._key, []

    def press_at_once(seconds: float) -> None:
        paused.append((seconds, "rm -rf build" in capsys.readouterr().out))
        os.write(keyboard, b"y")

    def press_in_time(known: tuple[str, ...]) -> str:
        os.write(keyboard, b"q")
        return key(known)

    monkeypatch.setattr(inbox_desk, "pause", press_at_once)
    monkeypatch.setattr(desk, "_key", press_in_time)
    with desk._terminal.on():
        assert desk._ask(item(), 1) is False
    stdin.close()
    os.close(keyboard)

    assert (answered, paused) == ([], [(SETTLED_SECONDS, True)])
