"""The full screen as a person starts it: a real terminal, from the first key to the last words."""

import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest
from tests.tui.stage import PATIENCE_SECONDS, SOURCE, Stage

from bullpen.tui.leaving import farewell

PROGRAM = """
import sys
from pathlib import Path
from bullpen.team_files import load_team
from bullpen.tui import run
sys.exit(run(load_team(Path(sys.argv[1])), db=sys.argv[2], resume=(sys.argv[3:] or [None])[0]))
"""


class Terminal:
    """A program in a terminal of 80 by 24."""

    def __init__(self, *arguments: str) -> None:
        self.written = b""
        self._pid, self._end = pty.fork()
        if self._pid == 0:
            os.environ.update(PYTHONPATH=str(SOURCE), TERM="xterm-256color", COLUMNS="80", LINES="24")
            os.execv(sys.executable, [sys.executable, "-c", PROGRAM, *arguments])

    def sees(self, words: str) -> None:
        """Read until something is written."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while words.encode() not in self.written:
            assert time.monotonic() < deadline, self.written[-2000:]
            self._read(0.1)

    def type(self, keys: str) -> None:
        """Type keys, as slowly as a person even if the machine is busy: what comes faster is taken for a paste."""
        for key in keys:
            os.write(self._end, key.encode())
            deadline = time.monotonic() + 0.3
            while time.monotonic() < deadline:
                self._read(0.05)

    def exit_code(self) -> int:
        """Read to the end, and return the exit code."""
        while self._read(PATIENCE_SECONDS):
            pass
        os.close(self._end)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self, seconds: float) -> bool:
        if not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._end, 65536)
        except OSError:
            return False
        self.written += data
        return bool(data)


def test_the_last_words_say_how_to_come_back(stage: Stage) -> None:
    stage.agent("max", [{"say": "Hello \x1b]0;owned\x07 Kim."}])

    terminal = Terminal(str(stage.team), str(stage.db))
    terminal.sees("Nothing has been said yet")
    terminal.type("Hi\r")
    terminal.sees("Kim.")
    terminal.type("\x11")

    assert terminal.exit_code() == 0
    assert b"owned\x07" not in terminal.written
    last = terminal.written.decode().rpartition("\x1b[")[2]
    found = re.search(r"This was ([\w-]+)\. To go on:\r\n  bullpen chat (.*) --resume \1 --db (.*)\r\n", last)
    assert found is not None, last

    again = Terminal(str(stage.team), str(stage.db), found[1])
    again.sees("Hi")
    again.type("\x11")
    assert again.exit_code() == 0


def test_the_command_is_short_where_the_team_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert farewell(tmp_path / "my team.toml", "quiet-river-4f2a", None) == (
        "This was quiet-river-4f2a. To go on:\n  bullpen chat 'my team.toml' --resume quiet-river-4f2a"
    )
