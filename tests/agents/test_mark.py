"""Whoever comes of an agent is known as its own, whatever it does with its parents, its variables and its rights."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bullpen.agents import guardian, process_tree, watchman
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.process import Child
from bullpen.agents.processes import mark
from bullpen.agents.processes.table import ProcessState
from bullpen.callers import is_within_agent

ORPHAN = """
read go
env -i setsid sh -c 'sh -c "echo \\$\\$ > pid.new; mv pid.new pid; exec sleep 60" &'
exec sleep 60
"""

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has marks")


@linux
@pytest.mark.parametrize("guarded", [True, False])
async def test_who_has_lost_all_its_parents_is_still_an_agents(
    guarded: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not guarded:
        monkeypatch.setattr(guardian, "take", lambda: None)
        monkeypatch.setattr(watchman, "watch", lambda _: None)
    child = Child(
        ["sh", "-c", ORPHAN],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        stdin=b"go\n",
        on_stdout=lambda _: None,
        on_stderr=lambda _: None,
        crash_records=CrashRecords(tmp_path / "records"),
    )
    orphan = None
    try:
        while not (tmp_path / "pid").exists():
            await asyncio.sleep(0.002)
        orphan = process_tree.process_id(int((tmp_path / "pid").read_text()))
        assert orphan is not None
        if child._program.guardian_pid is not None:
            os.kill(child._program.guardian_pid, signal.SIGKILL)
        while process_tree.running & parents(orphan.pid) or child._program.guardian_pid in parents(orphan.pid):
            await asyncio.sleep(0.002)

        assert process_tree.is_alive(orphan)
        assert process_tree.is_of_an_agent(orphan) is True
        assert not process_tree.may_use_tools(orphan.pid, "tools of another turn")
    finally:
        process_tree.end([one for one in [orphan] if one is not None])
        await child.stop()


def parents(pid: int) -> set[int]:
    return {
        one.pid for one in process_tree._with_ancestors(process_tree.process_id(pid) or process_tree.ProcessId(0, 0))
    }


@linux
def test_nobody_else_has_a_mark() -> None:
    assert (mark.own_mark(), mark.mark_of(os.getpid())) == (mark.UNLIMITED, mark.UNLIMITED)
    assert is_within_agent() is False


class Seen:
    """Processes of which we see the parents, and of some the variables."""

    def __init__(self, parents: Mapping[int, int], variables: Mapping[int, bool]) -> None:
        self._parents, self._variables = parents, variables

    def state(self, pid: int) -> ProcessState | None:
        parent = self._parents.get(pid)
        return None if parent is None else ProcessState(start_time=pid, is_zombie=False, parent=parent)

    def has_variable(self, pid: int, name: str, value: str | None = None) -> bool | None:
        assert (name, value) == (process_tree.TURN_VARIABLE, None)
        return self._variables.get(pid)


@pytest.mark.parametrize(
    ("parents", "variables", "found"),
    [
        pytest.param({9: 8, 8: 7, 7: 1, 1: 0}, {9: False, 7: False}, False, id="sudo, su or a login in between"),
        pytest.param({9: 8}, {9: False}, False, id="hidepid: the parents of a person cannot be seen"),
        pytest.param({9: 8, 8: 1, 1: 0}, {9: False}, False, id="a container that shows processes outside of it"),
        pytest.param({1: 0}, {1: False}, False, id="a container with its own processes"),
        pytest.param({9: 8, 8: 1, 1: 0}, {8: False}, None, id="its own variables cannot be read"),
        pytest.param({9: 8, 8: 7, 7: 1, 1: 0}, {9: False, 7: True}, True, id="sudo in between, within an agent"),
    ],
)
def test_who_cannot_be_asked_is_no_agent(
    parents: dict[int, int], variables: dict[int, bool], found: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mark can be read wherever parents can, so that nobody needs to be taken for an agent without one."""
    monkeypatch.setattr(process_tree, "process_table", lambda: Seen(parents, variables))
    monkeypatch.setattr(process_tree, "mark_of", lambda _: mark.UNLIMITED)
    caller = max(parents)

    assert process_tree.is_of_an_agent(process_tree.ProcessId(caller, caller)) is found


def test_a_mark_counts_where_variables_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "process_table", lambda: Seen({9: 8, 8: 7, 7: 1, 1: 0}, {9: False}))
    # An agent can lower it, and so has another number than we gave it.
    monkeypatch.setattr(process_tree, "mark_of", {9: mark.UNLIMITED, 8: 5, 7: mark.UNLIMITED, 1: mark.UNLIMITED}.get)

    assert process_tree.is_of_an_agent(process_tree.ProcessId(9, 9)) is True
