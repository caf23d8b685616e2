"""The full screen as a person starts it: a real terminal, from the first key to the last words."""

import asyncio
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.tui.stage import PATIENCE_SECONDS, SOURCE, Scene, Stage
from textual.events import Callback

from bullpen.tui.launch import farewell

PROGRAM = """
import sys
from pathlib import Path
from bullpen.team.file import load_team
from bullpen.tui import run
sys.exit(run(load_team(Path(sys.argv[1])), db=sys.argv[2], resume=(sys.argv[3:] or [None])[0]))
"""


class Terminal:
    """A program in a terminal of 80 by 24."""

    def __init__(self, *arguments: str) -> None:
        self.written = b""
        self._end, other_end = pty.openpty()
        termios.tcsetwinsize(other_end, (24, 80))
        self._program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            env={**os.environ, "PYTHONPATH": str(SOURCE), "TERM": "xterm-256color"},
            stdin=other_end,
            stdout=other_end,
            stderr=other_end,
            start_new_session=True,
        )
        os.close(other_end)

    def sees(self, words: str) -> None:
        """Read until something is written."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while words.encode() not in self.written:
            assert time.monotonic() < deadline, self.written[-2000:]
            self._read(0.1)

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self._end, keys.encode())

    def exit_code(self) -> int:
        """Read to the end, and return the exit code."""
        while self._read(PATIENCE_SECONDS):
            pass
        return self._program.wait(PATIENCE_SECONDS)

    def hang_up(self) -> None:
        """Take the terminal away, and wait until the program has ended."""
        os.close(self._end)
        self._end = -1
        self._program.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """End the program, if it still runs."""
        self._program.kill()
        self._program.wait()
        if self._end >= 0:
            os.close(self._end)

    def _read(self, seconds: float) -> bool:
        if not select.select([self._end], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._end, 65536)
        except OSError:
            return False
        self.written += data
        return bool(data)


@pytest.fixture
def open_terminal() -> Iterator[Callable[..., Terminal]]:
    with ExitStack() as opened:
        yield lambda *arguments: opened.enter_context(closing(Terminal(*arguments)))


def test_the_last_words_say_how_to_come_back(stage: Stage, open_terminal: Callable[..., Terminal]) -> None:
    stage.agent("max", [{"say": "Hello \x1b]0;owned\x07 Kim."}])

    terminal = open_terminal(str(stage.team), str(stage.db))
    terminal.sees("Nothing has been said yet")
    terminal.type("Hi\r")
    terminal.sees("Kim.")
    # While the turn runs, leaving asks first.
    terminal.sees("◆ waits for you")
    terminal.type("\x11")

    assert terminal.exit_code() == 0, terminal.written[-3000:]
    assert b"owned\x07" not in terminal.written
    last = terminal.written.decode().rpartition("\x1b[")[2]
    found = re.search(r"This was ([\w-]+)\. To continue:\r\n  bullpen chat (.*) --resume \1 --db (.*)\r\n", last)
    assert found is not None, last

    again = open_terminal(str(stage.team), str(stage.db), found[1])
    again.sees("Hi")
    again.type("\x11")
    assert again.exit_code() == 0


def test_the_last_words_say_what_waits_for_a_decision(stage: Stage, open_terminal: Callable[..., Terminal]) -> None:
    stage.agent("max", [{"stderr": "no"}, {"exit": 3}])

    terminal = open_terminal(str(stage.team), str(stage.db))
    terminal.sees("Nothing has been said yet")
    terminal.type("Hi\r")
    terminal.sees("Retry")
    terminal.type("\x11")

    assert terminal.exit_code() == 0, terminal.written[-3000:]
    last = terminal.written.decode().rpartition("\x1b[")[2]
    decision = "Waiting for your decision: turn 1 of max. In chat: /retry or /skip.\r\nThis was "
    assert decision in last, last


def test_it_does_not_run_on_without_its_terminal(stage: Stage, open_terminal: Callable[..., Terminal]) -> None:
    stage.agent("max", [{"say": "Hello."}])

    # Not its controlling terminal: nobody sends it SIGHUP.
    terminal = open_terminal(str(stage.team), str(stage.db))
    terminal.sees("Nothing has been said yet")

    terminal.hang_up()


def test_the_command_is_short_where_the_team_file_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert farewell(tmp_path / "my team.toml", "quiet-river-4f2a", None) == (
        "This was quiet-river-4f2a. To continue:\n  bullpen chat 'my team.toml' --resume quiet-river-4f2a"
    )


def test_events_that_come_while_the_screen_is_removed_do_no_harm(stage: Stage) -> None:
    stage.agent("max", [{"say": "Let me think. "}, {"hang": True}])
    stage.agent("sarah", [{"say": "Here it is."}], cli="codex")

    async def story(scene: Scene) -> None:
        await scene.say("Go. [NEXT: max, sarah]")
        await scene.sees("Let me think.")
        await scene.conversation.cancel()

    # What goes wrong while the screen is taken down is raised here.
    stage.play(story)


def test_nothing_is_imported_at_the_start_that_the_first_reply_or_a_dialog_needs() -> None:
    late = ("markdown_it", "pygments", "bullpen.tui.help_screen", "bullpen.tui.prompt_screen")
    code = f"import sys, bullpen.tui.launch, bullpen.tui.app; print([name for name in {late} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[]"


def test_a_widget_that_is_removed_while_a_person_leaves_is_no_error(stage: Stage) -> None:
    removal = asyncio.Event()

    async def cancelled() -> None:
        removal.set()
        raise asyncio.CancelledError

    async def story(scene: Scene) -> None:
        scene.app._next_callbacks.append(Callback(cancelled))

    stage.agent("max", [{"say": "Hi."}])
    stage.play(story)

    assert removal.is_set()
