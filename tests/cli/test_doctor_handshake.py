"""bullpen doctor starts agents that speak the Agent Client Protocol, and asks what they can do: nothing else."""

import json
import sys
from pathlib import Path

import pytest

from bullpen.agents import acp_handshake
from bullpen.cli import main
from bullpen.team.file import load_team
from bullpen.team.trust import Trust

PROGRAM = """#!{python}
import json, pathlib, sys, time
if "--version" in sys.argv:
    print("0.61.0")
    sys.exit()
behaviour = {behaviour!r}
if behaviour == "crashes":
    sys.stderr.write("cannot find module 'yargs'\\n")
    sys.exit(3)
line = sys.stdin.readline()
pathlib.Path({heard!r}).write_text(line)
number = json.loads(line)["id"]
def send(**message):
    print(json.dumps(dict(jsonrpc="2.0", **message)), flush=True)
if behaviour == "works":
    print("Loaded cached credentials.", flush=True)
    send(method="x/hello", id=number, params={{}})
    info = dict(name="gemini-cli", version="0.61.0")
    send(id=number, result=dict(protocolVersion=1, agentInfo=info, agentCapabilities=dict(loadSession=True)))
elif behaviour == "old":
    send(id=number, result=dict(protocolVersion=1))
elif behaviour == "other version":
    send(id=number, result=dict(protocolVersion=2))
elif behaviour == "refuses":
    send(id=number, error=dict(code=-32000, message="Authentication required."))
elif behaviour == "other protocol":
    send(id=number, result=["hello"])
elif behaviour == "floods":
    while True:
        print("x" * 100_000)
with pathlib.Path({heard!r}).open("a") as file:
    for line in sys.stdin:
        file.write(line)
time.sleep(600)
"""
GOOD = "It speaks the Agent Client Protocol, version 1, as gemini-cli 0.61.0; it can load sessions; "
SET = "it asks people, in a mode that bullpen sets."
WRONG = {
    "crashes": "It ended with exit code 3 before it answered: cannot find module 'yargs'.",
    "silent": "It did not answer within 2 seconds.",
    "floods": "It did not answer within 2 seconds.",
    "other version": "It speaks version 2 of the Agent Client Protocol, and bullpen speaks 1.",
    "refuses": "It refused the handshake: Authentication required.",
    "other protocol": "It answered, but not in the Agent Client Protocol.",
}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def install(machine: Path, name: str, behaviour: str) -> None:
    text = PROGRAM.format(python=sys.executable, behaviour=behaviour, heard=str(machine / "heard"))
    (machine / name).write_text(text)
    (machine / name).chmod(0o755)


def team(machine: Path, member: str) -> Path:
    path = machine / "team.toml"
    path.write_text(f'name = "Shop"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\n{member}\n')
    return path


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    code = main(["doctor", "--json", *arguments])
    return code, {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}


def test_an_agent_that_asks_in_the_protocol_says_what_it_can_do(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(machine, "gemini", "works")
    team(machine, 'agent = "gemini"\npermissions = "ask"')

    assert main(["doctor"]) == 0

    assert f"gemini: `gemini --acp`: {GOOD}{SET}\n" in capsys.readouterr().out
    (heard,) = map(json.loads, (machine / "heard").read_text().splitlines())
    # No session is begun, and no prompt is sent.
    assert (heard["method"], heard["params"]["protocolVersion"]) == ("initialize", 1)


@pytest.mark.parametrize("behaviour", WRONG)
def test_a_program_that_does_not_answer_as_it_should_is_a_sentence(
    behaviour: str, machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if behaviour in ("silent", "floods"):
        monkeypatch.setattr(acp_handshake, "HANDSHAKE_SECONDS", 2.0)
    install(machine, "gemini", behaviour)

    code, found = report(capsys, "gemini")

    said = f"`gemini --acp` cannot be asked anything. {WRONG[behaviour]}"
    assert (code, found["gemini"]["problems"]) == (1, [{"text": said, "hint": "Run it to see why."}])


def test_it_is_not_started_for_a_team_that_does_not_ask(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "gemini", "crashes")
    team(machine, 'agent = "gemini"\npermissions = "edit"')

    code, found = report(capsys)

    assert (code, found["gemini"]["handshake"]) == (0, "")


def test_nor_if_no_agent_was_named(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "gemini", "crashes")

    _, found = report(capsys)

    assert found["gemini"]["problems"] == []


def test_any_agent_is_started_only_if_the_team_file_is_trusted(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(machine, "other", "works")
    path = team(machine, 'agent = "acp"\ncommand = ["other", "acp"]')

    code, found = report(capsys)

    assert (code, (machine / "heard").exists()) == (1, False)
    why = "It was not started: nobody has agreed yet to what this team file runs."
    assert (found["max"]["ready"], found["max"]["problems"]) == (
        False,
        [{"text": why, "hint": "`bullpen chat` asks."}],
    )
    loaded = load_team(path)
    Trust().remember(loaded.path, loaded.text)
    code, found = report(capsys)
    up_to_it = "what it asks people is up to its own settings."
    assert (code, found["max"]["handshake"]) == (0, f"`other acp`: {GOOD}{up_to_it}")


def test_any_agent_that_cannot_load_sessions_or_say_its_name(machine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(machine, "other", "old")
    loaded = load_team(team(machine, 'agent = "acp"\ncommand = ["other"]'))
    Trust().remember(loaded.path, loaded.text)

    _, found = report(capsys)

    assert str(found["max"]["handshake"]).startswith(
        "`other`: It speaks the Agent Client Protocol, version 1; it cannot load sessions; "
    )
