"""What is logged while a command runs reaches a terminal only if somebody looks for a bug, and without keys."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import forked

from bullpen.cli.logs import begin_logging, logs_held_back

SOURCE = Path(__file__).parents[2] / "src"
KEY = "-".join(("sk", "ant", "api03", "0123456789abcdefghijklmnopqrstuvwxyz"))

# A bug of ours in the middle of a turn, whose message holds what it was at work on.
PROGRAM = f"""
import sys
from bullpen.cli import main
from bullpen.conversation import prompts
def prepare(*_, **__):
    raise RuntimeError("bug at {KEY} \\x1b[31m")
prompts.Prompts.for_turn = prepare
sys.exit(main(sys.argv[1:]))
"""
TEAM = 'hand_over_note = false\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = ["cat"]\n'


def run(folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    (folder / "team.toml").write_text(TEAM)
    return forked.run(
        [sys.executable, "-c", PROGRAM, "run", "--trust", "team.toml", "Hello."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "BULLPEN_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_bug_in_a_turn_is_told_without_a_traceback(tmp_path: Path) -> None:
    done = run(tmp_path)

    assert "This is a bug in bullpen, sorry: RuntimeError" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize("forbidden", [KEY, "\x1b"])
def test_who_looks_for_a_bug_sees_where_it_is_but_no_key(tmp_path: Path, forbidden: str) -> None:
    done = run(tmp_path, DEBUG="1")

    assert "Traceback" in done.stderr
    assert "in prepare" in done.stderr
    assert forbidden not in done.stderr


TALK = """
import sys
from bullpen.cli import main
sys.exit(main(sys.argv[1:]))
"""


def say(folder: Path, message: str, *options: str, before: tuple[str, ...] = (), **environment: str) -> str:
    """Return what stands on the standard error after a message to an agent that is `cat`."""
    (folder / "team.toml").write_text(TEAM)
    done = forked.run(
        [sys.executable, "-c", TALK, *before, "run", "--trust", "team.toml", message, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE), "BULLPEN_HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return str(done.stderr)


def test_debug_shows_the_prompt_as_it_is_sent_without_secrets(tmp_path: Path) -> None:
    shown = say(tmp_path, f"Hello, use {KEY} here.", DEBUG="1")

    assert "[Debug][Send] agent=unknown bytes=" in shown
    assert "\nprompt:\n" in shown
    assert "kim: Hello, use " in shown
    assert "systemFlag" not in shown
    assert KEY not in shown


def test_debug_is_an_option_before_and_after_the_command(tmp_path: Path) -> None:
    assert "[Debug][Send]" in say(tmp_path, "Hello.", "--debug")
    assert "[Debug][Send]" in say(tmp_path, "Hello.", before=("--debug",))


@pytest.mark.parametrize("value", ["", "0", "express:*", "false"])
def test_other_values_of_debug_are_for_other_programs(tmp_path: Path, value: str) -> None:
    assert "[Debug]" not in say(tmp_path, "Hello.", DEBUG=value)


@pytest.fixture
def own_logging() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    root.handlers[:] = before


@pytest.mark.usefixtures("own_logging")
def test_what_is_logged_behind_a_full_screen_is_shown_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    begin_logging(shown=True)
    begin_logging(shown=True)
    with logs_held_back():
        logging.getLogger("bullpen").warning("first")
        assert capsys.readouterr().err == ""
    logging.getLogger("bullpen").warning("then")

    assert capsys.readouterr().err == "first\nthen\n"


@pytest.mark.usefixtures("own_logging")
def test_what_nobody_wants_to_see_is_not_shown_after_it_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BULLPEN_DEBUG", raising=False)
    begin_logging()
    with logs_held_back():
        logging.getLogger("bullpen").warning("first")
    logging.getLogger("bullpen").warning("then")

    assert capsys.readouterr().err == ""


def test_debug_shows_what_is_received_and_where_messages_go(tmp_path: Path) -> None:
    shown = say(tmp_path, "Hello. [NEXT: max]", "--debug")

    assert "[Debug][Route] message=msg-1 from=kim to=max asked=max reason=markers notes=none" in shown
