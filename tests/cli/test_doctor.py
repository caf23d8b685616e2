"""bullpen doctor, with programs that stand in for the CLIs."""

import json
import os
import sys
from pathlib import Path

import pytest

from bullpen.agents import agent_spec
from bullpen.cli import main

KEYS = ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY"]
KEYS += ["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no agents and no keys; programs in its folder are found."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def install(machine: Path, name: str, script: str) -> None:
    program = machine / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def speaking_acp(version: str) -> str:
    """Return a script of a program that tells its version, and answers a handshake in the Agent Client Protocol."""
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 1}})
    return f"case $1 in --acp) read asked; echo '{answer}'; exec sleep 60;; esac; echo {version}"


def install_scripted(machine: Path, name: str, sign_in: str) -> None:
    """Put our scripted agent in place of a CLI, with an answer of its own to the question who is signed in."""
    command = f'exec {sys.executable} -m bullpen.testing.agent --as {name} "$@"'
    install(machine, name, f'case "$1 $2" in "auth status"|"login status") {sign_in};; esac\n{command}')


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    code = main(["doctor", "--json", *arguments])
    return code, {finding["agent"]: finding for finding in json.loads(capsys.readouterr().out)}


def test_nothing_is_installed(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 1

    printed = capsys.readouterr().out
    assert "not found" in printed
    assert "claude: claude is not installed. Install it with: npm install -g @anthropic-ai/claude-code" in printed


def test_installed_and_signed_in(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install_scripted(machine, "claude", "echo '{\"loggedIn\": true}'; exit 0")

    code, found = report(capsys, "claude")

    assert code == 0
    assert found["claude-code"] == {
        "agent": "claude-code",
        "name": "claude",
        "needed": True,
        "stands_in": False,
        "program": "claude",
        "path": str(machine / "claude"),
        "version": agent_spec("claude").tested_versions[0],
        "version_tested": True,
        "signed_in": True,
        "evidence": "asked with `claude auth status`",
        "answered": None,
        "handshake": "",
        "problems": [],
        "remark": "",
        "ready": True,
    }


@pytest.mark.parametrize(
    ("name", "sign_in"),
    [
        ("claude", "echo '{\"loggedIn\": false}'; exit 1"),
        ("claude", "echo '{\"loggedIn\": false}'; exit 0"),
        ("codex", "echo 'Not logged in' >&2; exit 1"),
        ("codex", "echo 'Not logged in' >&2; exit 0"),
    ],
)
def test_not_logged_in_is_not_logged_in(
    machine: Path, name: str, sign_in: str, capsys: pytest.CaptureFixture[str]
) -> None:
    install_scripted(machine, name, sign_in)

    code, found = report(capsys, name)

    (finding,) = found.values()
    assert (code, finding["signed_in"], finding["ready"]) == (1, False, False)
    assert "is not signed in (asked with" in str(finding["problems"])


def test_a_key_or_a_stored_login_is_evidence(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(machine, "gemini", speaking_acp("0.61.0"))
    assert report(capsys, "gemini")[0] == 1

    (machine / ".gemini").mkdir()
    (machine / ".gemini" / "oauth_creds.json").touch()
    assert report(capsys, "gemini")[1]["google-gemini"]["evidence"] == "~/.gemini/oauth_creds.json exists"

    monkeypatch.setenv("GEMINI_API_KEY", "secret-key")
    code = main(["doctor", "gemini"])
    printed = capsys.readouterr().out
    assert code == 0
    assert "yes, GEMINI_API_KEY is set" in printed
    assert "secret-key" not in printed


def test_a_version_that_was_not_tested_is_said_and_is_not_a_problem(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(machine, "gemini", speaking_acp("9.9.9"))
    (machine / ".gemini").mkdir()
    (machine / ".gemini" / "oauth_creds.json").touch()

    assert main(["doctor", "gemini"]) == 0
    assert "9.9.9 (not tested with bullpen)" in capsys.readouterr().out


def test_a_program_that_is_broken(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "codex", "echo $'\\033[31mboom'; exit 7")

    code, found = report(capsys, "codex")

    assert code == 1
    assert "does not report its version" in str(found["openai-codex"]["problems"])


def test_live_runs_one_real_turn(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install_scripted(machine, "claude", "exit 0")
    code, found = report(capsys, "claude", "--live")
    assert (code, found["claude-code"]["answered"]) == (0, True)

    install_scripted(machine, "codex", "exit 0")
    failing = (machine / "codex").read_text().replace("--as codex", """--as codex --script '[{"error": 429}]'""")
    (machine / "codex").write_text(failing)
    code, found = report(capsys, "codex", "--live")
    assert (code, found["openai-codex"]["answered"]) == (1, False)
    assert "429" in str(found["openai-codex"]["problems"])


def test_live_passes_on_what_the_team_file_does(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = """[{"error": "Missing environment variable: `MY_KEY`."}]"""
    install_scripted(machine, "codex", "exit 0")
    program = (machine / "codex").read_text()
    refusal = (
        f"""[ -n "$MY_KEY" ] || exec {sys.executable} -m bullpen.testing.agent --as codex --script '{missing}' "$@"\n"""
    )
    (machine / "codex").write_text(program.replace("exec ", f"{refusal}exec ", 1))
    team = '[[member]]\nname = "kim"\n[[member]]\nname = "ann"\nagent = "codex"\n'
    monkeypatch.setenv("MY_KEY", "secret")

    (machine / "team.toml").write_text(team)
    code, found = report(capsys, "--live")
    problem = found["openai-codex"]["problems"]
    assert (code, "Missing environment variable" in str(problem)) == (1, True)
    assert 'MY_KEY is set here, but not passed on. Add env = ["MY_KEY"] to its member.' in str(problem)

    (machine / "team.toml").write_text(f'{team}env = ["MY_KEY"]\n')
    code, found = report(capsys, "--live")
    assert (code, found["openai-codex"]["answered"]) == (0, True)


def test_one_that_is_not_ready_is_enough_for_a_bad_exit_code(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install_scripted(machine, "claude", "exit 0")

    code, found = report(capsys, "claude", "codex")

    assert code == 1
    assert [finding["ready"] for finding in found.values()] == [True, False]
    assert os.environ["HOME"] == str(machine)


def test_only_what_the_team_in_this_folder_needs_counts(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    people = '[[member]]\nname = "kim"\n'
    (machine / "team.toml").write_text(f'{people}[[member]]\nname = "ann"\ncommand = ["cat"]\n')

    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    marks = {line.split()[0]: " ".join(line.split()[1:4]) for line in printed.splitlines() if " - " in line}
    assert marks["claude"] == marks["codex"] == "not needed here"
    assert marks["ann"].startswith("ready")
    assert "not installed" not in printed
    # Whoever names an agent needs it.
    assert main(["doctor", "claude"]) == 1

    other = machine / "other.toml"
    other.write_text(f'{people}[[member]]\nname = "ann"\ncommand = ["no-such-program"]\n')
    capsys.readouterr()
    code, found = report(capsys, str(other))
    assert (code, found["ann"]["ready"], found["claude-code"]["needed"]) == (1, False, False)

    other.write_text(f'{people}[[member]]\nname = "max"\nagent = "claude"\n')
    assert main(["doctor", str(other)]) == 1
    assert "claude: claude is not installed." in capsys.readouterr().out
    install_scripted(machine, "claude", "echo '{\"loggedIn\": true}'; exit 0")
    assert main(["doctor", str(other)]) == 0


def test_a_program_of_a_team_is_looked_for_and_not_run(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "tool", "touch ran")
    (machine / "team.toml").write_text('[[member]]\nname = "kim"\n[[member]]\nname = "ann"\ncommand = ["./tool"]\n')
    assert main(["doctor"]) == 0
    assert not (machine / "ran").exists()


def test_a_team_file_that_cannot_be_used_is_said_and_all_are_examined(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine / "team.toml").write_text("[[member")
    assert main(["doctor"]) == 1
    assert "team.toml cannot be used" in capsys.readouterr().err


def test_a_team_is_told_who_asks_and_by_way_of_what(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    acp = 'agent = "acp"\ncommand = ["opencode", "acp"]\npermissions = "ask"\n'
    gemini = 'agent = "gemini"\npermissions = "ask"\n'
    members = (
        f'[[member]]\nname = "oc"\n{acp}[[member]]\nname = "ge"\n{gemini}[[member]]\nname = "ed"\nagent = "codex"\n'
    )
    (machine / "team.toml").write_text(f'[[member]]\nname = "kim"\n{members}')

    main(["doctor"])

    said = [line for line in capsys.readouterr().out.splitlines() if "asks people" in line]
    assert said == [
        "oc asks people before it runs a command, by way of `opencode acp`.",
        "ge asks people before it runs a command, by way of `gemini --acp`.",
    ]


def test_every_agent_on_the_machine(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "vibe-acp", "echo vibe 3.0.2")
    install(machine, "copilot", "echo GitHub Copilot CLI 1.0.102.")
    install(machine, "droid", "touch ran")
    (machine / "team.toml").write_text('[[member]]\nname = "kim"\n[[member]]\nname = "ann"\nagent = "claude"\n')

    assert main(["doctor", "--all"]) == 0

    printed = capsys.readouterr().out
    rows = [line.split()[0] for line in printed.splitlines() if " ready " in line]
    assert rows == ["copilot", "vibe"]
    assert "not installed" not in printed
    droid = 'agent = "acp", command = ["droid", "exec", "--output-format", "acp"]'
    assert f"Factory Droid is here, too. It needs an account. In a team file: {droid}\n" in printed
    assert not (machine / "ran").exists()
    code, found = report(capsys, "--all")
    assert code == 0
    assert (found["github-copilot"]["version"], found["github-copilot"]["version_tested"]) == ("1.0.102", True)
    assert [name for name, finding in found.items() if finding["needed"]] == ["github-copilot", "mistral-vibe"]


def test_no_agent_on_the_machine(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--all"]) == 1
    assert main(["doctor", "--all", "claude"]) == 2
    assert "so name none" in capsys.readouterr().err


def test_who_is_signed_in_to_google_is_told_for_whom_that_still_works(
    machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(machine, "gemini", speaking_acp("0.61.0"))
    (machine / ".gemini").mkdir()
    (machine / ".gemini" / "oauth_creds.json").touch()

    assert main(["doctor", "gemini"]) == 0

    assert "gemini: Google accounts work only with a licence" in capsys.readouterr().out
    monkeypatch.setenv("GEMINI_API_KEY", "x")
    assert main(["doctor", "gemini"]) == 0
    assert "Google accounts" not in capsys.readouterr().out


def test_for_whom_google_accounts_work_is_said_once(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "gemini", speaking_acp("0.61.0"))

    assert main(["doctor", "gemini"]) == 1

    assert capsys.readouterr().out.count("Google accounts work only") == 1


def test_who_is_ready_to_stand_in_is_said_and_not_needed(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install_scripted(machine, "claude", "echo '{\"loggedIn\": true}'; exit 0")
    install_scripted(machine, "codex", "echo Logged in using ChatGPT; exit 0")
    members = '[[member]]\nname = "max"\nagent = "claude"\nstand_in = ["codex", "gemini"]\n'
    (machine / "team.toml").write_text(f'[[member]]\nname = "kim"\n{members}')

    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "codex is ready to stand in for max.\n" in said
    assert "gemini cannot stand in for max: gemini is not installed.\n" in said
    assert "stand-in, not ready" in said


def test_a_slow_program_is_not_asked_for_a_version_that_another_one_tells(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(machine, "vibe-acp", "exit 1")
    install(machine, "vibe", "echo vibe 3.0.2")

    assert report(capsys, "--all")[1]["mistral-vibe"]["version"] == "3.0.2"
