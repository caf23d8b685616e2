"""Telling a person at a terminal that it is their turn."""

import pytest

from bullpen.terminal.notifier import AWAY_SECONDS, Notifier


class Terminal:
    def __init__(self) -> None:
        self.written: list[str] = []
        self.time = 0.0
        self.notifier = Notifier("Shop", self.written.append, lambda: self.time)

    def show(self, count: int, *texts: str) -> str:
        self.written.clear()
        self.notifier.show("◆", count, *texts)
        return "".join(self.written)


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_the_title_counts_what_waits_and_is_written_once(terminal: Terminal) -> None:
    assert terminal.show(0) == "\x1b]2;◆ Shop · bullpen\x07"
    assert terminal.show(2, "Your turn.") == "\x1b]2;◆ (2) Shop · bullpen\x07"
    assert terminal.show(2, "Your turn.") == ""


def test_the_bell_rings_once_while_another_window_is_in_front(terminal: Terminal) -> None:
    terminal.show(0)
    terminal.notifier.is_in_front = False
    told = terminal.show(1, "Max failed; what now?")
    assert told.startswith("\x1b]2;")
    assert "\a\x1b]9;" in told
    assert "\x1b]9;bullpen: Max failed, what now?\x07" in told
    assert "\x1b]777;notify;bullpen;Max failed, what now?\x07" in told
    assert terminal.show(1, "Max failed; what now?") == ""
    terminal.show(0)
    assert "\x1b]9;" in terminal.show(1, "Max failed; what now?"), "it is another failure"


def test_nobody_is_disturbed_in_front_of_the_window(terminal: Terminal) -> None:
    terminal.notifier.is_in_front = True
    terminal.time += 10 * AWAY_SECONDS
    assert "\x1b]9;" not in terminal.show(1, "Your turn.")


def test_a_terminal_that_reports_no_focus_is_in_front_while_keys_are_pressed(terminal: Terminal) -> None:
    terminal.time += AWAY_SECONDS / 2
    assert "\x1b]9;" not in terminal.show(1, "Your turn.")
    terminal.time += AWAY_SECONDS
    terminal.notifier.key_pressed()
    assert "\x1b]9;" not in terminal.show(1, "Your turn, again.")
    terminal.time += AWAY_SECONDS + 1
    assert "\x1b]9;" in terminal.show(1, "And again.")


def test_what_an_agent_wrote_cannot_leave_the_sequence(terminal: Terminal) -> None:
    terminal.notifier.is_in_front = False
    told = terminal.show(1, "bad\x07\x1b]0;owned\x07\nnext " + "x" * 1_000)
    assert told.count("\x07") == 4, "the bell, and the end of each sequence"
    assert told.count("\x1b") == 3
    assert "\n" not in told
    assert len(told) < 1_000


def test_of_several_conversations_only_what_is_new_is_told(terminal: Terminal) -> None:
    terminal.notifier.is_in_front = False
    assert "\x1b]9;bullpen: A waits.\x07" in terminal.show(1, "A waits.", "")
    assert "\x1b]9;bullpen: B waits.\x07" in terminal.show(2, "A waits.", "B waits.")
    assert "\x1b]9;" not in terminal.show(2, "A waits.", "B waits.")
    assert "\x1b]9;" not in terminal.show(1, "", "B waits.")
