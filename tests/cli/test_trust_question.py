"""Asking for trust: on a terminal, without one, and with --trust."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import forked

from bullpen.cli.trust_question import ensure_trusted
from bullpen.errors import NotTrusted
from bullpen.team.file import LoadedTeam, load_team
from bullpen.team.trust import Trust, settings_marks

TEXT = """\
[[member]]
name = "kim"
[[member]]
name = "max"
agent = "gemini"
permissions = "edit"
allow = ["pytest", "npm test", "make test"]
arguments = ["--sandbox"]
instruction_file = "MAX.md"
[[member]]
name = "sarah"
command = ["./agent", "a\\nb\\tc\\u001b[2J", "d\\u200be\\u2028f\\u3164g\\u2800h\\u00a0i\\U000e0041"]
"""

RULES = "run_shell_command(pytest),run_shell_command(npm test),run_shell_command(make test)"
ALLOWED = 'and run any command that begins with "pytest", "npm test" or "make test"'

SHOWN = f"""\
FOLDER/team.toml is new here, or has changed. It would run:

  max
    runs  gemini --output-format stream-json --approval-mode auto_edit --allowed-tools '{RULES}' --sandbox
    in    FOLDER
    may   read, and change files (edit), {ALLOWED}, unless its own arguments say otherwise: --sandbox
    gets  the variables GEMINI_*, GOOGLE_*, CLOUD_SDK_*
    reads FOLDER/MAX.md

  sarah
    runs  ./agent 'a\\nb\\tc\\x1b[2J' 'd\\u{{200b}}e\\u{{2028}}f\\u{{3164}}g\\u{{2800}}h\\xa0i\\u{{e0041}}'
    in    FOLDER
    may   do anything that you may: bullpen cannot restrict this program

"""

PROGRAM = """\
import sys
from pathlib import Path
from bullpen.cli.trust_question import ensure_trusted
from bullpen.errors import NotTrusted
from bullpen.team.file import load_team
try:
    ensure_trusted(load_team(Path(sys.argv[1])), trust=False)
except NotTrusted:
    sys.exit(3)
"""


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedTeam:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    (tmp_path / "team.toml").write_text(TEXT)
    return load_team(tmp_path / "team.toml")


def test_without_a_terminal_it_shows_everything_and_refuses(
    loaded: LoadedTeam, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(NotTrusted) as caught:
        ensure_trusted(loaded, trust=False)

    printed = capsys.readouterr()
    assert (printed.out, printed.err.replace(str(loaded.root), "FOLDER")) == ("", SHOWN)
    assert str(caught.value) == (
        f"{loaded.path} is not trusted, so nothing in it was run. Read what it runs, and if you agree, add --trust."
    )
    assert not Trust().knows(loaded.path, loaded.text)


def test_with_trust_it_is_remembered(loaded: LoadedTeam, capsys: pytest.CaptureFixture[str]) -> None:
    ensure_trusted(loaded, trust=True)
    ensure_trusted(loaded, trust=False)

    assert capsys.readouterr().err == ""


def test_a_file_that_has_changed_is_asked_about_again(loaded: LoadedTeam) -> None:
    ensure_trusted(loaded, trust=True)
    loaded.path.write_text(TEXT + "# changed\n")

    with pytest.raises(NotTrusted):
        ensure_trusted(load_team(loaded.path), trust=False)


def test_a_text_that_was_trusted_before_is_not_asked_about_again(loaded: LoadedTeam) -> None:
    ensure_trusted(loaded, trust=True)
    loaded.path.write_text(TEXT + "# changed\n")
    ensure_trusted(load_team(loaded.path), trust=True)
    loaded.path.write_text(TEXT)

    ensure_trusted(load_team(loaded.path), trust=False)


def answer_on_a_terminal(loaded: LoadedTeam, answer: bytes) -> int:
    ours, theirs = os.openpty()
    try:
        child = forked.start([sys.executable, "-c", PROGRAM, str(loaded.path)], stdin=theirs, stderr=theirs)
        os.close(theirs)
        seen = b""
        while not seen.endswith(b"[y/N] "):
            seen += os.read(ours, 1000)
        assert b"auto_edit" in seen
        os.write(ours, answer)
        return child.wait()
    finally:
        os.close(ours)


@pytest.mark.parametrize("answer", [b"y\n", b"YES\n"])
def test_a_person_may_agree_once(loaded: LoadedTeam, answer: bytes) -> None:
    assert answer_on_a_terminal(loaded, answer) == 0

    assert Trust().knows(loaded.path, loaded.text)
    ensure_trusted(loaded, trust=False)


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"what?\n", b"\x04"])
def test_anything_else_is_no(loaded: LoadedTeam, answer: bytes) -> None:
    assert answer_on_a_terminal(loaded, answer) == 3

    assert not Trust().knows(loaded.path, loaded.text)


def test_a_file_that_every_agent_is_given_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "data"))
    file = tmp_path / "team.toml"
    file.write_text(
        'instruction_file = "/etc/hostname"\noutside_files = true\n'
        '[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = ["cat"]\n'
    )
    command = [sys.executable, "-m", "bullpen", "run", str(file), "hi"]

    asked = forked.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    assert asked.returncode == 1
    assert "Every agent is given /etc/hostname." in asked.stderr
    assert f"Instruction files may be outside of {tmp_path.resolve()}." in asked.stderr


SETTINGS = json.dumps({"mcpServers": {"db": {"command": "node", "args": ["db.js"]}}})
FULL = '[[member]]\nname = "kim"\n[[member]]\nname = "max"\nagent = "claude"\npermissions = "full"\n'
NEW_SETTINGS = """\
FOLDER/team.toml has agents that read settings of their folders, and these are new here, or have changed. It would run:

  max
    runs  claude -p --input-format stream-json --output-format stream-json --verbose --include-partial-messages \
