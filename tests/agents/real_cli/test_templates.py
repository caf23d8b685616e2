"""Every template, filled in with the genuine CLIs, passes its rehearsal."""

from pathlib import Path

import msgspec
import pytest

from bullpen.cli import main
from bullpen.team.file import load_team
from bullpen.team.templates import NAMES, template

WITH_A_CHECK = "plan-build-test"


@pytest.mark.needs("claude", "codex")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == WITH_A_CHECK else pytest.mark.torture) for name in NAMES]
)
def test_a_template_is_rehearsed(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A check that would be red, and so would ask the builder again.
    (project / "Makefile").write_text("test:\n\tfalse\n")
    assert main(["init", "--template", name, "--agents", "claude,codex"]) == 0
    assert main(["check"]) == 0
    capsys.readouterr()

    code = main(["rehearse", "--json"])

    rehearsed = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["member"] for one in rehearsed] == [role.name for role in template(name).roles]
    assert [check for one in rehearsed for check in one["checks"] if not check["passed"]] == []
    assert [len(one["checks"]) for one in rehearsed] == [3] * len(rehearsed)
    assert code == 0
    assert bool(load_team(project / "team.toml").team.checks) == (name == WITH_A_CHECK)
