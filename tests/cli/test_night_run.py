"""A night run: one of two vendors is out of quota at midnight, and the work is done in the morning."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import forked
from tests.conversation.stage import Script, Stage

RAN_OUT = "You've hit your limit, resets in 6h"


def used(cost: float | None = None) -> dict[str, Any]:
    return {"usage": {"input": 10_000, "output": 1_000}, **({} if cost is None else {"cost": cost})}


def making(name: str) -> dict[str, Any]:
    runs = f"echo {name} >> parser.py"
    return {"tool": {"name": "Bash", "input": {"command": runs}, "output": "", "runs": runs}}


@pytest.fixture
def night(tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Stage:
    """Two agents of two vendors, each of which may stand in for the other."""
    stage = Stage(tmp_path)
    for cli in ("claude", "codex"):
        stage.put_on_the_path(cli, monkeypatch)
    environment["PATH"] = f"{tmp_path / 'bin'}:{environment['PATH']}"
    begun: Script = [making("begun"), {"say": "It begins. [NEXT: rita]"}, used(0.05)]
    by_another: Script = [making("finished"), {"say": "Finished. [NEXT: rita]"}, used()]
    out: Script = [{"error": 429, "message": RAN_OUT}]
    ask: Script = [{"say": "Dates before 1970 fail. [NEXT: bob]"}, used()]
    yes: Script = [{"say": "All is well. [NEXT: kim]"}, used()]
    stage.person("kim")
    stage.agent("bob", begun, out, agent="claude", permissions="edit", model="opus", stand_in=["rita"])
    stage.agent("rita", ask, by_another, yes, agent="codex", permissions="edit", model="gpt-5.1", stand_in=["bob"])
    stage.write()
    return stage


def test_the_work_is_done_and_the_morning_shows_what_happened_and_what_it_cost(
    night: Stage, environment: dict[str, str]
) -> None:
    def bullpen(*words: str) -> str:
        command = [sys.executable, "-m", "bullpen", *words]
        done = forked.run(command, env=environment, cwd=night.folder, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    shown = bullpen("run", "--trust", "team.toml", "Write a parser for dates. [NEXT: bob]")

    assert (night.folder / "parser.py").read_text().split() == ["begun", "finished"]
    spoken = re.findall(r"^  (It begins|Dates|Finished|All is well|rita stands in for bob.*)", shown, re.MULTILINE)
    assert [one.partition(" until ")[0] for one in spoken] == [
        *("It begins", "Dates", "rita stands in for bob", "Finished", "All is well")
    ]
    assert "its quota is used up" in shown

    exported = json.loads(bullpen("sessions", "export", "last", "--format", "json"))
    said = [one["speaker"]["roleId"] for one in exported["messages"]]
    assert said == ["kim", "bob", "rita", "bullpen", "bob", "rita"]

    rows = {row["name"]: row for row in json.loads(bullpen("usage", "--by", "agent", "--json"))["rows"]}
    assert (rows["claude"]["turns"], rows["claude"]["failures"], rows["claude"]["is_estimate"]) == (2, 1, False)
    assert (rows["codex"]["turns"], rows["codex"]["failures"], rows["codex"]["is_estimate"]) == (3, 0, True)
    assert rows["claude"]["cost_usd"] == pytest.approx(0.05)
    rows = {row["name"]: row for row in json.loads(bullpen("usage", "--json"))["rows"]}
    assert (rows["bob"]["turns"], rows["rita"]["turns"]) == (3, 2)
    assert "~$" in bullpen("usage"), "what the tokens of codex cost is an estimate"
    assert "by        rita, in the role of bob" in bullpen("explain", "4")