--dangerously-skip-permissions
    in    FOLDER
    may   do anything that you may, without asking (full)
    gets  the variables ANTHROPIC_*, CLAUDE_*, AWS_*, GOOGLE_*, CLOUD_ML_REGION, DISABLE_*, IS_SANDBOX
    reads FOLDER/.mcp.json (MCP server mcpServers.db: node db.js)

Nobody has agreed to these settings, so agents are started without them; those that cannot be are not started.
"""


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LoadedTeam:
    """A team that was trusted before its folder had settings, or before these were asked about."""
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    (tmp_path / "team.toml").write_text(FULL)
    loaded = load_team(tmp_path / "team.toml")
    Trust().remember(loaded.path, loaded.text)
    (tmp_path / ".mcp.json").write_text(SETTINGS)
    return loaded


def test_new_settings_of_a_known_team_are_shown_and_without_a_yes_they_are_left_out(
    full: LoadedTeam, capsys: pytest.CaptureFixture[str]
) -> None:
    ensure_trusted(full, trust=False)

    assert capsys.readouterr().err.replace(str(full.root), "FOLDER") == NEW_SETTINGS
    assert Trust().agreed(full.path) == frozenset()


def test_trust_agrees_to_the_settings_that_are_there_now(full: LoadedTeam, capsys: pytest.CaptureFixture[str]) -> None:
    ensure_trusted(full, trust=True)

    assert Trust().agreed(full.path) == settings_marks(full.team, full.root) != frozenset()
    ensure_trusted(full, trust=False)
    assert capsys.readouterr().err == ""

    (full.root / ".mcp.json").write_text("{}")
    ensure_trusted(full, trust=False)
    shown = f"reads {full.root / '.mcp.json'} (nothing in it that runs or allows anything)"
    assert shown in capsys.readouterr().err


def test_settings_that_are_never_read_are_named_and_not_asked_about(
    full: LoadedTeam, capsys: pytest.CaptureFixture[str]
) -> None:
    full.path.write_text(FULL.replace("full", "edit"))
    loaded = load_team(full.path)
    with pytest.raises(NotTrusted):
        ensure_trusted(loaded, trust=False)
    assert "    skips .mcp.json: settings count with full permissions only\n" in capsys.readouterr().err

    Trust().remember(loaded.path, loaded.text)
    ensure_trusted(loaded, trust=False)
    assert capsys.readouterr().err == ""
