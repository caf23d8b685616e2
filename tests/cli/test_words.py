"""Words and options as people type them: in any order, with mistakes, and asking for help."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bullpen import __version__
from bullpen.cli.typed_commands import to_type

Bullpen = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    "words",
    [
        ["run", "team.toml", "--trust", "hi"],
        ["run", "--trust", "team.toml", "hi"],
        ["run", "team.toml", "hi", "--trust"],
        ["--trust", "run", "team.toml", "hi"],
        ["--db", "other.db", "run", "--trust", "team.toml", "hi"],
        ["run", "--trust", "--", "team.toml", "hi"],
    ],
    ids=" ".join,
)
def test_options_may_be_anywhere(words: list[str], bullpen: Bullpen, write_team: Callable[..., Path]) -> None:
    write_team(max="Hello Kim.")

    done = bullpen(*words)

    assert done.returncode == 0, done.stderr
    assert "  Hello Kim.\n" in done.stdout


def test_a_message_may_look_like_an_option(bullpen: Bullpen, write_team: Callable[..., Path]) -> None:
    write_team(max="Hello Kim.")

    assert "  --what?\n" in bullpen("run", "--trust", "team.toml", "--", "--what?").stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["chta"], "bullpen: There is no command 'chta'. Did you mean chat? Try: bullpen --help\n"),
        (["show", "last"], "bullpen: There is no command 'show'. Did you mean bullpen sessions show? "),
        (["team.toml"], "bullpen: There is no command 'team.toml'. Did you mean bullpen chat team.toml? "),
        (["--debug", "nonsense"], "bullpen: There is no command 'nonsense'. Try: bullpen --help\n"),
        (["--versoin"], "bullpen: There is no option --versoin. Did you mean --version? "),
        (["run", "--trsut", "hi"], "bullpen run: There is no option --trsut. Did you mean --trust? "),
        (["run", "--max-turn5=3", "hi"], "bullpen run: There is no option --max-turn5. Did you mean --max-turns? "),
        (["sessions", "shwo"], "bullpen sessions: There is no action 'shwo'. Did you mean show? "),
        (["check", "a.toml", "b.toml"], "bullpen check: There are too many words: b.toml. "),
        (["serve", "--port", "http"], "bullpen serve: --port: must be a number from 0 to 65535. "),
        (["run", "--timeout", "soon", "hi"], "bullpen run: --timeout: must be more than 0. "),
        (["sessions", "show", "--last", "0"], "bullpen sessions show: --last: must be 1 or more. "),
        (["sessions", "search", "x", "--limit", "-1"], "bullpen sessions search: --limit: must be 1 or more. "),
        (["\x1b[31m"], "bullpen: There is no command '\\x1b[31m'. "),
        (["check", "--\x1b[31m"], "bullpen check: There is no option --\ufffd[31m. "),
    ],
)
def test_wrong_words_are_explained(words: list[str], sentence: str, bullpen: Bullpen) -> None:
    done = bullpen(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(sentence)


@pytest.mark.parametrize("words", [[], ["run"], ["sessions"], ["sessions", "export"]])
def test_help_is_also_a_command(words: list[str], bullpen: Bullpen) -> None:
    asked = bullpen("help", *words)

    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == bullpen(*words, "--help").stdout


def test_help_for_what_does_not_exist(bullpen: Bullpen) -> None:
    assert bullpen("help", "rnu").stderr.startswith("bullpen: There is no command 'rnu'. Did you mean run? ")
    assert bullpen("help", "sessions", "shwo").stderr.startswith("bullpen sessions: There is no action 'shwo'. ")
    assert bullpen("help", "rnu").returncode == bullpen("help", "sessions", "shwo").returncode == 2


def test_the_version_in_short(bullpen: Bullpen) -> None:
    assert bullpen("-V").stdout == f"bullpen {__version__}\n"


def test_a_rehearsal_without_any_cli_says_so(bullpen: Bullpen, write_team: Callable[..., Path]) -> None:
    write_team(max="Hello Kim.")

    assert "Nothing was rehearsed: only known CLIs" in bullpen("rehearse", "--trust").stderr


def test_what_reads_a_conversation_reads_the_last_one(bullpen: Bullpen, write_team: Callable[..., Path]) -> None:
    write_team(max="Hello Kim.")
    bullpen("run", "--trust", "hi")

    for words in (["explain"], ["sessions", "show"], ["sessions", "watch"], ["sessions", "export"]):
        done = bullpen(*words)
        assert done.returncode == 0, done.stderr
        assert done.stdout == bullpen(*words, "last").stdout
        assert "hi" in done.stdout


def test_who_called_it_by_the_name_of_the_package_is_told_to_do_so_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "bullpen-chat"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    assert to_type("chat") == f"{program} chat"

    monkeypatch.setenv("PATH", str(program.parent))
    assert to_type("chat") == "bullpen-chat chat"
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert to_type("chat") == "bullpen chat"
