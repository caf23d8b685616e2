"""Nobody who does not ask for a sandbox notices that there is one: nothing of it is loaded, tried, made or said."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen.agents import guardian_program
from bullpen.cli import main
from bullpen.cluster.worker_file import WorkerFile
from bullpen.sandbox import bubblewrap
from bullpen.sandbox.mechanism import Mechanism
from bullpen.sandbox.rules import SandboxRules
from bullpen.team.reader import read_team
from bullpen.team.trust import what_it_runs
from bullpen.view.trust_question import _facts

TEAM = f"""
[[member]]
name = "kim"

[[member]]
name = "max"
command = ["{sys.executable}"]
"""
NOTHING = Mechanism(why_not="bubblewrap is not installed", hint="Install it.")
SOMETHING = Mechanism(program="/usr/bin/bwrap")
ONE_TURN = """
import asyncio, json, os, sys, tempfile, threading
from pathlib import Path
from bullpen.agents.command import command_agent
from bullpen.agents import process, runner
from bullpen.context.prompt import AssemblerInput
from bullpen.conversation import member_agent
from bullpen.team import checks, sandboxes, trust, team

started, threads = [], []
original = process.Child.__init__
def child(self, argv, **settings):
    started.append([*settings["prefix"], *argv])
    original(self, argv, **settings)
process.Child.__init__ = child
to_thread = asyncio.to_thread
async def counted(function, *args, **settings):
    threads.append(function.__name__)
    return await to_thread(function, *args, **settings)
asyncio.to_thread = counted

Path("x.py").write_text("import os; print(sorted(os.environ)); open('beside', 'w'); open('../out', 'w')")
command = [sys.executable, "x.py"]
spec = command_agent(command, name="x")
member = team.Member(name="x", type="agent", command=tuple(command))
prompt = spec.assembler().assemble(AssemblerInput(current_message="x"))
before = sorted(os.listdir(tempfile.gettempdir()))
run = runner.run_turn(
    spec, prompt, emit=lambda _: None, cwd=".", permissions=member.permissions, sandbox=sandboxes.rules_of(member)
)
text = asyncio.run(run).text
print(json.dumps({
    "started": started[0], "threads": threads, "text": text, "here": sorted(os.listdir(".")),
    "out": os.path.exists("../out"),
    "temporary": sorted(os.listdir(tempfile.gettempdir())) == before,
    "loaded": sorted(name for name in sys.modules if name.startswith("bullpen.") and "sandbox" in name),
}))
"""


def test_nothing_is_held_unless_a_file_says_so() -> None:
    assert not SandboxRules().is_on
    assert not read_team(TEAM).agents[0].sandbox
    assert not WorkerFile(folders={}).sandbox
    assert not SandboxRules().hold("read-only")
    assert SandboxRules(is_on=True).hold("read-only")
    assert not SandboxRules(is_on=True).hold("full")


def test_a_turn_loads_starts_and_makes_nothing_more(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", ONE_TURN], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])

    assert found["loaded"] == ["bullpen.sandbox", "bullpen.sandbox.rules", "bullpen.team.sandboxes"]
    assert found["started"] == [sys.executable, "x.py"]
    assert set(found["threads"]) <= {"_prepare"}
    # A command without permissions is read-only by name, and nothing keeps it from writing: as before.
    assert found["here"] == ["beside", "x.py"]
    assert found["out"]
    assert found["temporary"]
    assert not [name for name in ("npm_config_cache", "PIP_CACHE_DIR", "GOCACHE") if name in found["text"]]


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "team.toml"


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    def tried() -> Mechanism:
        raise AssertionError("bubblewrap was looked for")

    monkeypatch.setattr("bullpen.sandbox.mechanism.mechanism", tried)


def said_of(text: str, file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str, str]:
    """Return what `check`, `doctor` and the question of trust say."""
    file.write_text(text)
    main(["check"])
    check = capsys.readouterr().out
    main(["doctor", str(file)])
    doctor = capsys.readouterr().out
    (runs,) = what_it_runs(read_team(text), file.parent)
    return check, doctor, "\n".join(f"{key} {words}" for key, words in _facts(runs))


@pytest.mark.usefixtures("untried")
def test_nothing_is_said_or_tried_without_it(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (TEAM, TEAM + "sandbox = false\n", TEAM + 'permissions = "full"\n'):
        said = said_of(text, team, capsys)
        assert "sandbox" not in " ".join(said).lower()
        assert "\nheld " not in said[2]


@pytest.mark.usefixtures("untried")
def test_what_has_no_effect_without_it_is_said_in_one_sentence(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check, doctor, trust = said_of(TEAM + 'writable = ["~/x"]\nnetwork = false\n', team, capsys)

    sentence = "writable and network have no effect without sandbox = true"
    assert [text.count(sentence) for text in (check, doctor, trust)] == [1, 1, 1]
    assert [text.lower().count("sandbox") for text in (check, trust)] == [2, 2]


@pytest.mark.parametrize(("by", "word"), [(SOMETHING, "A sandbox holds max"), (NOTHING, "No sandbox can hold max")])
def test_with_it_all_three_say_who_is_held(
    by: Mechanism, word: str, team: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.sandbox.mechanism.mechanism", lambda: by)

    check, doctor, trust = said_of(TEAM + "sandbox = true\n", team, capsys)

    assert word in doctor
    assert ("No sandbox can hold max" in check) == (not by.works)
    assert ("held by a sandbox" in trust, "so it is not started" in trust) == (by.works, not by.works)


def test_check_says_what_codex_cannot_do_in_it(
    team: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.sandbox.mechanism.mechanism", lambda: SOMETHING)
    codex = '[[member]]\nname = "kim"\n\n[[member]]\nname = "max"\nagent = "codex"\n'

    with_it, without = said_of(f"{codex}sandbox = true\n", team, capsys), said_of(codex, team, capsys)

    assert "Codex' own sandbox does not start within it where TMPDIR is set" in with_it[0]
    assert "own sandbox" not in without[0]


def test_init_proposes_nothing(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del capsys
    main(["init", "--scripted"])

    text = team.read_text()
    assert "sandbox" not in text
    assert "writable" not in text


def test_a_guardian_knows_a_sandbox_of_ours_from_a_persons_own() -> None:
    ours = bubblewrap.probe("/usr/bin/bwrap", is_root=True)

    assert "\0".join(ours).encode().removeprefix(b"/usr/bin/bwrap").startswith(guardian_program.SANDBOX)
