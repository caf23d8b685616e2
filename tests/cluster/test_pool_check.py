"""`bullpen check --cluster`: whether pools have workers, and whether those run what the members need."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bullpen.agents.registry import agent_spec
from bullpen.cli import main
from bullpen.cluster.announcing import AgentThere, Announcement
from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.membership import Process, joined
from bullpen.cluster.worker_file import WorkerFile

TEAM = """name = "shop"
[[member]]
name = "kim"
[[member]]
name = "max"
agent = "claude"
pool = "gpu-box"
cwd = "app/backend"
permissions = "edit"
allow = ["npm test"]
"""
CHECK = '[[check]]\nname = "tests"\ncommand = ["npm", "test"]\n'
FITS: dict[str, Any] = {
    "folders": {"app": "/srv/app", "docs": "/srv/docs"},
    "agents": ("claude",),
    "permissions": "edit",
    "allow": ("npm test",),
    "checks": (("npm", "test"),),
}


@pytest.fixture
def team(tmp_path: Path) -> Path:
    path = tmp_path / "team.toml"
    path.write_text(TEAM + CHECK)
    return path


@asynccontextmanager
async def workers(url: str, *files: dict[str, Any], ready: bool = True) -> AsyncIterator[None]:
    """Let workers with these files be there, called box-0, box-1 and so on."""
    agent = AgentThere(
        name=agent_spec("claude").name, problems=() if ready else ("claude is not signed in. Run: claude",)
    )
    async with Database(url) as database, AsyncExitStack() as stack:
        for number, values in enumerate(files):
            says = msgspec.msgpack.encode(Announcement(agents=(agent,), allows=WorkerFile(**values)))
            process = Process(kind="worker", name=f"box-{number}", pools=("gpu-box",), announced=says)
            await stack.enter_async_context(joined(database, Bell(url), process))
        yield


async def test_a_team_whose_workers_run_everything_is_fine(
    team: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with workers(url, FITS):
        assert main(["check", str(team), "--cluster", url]) == 0

    said = capsys.readouterr().out
    assert "does not run this" not in said
    assert f"{team} is fine." in said


async def test_a_pool_without_a_worker_is_wrong(team: Path, url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(team), "--cluster", url]) == 1

    said = capsys.readouterr().out
    assert f"{team}:7: error: member.2.pool: no worker serves 'gpu-box' now, so turns of max would wait for one" in said
    assert f"{team} can be used, but not all of it works: 1 error." in said


@pytest.mark.parametrize(
    ("others", "because"),
    [
        ({"permissions": "read-only"}, 'permissions = "edit" is more than its "read-only"'),
        ({"agents": ("codex",)}, "the agent 'claude' is not among its agents"),
        ({"allow": ()}, "allow does not hold 'npm test'"),
        ({"folders": {"a": "/a", "b": "/b"}}, "'app/backend' is not in one of its folders (a, b)"),
    ],
)
async def test_what_no_worker_allows_is_wrong(
    others: dict[str, Any], because: str, team: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with workers(url, FITS | others):
        assert main(["check", str(team), "--cluster", url]) == 1

    assert (
        f"{team}:7: error: member.2.pool: the worker box-0 of 'gpu-box' does not run this: {because}"
        in capsys.readouterr().out
    )


async def test_what_one_of_several_does_not_run_is_a_warning(
    team: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with workers(url, FITS, FITS | {"agents": ("codex",), "checks": ()}):
        assert main(["check", str(team), "--cluster", url]) == 0

    said = capsys.readouterr().out
    assert "warning: member.2.pool: the worker box-1 of 'gpu-box' does not run this: the agent 'claude'" in said
    assert (
        "warning: check.1: the worker box-1 does not run this: the command 'npm test' is not among its checks" in said
    )


async def test_an_agent_that_is_not_ready_there_is_wrong(
    team: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with workers(url, FITS, ready=False):
        assert main(["check", str(team), "--cluster", url, "--json"]) == 1

    problems = json.loads(capsys.readouterr().out)["problems"]
    assert "is not ready there: claude is not signed in." in next(
        one["text"] for one in problems if one["severity"] == "error"
    )


def test_without_members_in_pools_nobody_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "team.toml"
    path.write_text('name = "shop"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = ["true"]\n')

    assert main(["check", str(path), "--cluster", "postgresql://kai@127.0.0.1:1/none"]) == 0
    path.write_text(TEAM)
    assert main(["check", str(path), "--cluster", "postgresql://kai@127.0.0.1:1/none"]) == 1
    assert "cannot be reached" in capsys.readouterr().err
