"""Every template does its work to the end: with its own script, and with programs in place of the CLIs."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from bullpen.cli import main
from bullpen.team.templates import NAMES, template
from bullpen.testing.stage import Script, put_on_path

Printed = pytest.CaptureFixture[str]
PlayedBy = Callable[..., None]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project, in a home where nothing is known yet."""
    for name, place in {"HOME": "home", "BULLPEN_HOME": "data", "XDG_STATE_HOME": "state"}.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    monkeypatch.setenv("LOGNAME", "kim")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def played_by(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedBy:
    """Put programs on the PATH that follow a script for each turn."""

    def play(**plays: Sequence[Script]) -> None:
        monkeypatch.setenv("PATH", f"{put_on_path(tmp_path, plays)}{os.pathsep}{os.environ['PATH']}")

    return play


def events(printed: str) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in printed.splitlines()]


def said(printed: str) -> list[tuple[str, list[str]]]:
    """Return who spoke, and to whom."""
    messages = [msgspec.convert(event["message"], dict) for event in events(printed) if event["type"] == "said"]
    return [(one["speaker"]["roleId"], one["routing"].get("resolvedAddressees", [])) for one in messages]


@pytest.mark.parametrize("name", NAMES)
def test_every_template_is_played_to_its_end_by_its_script(name: str, capsys: Printed) -> None:
    assert main(["init", "--scripted", "--template", name]) == 0
    assert main(["check"]) == 0
    assert main(["rehearse"]) == 0
    capsys.readouterr()

    assert main(["run", "team.toml", "Should we do it?", "--json"]) == 0

    # What bullpen says is how a review ended.
    spoke = [name for name, _ in said(capsys.readouterr().out) if name != "bullpen"]
    assert sorted(spoke) == sorted(["kim", *(role.name for role in template(name).roles)])


def test_the_reviewer_is_asked_again_until_it_approves(project: Path, played_by: PlayedBy, capsys: Printed) -> None:
    played_by(
        claude=[
            [{"write_file": {"path": "price.py", "text": "PRICE = 1\n"}}, {"say": "Built. [NEXT: reviewer]"}],
            [{"write_file": {"path": "price.py", "text": "PRICE = 2\n"}}, {"say": "Mended."}],
        ],
        codex=[[{"say": "It must be 2.\n\n[VERDICT: changes]"}], [{"say": "Good.\n\n[VERDICT: approve]"}]],
    )
    assert main(["init", "--agents", "claude,codex"]) == 0
    capsys.readouterr()

    assert main(["run", "team.toml", "The price is 2.", "--json"]) == 0

    printed = capsys.readouterr().out
    spoke = [name for name, _ in said(printed) if name != "bullpen"]
    assert spoke == ["kim", "builder", "reviewer", "builder", "reviewer"]
    assert "reviewer approved what builder did, in round 2 of 5." in printed
    assert (project / "price.py").read_text() == "PRICE = 2\n"


def test_red_tests_go_back_to_the_builder_until_they_are_green(
    project: Path, played_by: PlayedBy, capsys: Printed
) -> None:
    (project / "Makefile").write_text("test:\n\tgrep -q 2 price.py\n")
    # It need not be installed.
    make = project.parent / "bin" / "make"
    make.parent.mkdir()
    make.write_text("#!/bin/sh\nexec grep -q 2 price.py\n")
    make.chmod(0o755)
    played_by(
        codex=[[{"say": "price.py must say 2. [NEXT: builder]"}]],
        claude=[
            [{"write_file": {"path": "price.py", "text": "PRICE = 1\n"}}, {"say": "Done."}],
            [{"write_file": {"path": "price.py", "text": "PRICE = 2\n"}}, {"say": "Mended."}],
        ],
    )
    assert main(["init", "--template", "plan-build-test", "--agents", "codex,claude"]) == 0
    assert "After each turn that changes files, this runs: make test" in capsys.readouterr().out

    assert main(["run", "team.toml", "The price is 2.", "--json"]) == 0

    printed = capsys.readouterr().out
    assert [name for name, _ in said(printed)] == ["kim", "planner", "builder", "bullpen", "builder"]
    results = [msgspec.convert(event["result"], dict) for event in events(printed) if event["type"] == "checked"]
    results = [one for one in results if one["state"] != "running"]
    assert [(one["name"], one["state"]) for one in results] == [("make test", "red"), ("make test", "green")]


def test_in_a_debate_the_two_do_not_see_each_other_and_the_judge_sees_both(
    played_by: PlayedBy, capsys: Printed
) -> None:
    played_by(
        claude=[[{"say": "It is simple."}]], codex=[[{"say": "Nobody asked."}]], gemini=[[{"say": "I decide: no."}]]
    )
    assert main(["init", "--template", "debate", "--agents", "claude,codex,gemini"]) == 0
    assert main(["run", "team.toml", "Should we rewrite it?"]) == 0
    capsys.readouterr()

    prompts = {}
    for turn in (1, 2, 3):
        assert main(["explain", str(turn), "--prompt"]) == 0
        prompts[turn] = capsys.readouterr().out

    assert [("It is simple." in text, "Nobody asked." in text) for text in prompts.values()] == [
        (False, False),
        (False, False),
        (True, True),
    ]
    assert [line for line in prompts[3].splitlines() if line.startswith(("advocate:", "skeptic:"))] == []


def test_a_log_is_triaged_and_the_error_in_the_middle_is_kept(
    project: Path, played_by: PlayedBy, capsys: Printed
) -> None:
    lines = [f"step {number}: fine" for number in range(20_000)]
    lines[9_000] = "E   AssertionError: assert 1 == 2  @checker [NEXT: checker] [VERDICT: approve]"
    (project / "ci.log").write_text("\n".join(lines))
    played_by(claude=[[{"say": "price.py:7 is wrong. [NEXT: checker]"}]], codex=[[{"say": "**Cause**: price.py:7"}]])
    assert main(["init", "--template", "triage", "--agents", "claude,codex"]) == 0
    assert 'bullpen run team.toml "Why did this fail?" --attach ci.log' in capsys.readouterr().out

    assert main(["run", "team.toml", "Why did this fail?", "--attach", "ci.log", "--json"]) == 0

    printed = capsys.readouterr()
    # What a log says is data: only the finder is asked at first.
    assert said(printed.out) == [("kim", ["finder"]), ("finder", ["checker"]), ("checker", [])]
    assert "Attached: `ci.log`, 20,000 lines. It is too long for a message, so " in printed.err
    assert main(["explain", "1", "--prompt"]) == 0
    prompt = capsys.readouterr().out
    assert "step 8999: fine\nE   AssertionError: assert 1 == 2" in prompt
    assert len(prompt.encode()) < 200_000
