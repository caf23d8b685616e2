"""The processes of this machine, as /proc tells of them and as psutil does: real ones, and the same answers."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bullpen.agents import process_tree
from bullpen.agents.crash_records import CrashRecords, Record
from bullpen.agents.processes.proc_files import ProcFiles
from bullpen.agents.processes.psutil_table import PsutilTable
from bullpen.agents.processes.table import ProcessTable
from bullpen.conversation.owner import is_alive as owner_is_alive
from bullpen.conversation.owner import this_process
from bullpen.store.sqlite import SqliteStore

Start = Callable[[str], "subprocess.Popen[str]"]
WAIT_SECONDS = 60
MARK = f"a turn of the tests of process tables in process {os.getpid()}"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has both tables")


@pytest.fixture(params=[ProcFiles, PsutilTable])
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ProcessTable:
    """Use one table everywhere."""
    chosen: ProcessTable = request.param()
    monkeypatch.setattr(process_tree, "process_table", lambda: chosen)
    return chosen


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a marked shell in a session of its own that says when it is ready; at the end, end all that came of it."""
    started = []
    before = set(ProcFiles().children(os.getpid()))

    def run(script: str) -> "subprocess.Popen[str]":
        environment = {**os.environ, process_tree.TURN_VARIABLE: MARK}
        command = ["bash", "-c", script]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
        started.append(process)
        return process

    yield run
    process_tree.end(left for process in started for left in process_tree.descendants(process.pid))
    process_tree.end(process_tree.processes_of_turn(MARK))
    for process in started:
        process.communicate()
    # Another test may have made this process the parent of orphans.
    for orphan in set(ProcFiles().children(os.getpid())) - before:
        os.waitpid(orphan, 0)


def lines(process: "subprocess.Popen[str]", count: int) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(count)]


def test_a_family(start: Start, table: ProcessTable) -> None:
    shell = start("(sleep 60 & echo $!; wait) & echo $!; wait")
    child, grandchild = sorted(lines(shell, 2))

    assert sorted(table.descendants(shell.pid)) == [child, grandchild]
    assert [process.pid for process in process_tree.descendants(child)] == [grandchild]
    assert {shell.pid, child, grandchild, os.getpid()} <= set(table.all())


def test_a_state(start: Start, table: ProcessTable) -> None:
    shell = start("echo 1; sleep 60")
    lines(shell, 1)
    mine, its = table.state(os.getpid()), table.state(shell.pid)

    assert mine is not None
    assert its is not None
    assert mine.start_time < its.start_time
    assert not its.is_zombie
    assert table.state(shell.pid) == its


def test_a_zombie_and_one_that_is_gone(start: Start, table: ProcessTable) -> None:
    shell = start("echo 1")
    identity = process_tree.process_id(shell.pid)
    os.waitid(os.P_PID, shell.pid, os.WEXITED | os.WNOWAIT)
    state = table.state(shell.pid)

    assert identity is not None
    assert state is not None
    assert (state.start_time, state.is_zombie) == (identity.start_time, True)
    assert not process_tree.is_alive(identity)
    assert table.descendants(shell.pid) == []
    shell.wait()
    assert table.state(shell.pid) is None
    assert table.descendants(shell.pid) == []
    assert not table.has_variable(shell.pid, process_tree.TURN_VARIABLE, MARK)


def test_a_mark_is_found_in_every_session_and_only_whole(start: Start, table: ProcessTable) -> None:
    shell = start("setsid sleep 60 & echo $!; sleep 60")
    (escaped,) = lines(shell, 1)

    # While a program is being started, its environment cannot be read for a moment.
    while not {shell.pid, escaped} <= {process.pid for process in process_tree.processes_of_turn(MARK)}:
        time.sleep(0.005)
    assert process_tree.processes_of_turn(MARK[:-1]) == []
    assert not table.has_variable(shell.pid, process_tree.TURN_VARIABLE[1:], MARK)
    assert not table.has_variable(os.getpid(), process_tree.TURN_VARIABLE, MARK)


def test_both_tables_agree_about_every_process(start: Start) -> None:
    shell = start("sleep 60 & echo $!; sleep 60")
    lines(shell, 1)
    by_files, by_psutil = ProcFiles(), PsutilTable()
    family = [os.getpid(), shell.pid, *by_files.descendants(shell.pid)]

    for pid in family:
        first, second = by_files.state(pid), by_psutil.state(pid)
        assert first is not None
        assert second is not None
        assert first.is_zombie == second.is_zombie
        assert sorted(by_files.descendants(pid)) == sorted(by_psutil.descendants(pid))
    by_age = [sorted(family, key=partial(age, one)) for one in (by_files, by_psutil)]
    assert by_age[0] == by_age[1]


