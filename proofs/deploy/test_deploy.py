"""The files in deploy/: what can be known of them without a systemd or a docker that runs."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from bullpen.testing.stage import write_team

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = DEPLOY / "bullpen@.service"
MOST_EXPOSED = 45
"""Of a hundred; a service without any protection has 96."""


def settings() -> dict[str, str]:
    lines = [line for line in UNIT.read_text(encoding="utf-8").splitlines() if "=" in line and not line.startswith("#")]
    return dict(line.split("=", maxsplit=1) for line in lines)


def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["bullpen"])


def served_with(words: list[str], folder: Path) -> str:
    """Return what `bullpen serve` prints with these words, when it is ended as a service is."""
    write_team(folder, {"max": [{"say": "Hello."}]})
    words = [word if word != "8423" else "0" for word in words]
    environment = {**os.environ, "BULLPEN_HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
    command = [sys.executable, "-m", "bullpen", *words, "--trust"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        printed += process.stdout.read()
    assert process.returncode == 0
    return printed


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_systemd_takes_the_unit_and_finds_it_protected(tmp_path: Path) -> None:
    unit = tmp_path / "bullpen@kai.service"
    # It looks whether the program is there.
    text = UNIT.read_text(encoding="utf-8").replace("ExecStart=/home/%i/.local/bin/bullpen", "ExecStart=/bin/true")
    unit.write_text(text, encoding="utf-8")
    analyze = ["systemd-analyze", "--no-pager"]

    verified = subprocess.run(
        [*analyze, "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    looked = [*analyze, "security", "--offline=true", f"--threshold={MOST_EXPOSED}", str(unit)]
    secured = subprocess.run(looked, capture_output=True, text=True, check=False)

    assert (verified.returncode, verified.stderr) == (0, "")
    assert secured.returncode == 0, secured.stdout


def test_the_units_command_serves_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    program, *words = shlex.split(settings()["ExecStart"].replace("/run/bullpen-%i", str(tmp_path)))

    printed = served_with(words, tmp_path)

    assert program == "/home/%i/.local/bin/bullpen"
    assert "bullpen serves the team" in printed
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_the_unit_leaves_nothing_and_trusts_nothing_by_itself() -> None:
    unit = settings()

    assert unit["KillMode"] == "mixed"
    assert "--trust" not in unit["ExecStart"]
    assert "--trust" not in compose()["command"]


def test_the_containers_command_serves_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    words = [str(tmp_path / "token") if word == "/home/bullpen/token" else word for word in compose()["command"]]

    assert "bullpen serves the team" in served_with(words, tmp_path)


def test_the_container_is_made_of_files_that_are_there() -> None:
    service, root = compose(), DEPLOY.parent

    assert (DEPLOY / service["build"]["context"]).resolve() == root
    dockerfile = (root / service["build"]["dockerfile"]).read_text(encoding="utf-8")
    copied = [line.split()[1:-1] for line in dockerfile.splitlines() if line.startswith("COPY ")]
    assert [name for names in copied for name in names if not (root / name).exists()] == []
    assert service["cap_drop"] == ["ALL"]
    assert service["read_only"]