def age(table: ProcessTable, pid: int) -> tuple[int, int]:
    state = table.state(pid)
    assert state is not None
    return state.start_time, pid


def test_after_a_crash_everything_of_a_turn_is_ended(start: Start, table: ProcessTable, tmp_path: Path) -> None:
    owner = start("echo 1; sleep 60")
    shell = start("setsid sleep 60 & echo $!; env -i sleep 60 & echo $!; wait")
    lines(owner, 1)
    family = [shell.pid, *lines(shell, 2)]
    records = CrashRecords(tmp_path)
    records.record(shell.pid, MARK)

    assert records.end_all() == 0
    (file,) = tmp_path.glob("*.json")
    own = process_tree.process_id(os.getpid())
    other = process_tree.process_id(owner.pid)
    assert own is not None
    assert other is not None
    data = file.read_text().replace(str(own.pid), str(other.pid)).replace(str(own.start_time), str(other.start_time))
    file.write_text(data)
    assert records.end_all() == 0
    owner.kill()
    owner.wait()
    assert records.end_all() == 1
    shell.wait()
    while any(is_there(table, pid) for pid in family):
        time.sleep(0.005)


def is_there(table: ProcessTable, pid: int) -> bool:
    state = table.state(pid)
    return state is not None and not state.is_zombie


@pytest.mark.usefixtures("table")
def test_who_owns_a_conversation_is_seen(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "bullpen.db") as store:
        assert owner_is_alive(this_process(), store)


def test_on_linux_psutil_is_not_loaded() -> None:
    program = (
        "import sys; from bullpen.agents.registry import known_agents; known_agents(); print('psutil' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout == b"False\n"


def test_a_process_whose_pid_was_reused_is_never_ended(start: Start, table: ProcessTable, tmp_path: Path) -> None:
    stranger = start("echo 1; sleep 60")
    lines(stranger, 1)
    now = process_tree.process_id(stranger.pid)
    assert now is not None
    earlier = process_tree.ProcessId(now.pid, now.start_time - 1)

    process_tree.end([earlier])
    (tmp_path / "turn.json").write_bytes(msgspec.json.encode(record(child=earlier, guardian=earlier, owner=earlier)))
    assert CrashRecords(tmp_path).end_all() == 0

    assert list(tmp_path.iterdir()) == []
    assert is_there(table, stranger.pid)
    process_tree.end([now])
    assert stranger.wait() == -signal.SIGKILL


def test_a_record_that_cannot_be_read_now_is_kept(tmp_path: Path) -> None:
    unreadable, damaged = tmp_path / "unreadable.json", tmp_path / "damaged.json"
    unreadable.symlink_to(unreadable)
    damaged.write_text("{")

    assert CrashRecords(tmp_path).end_all() == 0
    assert list(tmp_path.iterdir()) == [unreadable]


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize("elsewhere", [{"boot_id": "another boot"}, {"namespace": "pid:[1]"}])
def test_what_runs_on_another_machine_or_in_a_container_is_left_alone(
    start: Start, elsewhere: dict[str, str], tmp_path: Path
) -> None:
    shell = start("echo 1; sleep 60")
    lines(shell, 1)
    child = process_tree.process_id(shell.pid)
    assert child is not None
    dead = process_tree.ProcessId(child.pid, child.start_time - 1)
    file = tmp_path / "turn.json"
    file.write_bytes(msgspec.json.encode(replace(record(child=child, guardian=None, owner=dead), **elsewhere)))

    assert CrashRecords(tmp_path).end_all() == 0
    assert file.exists()

    os.utime(file, (0, 0))
    assert CrashRecords(tmp_path).end_all() == 0
    assert not file.exists()
    assert shell.poll() is None


def record(
    child: process_tree.ProcessId, guardian: process_tree.ProcessId | None, owner: process_tree.ProcessId
) -> Record:
    boot_id, namespace = process_tree.boot_id(), process_tree.pid_namespace()
    return Record(
        turn_id="of another turn", child=child, guardian=guardian, owner=owner, boot_id=boot_id, namespace=namespace
    )
