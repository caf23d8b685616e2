"""What bullpen leaves running when it is killed, and who ends it."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from proofs.torture.families import HIDDEN, KINDS, Family
from proofs.torture.with_mistake import NO_GUARDIAN
from tests.agents.descriptors import descriptors, descriptors_left

from bullpen.agents import command_agent, guarded_program, guardian, guardian_program, run_turn, watchman
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.guardian_program import END
from bullpen.agents.process import Child
from bullpen.agents.process_tree import ProcessId, is_alive, process_id
from bullpen.agents.processes.proc_files import ProcFiles
from bullpen.cli import main
from bullpen.context import AssemblerInput
from bullpen.errors import AgentCrashed

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def wait_for(condition: Callable[[], object]) -> None:
    while not condition():
        time.sleep(0.002)


async def said(script: str, cwd: Path, *arguments: str) -> str:
    """Return what a shell says in a turn."""
    spec = command_agent(["sh", "-c", script, *arguments])
    output = spec.assembler().assemble(AssemblerInput(current_message="Go."))
    return (await run_turn(spec, output, emit=lambda _: None, cwd=cwd)).text


def test_a_program_is_looked_for_on_its_own_path(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "its-own-program"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho found\n", encoding="utf-8")
    program.chmod(0o755)
    heard: list[bytes] = []

    async def started() -> None:
        # Then a guardian waits that was started with another one.
        assert await said("echo once", tmp_path) == "once"
        child = Child(
            [program.name],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
            stdin=b"",
            on_stdout=heard.append,
            on_stderr=heard.append,
            crash_records=CrashRecords(tmp_path / "records"),
        )
        await child.wait()
        await child.stop()

    asyncio.run(started())

    assert heard == [b"found\n"]


def test_when_bullpen_is_killed_the_whole_family_ends_although_nobody_opens_anything(tmp_path: Path) -> None:
    with Family(tmp_path / "family", list(KINDS)) as family:
        assert len(family.members) > len(KINDS)
        family.kill_bullpen()

        wait_for(lambda: not family.living())
        wait_for(lambda: family.guardian and not is_alive(family.guardian))


def test_where_there_cannot_be_a_guardian_a_watchman_ends_what_can_be_found(tmp_path: Path) -> None:
    with Family(tmp_path / "family", [kind for kind in KINDS if kind != HIDDEN], fault=NO_GUARDIAN) as family:
        family.kill_bullpen()

        wait_for(lambda: not family.living())


def test_when_its_guardian_is_killed_too_the_next_turn_ends_the_family(tmp_path: Path) -> None:
    with Family(tmp_path / "family", [kind for kind in KINDS if kind != HIDDEN]) as family:
        family.kill_bullpen_and_guardian()
        assert family.grows()

        words = ["run", "--trust", "--resume", "last", str(family.team), "Still there?", "--db", str(family.db)]
        with opened(words, cwd=family.folder, env=family.environment):
            wait_for(lambda: not any(is_alive(process) for process in family.members))


@contextlib.contextmanager
def opened(words: list[str], *, cwd: Path, env: Mapping[str, str]) -> Iterator[None]:
    """Run a command of bullpen that need not end."""
    command = [sys.executable, "-m", "bullpen", *words]
    with subprocess.Popen(command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.kill()


def test_whatever_opens_a_conversation_ends_what_was_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    team, at = str(tmp_path / "team.toml"), ["--db", str(tmp_path / "a.db")]
    Path(team).write_text('[[member]]\nname = "kim"\n[[member]]\nname = "ada"\ncommand = ["echo", "hi"]\n')
    assert main(["run", "--trust", team, "Go.", *at]) == 0
    chat = ["chat", "--plain", "--trust", "--resume", "last", team]
    serve = ["serve", "--trust", "--port", "0", "--no-open", team]
    for words in (chat, serve):
        with left_by_a_dead_process() as left, opened([*words, *at], cwd=tmp_path, env=os.environ):
            while is_alive(left):
                time.sleep(0.002)
    for words in (["undo"], ["sessions", "delete", "last", "--yes"]):
        with left_by_a_dead_process() as left:
            main([*words, *at])
            assert not is_alive(left)


@contextlib.contextmanager
def left_by_a_dead_process() -> Iterator[ProcessId]:
    """Start a program that nobody ends, and say that one who is dead has started it."""
    us, dead = process_id(os.getpid()), subprocess.Popen(["true"])
    dead.wait()
    assert us is not None
    records = CrashRecords()
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as program:
        try:
            records.record(program.pid, "left")
            (file,) = records.folder.glob("*.json")
            file.write_text(file.read_text().replace(str(us.pid), str(dead.pid)).replace(str(us.start_time), "1"))
            left = process_id(program.pid)
            assert left is not None
            yield left
        finally:
            program.kill()


def test_a_turn_fails_if_its_guardian_is_killed_and_nothing_is_left(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    async def kill_it() -> None:
        turn = asyncio.ensure_future(said("trap '' TERM; (setsid sleep 60 &); echo > ready; sleep 60", work))
        while not (work / "ready").exists():
            await asyncio.sleep(0.01)
        (busy,) = [one for one in guardian.guardians if one not in guardian.idle and one.is_there()]
        os.kill(busy.pid, signal.SIGKILL)
        with pytest.raises(AgentCrashed, match="SIGKILL"):
            await turn
        assert working_in(work) == []
        assert await said("echo again", work) == "again"

    asyncio.run(kill_it())


def working_in(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (entry / "cwd").readlink() == folder:
                found.append(entry.name)
    return found


def test_a_turn_ends_if_its_guardian_is_killed_before_it_hears_that(tmp_path: Path) -> None:
    """Linux then says that the connection was reset, since something was sent and never read."""
    complaints: list[dict[str, Any]] = []

    async def stop_it() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        child = Child(
            ["sleep", "60"],
            cwd=tmp_path,
            env=os.environ,
            stdin=b"",
            on_stdout=lambda _: None,
            on_stderr=lambda _: None,
            crash_records=CrashRecords(tmp_path),
        )
        busy = guardian_of(child)
        os.kill(busy.pid, signal.SIGSTOP)
        busy.channel.send(END)
        os.kill(busy.pid, signal.SIGKILL)
        await child.stop()
        assert list(tmp_path.iterdir()) == []

    asyncio.run(stop_it())
    assert working_in(tmp_path) == []
    assert complaints == []


def guardian_of(child: Child) -> guardian.Guardian:
    parent = guardian_program._parent(child.pid)
    return next(one for one in guardian.guardians if one.pid == parent)


# Each in a session of its own and without its environment; the last says that it is there.
CHAIN = """
if [ "$1" -gt 0 ]; then
    setsid sh "$0" $(($1 - 1)) &
    wait
else
    echo deep
    sleep 600
fi
"""


def test_generations_below_each_other_end_with_the_turn(tmp_path: Path) -> None:
    """Nobody waits for one generation after the other: that took 50 ms for each."""
    work = tmp_path / "work"
    work.mkdir()

    async def stop_it() -> list[str]:
        child, is_deep = deep_family(work, 100)
        await is_deep.wait()
        await child.stop()
        return working_in(work)

    assert asyncio.run(stop_it()) == []
    assert list((tmp_path / "records").iterdir()) == []


# Ends such a family as a guardian does, and prints how often it had to look again.
COUNTED_ROUNDS = """
import subprocess, sys, time
from bullpen.agents import guardian_program

assert guardian_program._becomes_parent_of_orphans()
family = subprocess.Popen(["sh", *sys.argv[1:]], stdout=subprocess.PIPE)
family.stdout.readline()
rounds, sleep = 0, time.sleep

def counted(seconds):
    global rounds
    rounds += 1
    sleep(seconds)

time.sleep = counted
assert guardian_program._end_family()
print(rounds)
"""


def test_all_generations_are_killed_at_once_and_not_one_after_the_other(tmp_path: Path) -> None:
    script, generations = tmp_path / "chain", 200
    script.write_text(CHAIN, encoding="utf-8")
    command = [sys.executable, "-c", COUNTED_ROUNDS, str(script), str(generations)]

    rounds = int(subprocess.run(command, check=True, capture_output=True, text=True, timeout=100).stdout)

    # Until the last one is gone: on a busy machine that takes a while, but each pause is longer than the one before.
    assert rounds < generations / 2


def deep_family(work: Path, generations: int) -> tuple[Child, asyncio.Event]:
    is_deep = asyncio.Event()
    script = work.parent / "chain.sh"
    script.write_text(CHAIN)
    command = ["env", "-i", "sh", str(script), str(generations)]
    child = Child(
        command,
        cwd=work,
        env=os.environ,
        stdin=b"",
        on_stdout=lambda _: is_deep.set(),
        on_stderr=lambda _: None,
        crash_records=CrashRecords(work.parent / "records"),
    )
    return child, is_deep


def test_a_family_is_forgotten_only_when_it_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, records = tmp_path / "work", tmp_path / "records"
    work.mkdir()
    monkeypatch.setattr(guarded_program, "GONE_SECONDS", 0.1)

    async def stop_it() -> int:
        child, is_deep = deep_family(work, 3)
        await is_deep.wait()
        busy = guardian_of(child)
        os.kill(busy.pid, signal.SIGSTOP)
        await child.stop()
        assert len(working_in(work)) >= 3
        return busy.pid

    slow = asyncio.run(stop_it())

    assert len(list(records.iterdir())) == 1
    os.kill(slow, signal.SIGCONT)
    wait_for(lambda: working_in(work) == [])


def test_what_descends_from_a_stranger_with_a_reused_pid_is_spared(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], cwd=tmp_path) as child:
        guardian_program._kill_below(parent=1, pid=child.pid)
        # It is our child, and so it would be killed; a grandchild is not.
        assert child.wait() == -signal.SIGKILL
    shell = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(shell, stdout=subprocess.PIPE, start_new_session=True) as stranger:
        assert stranger.stdout is not None
        grandchild = process_id(int(stranger.stdout.readline()))
        assert grandchild is not None
        guardian_program._kill_below(parent=1, pid=grandchild.pid)
        assert is_alive(grandchild)
        guardian_program._kill_below(parent=stranger.pid, pid=grandchild.pid)
        wait_for(lambda: not is_alive(grandchild))


def test_one_guardian_serves_turn_after_turn_and_more_serve_at_once(tmp_path: Path) -> None:
    many = guardian.MOST_IDLE + 2
    parents = "echo $PPID"
    together = f"echo > began-$1; while [ $(ls began-* | wc -l) -lt {many} ]; do sleep 0.01; done; {parents}"

    async def turns() -> tuple[list[str], list[str]]:
        one_by_one = [await said(parents, tmp_path) for _ in range(3)]
        at_once = await asyncio.gather(*[said(together, tmp_path, "sh", str(number)) for number in range(many)])
        return one_by_one, at_once

    one_by_one, at_once = asyncio.run(turns())

    assert len(set(one_by_one)) == 1
    assert len(set(at_once)) == len(at_once)
    assert len(guardian.idle) <= guardian.MOST_IDLE
    assert all(one.is_there() for one in guardian.idle)
    wait_for(lambda: {one.pid for one in guardian.guardians} & children() == {one.pid for one in guardian.idle})


def children() -> set[int]:
    """Return the children of this process, dead ones too."""
    return {*ProcFiles().children(os.getpid())}


def test_an_agent_gets_three_descriptors_and_the_usual_signals(tmp_path: Path) -> None:
    async def both() -> tuple[str, str]:
        return await said("ls /proc/$$/fd; true", tmp_path), await said(
            "grep -E 'Sig(Ign|Blk)' /proc/self/status", tmp_path
        )

    descriptors, signals = asyncio.run(both())

    assert set(descriptors.split()) == {"0", "1", "2"}
    assert [usual_signals(line) for line in signals.splitlines()] == [0, ignored_here()]


def test_an_agent_gets_no_file_that_bullpen_has_inherited(tmp_path: Path) -> None:
    guardian.let_idle_ones_go()
    inherited = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(inherited, True)
    try:
        descriptors = asyncio.run(said("ls /proc/$$/fd; true", tmp_path))
    finally:
        os.close(inherited)

    assert set(descriptors.split()) == {"0", "1", "2"}


def test_a_guardian_keeps_nothing_of_a_turn(tmp_path: Path) -> None:
    """One that could not be started is a turn as well."""
    unusable = tmp_path / "unusable"
    unusable.write_bytes(b"\x7fELF and no more")
    unusable.chmod(0o755)
    asyncio.run(said("echo hi", tmp_path))
    its_guardian = guardian.idle[-1]
    proc = Path(f"/proc/{its_guardian.pid}")
    before = sorted(entry.name for entry in (proc / "fd").iterdir())

    with pytest.raises(OSError, match="Exec format error"):
        its_guardian.start([str(unusable)], cwd=tmp_path, env={}, stdio=(0, 1, 2))
    asyncio.run(said("echo hi", tmp_path))

    assert guardian.idle[-1] is its_guardian
    wait_for(lambda: sorted(entry.name for entry in (proc / "fd").iterdir()) == before)
    assert (proc / "cwd").readlink() == Path("/")


def test_an_agent_may_say_something_when_bullpen_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = tmp_path / "guardian_program.py"
    source = Path(guardian_program.__file__).read_text()
    assert "GRACE_SECONDS = 0.3\n" in source
    patient.write_text(source.replace("GRACE_SECONDS = 0.3\n", "GRACE_SECONDS = 60\n"))
    monkeypatch.setattr(guardian_program, "__file__", str(patient))
    its_guardian = guardian.Guardian()
    its_guardian.greet()
    script = "trap 'echo > bye; exit' TERM; echo > ready; while :; do sleep 0.01; done"
    with Path(os.devnull).open("r+b") as nowhere:
        its_guardian.start(["sh", "-c", script], cwd=tmp_path, env=os.environ, stdio=[nowhere.fileno()] * 3)
    wait_for((tmp_path / "ready").exists)

    # As the kernel does when it is dead.
    guardian.let_go(its_guardian)

    wait_for((tmp_path / "bye").exists)


def usual_signals(line: str) -> int:
    """Return the bits of a line in /proc, without those that the C library keeps for itself."""
    return int(line.split()[1], 16) & 0x7FFFFFFF


def ignored_here() -> int:
    """Return the bits of what whoever started the tests has ignored: nohup, for example."""
    asked = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
    return sum(1 << (number - 1) for number in asked if signal.getsignal(number) is signal.SIG_IGN)


def test_what_the_user_has_ignored_is_ignored_by_agents_too(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from tests.agents.test_guardian import said\n"
        "print(asyncio.run(said('grep SigIgn /proc/self/status', Path(sys.argv[2]))))\n"
    )
    command = ["nohup", sys.executable, "-c", program, str(Path(__file__).parents[2]), str(tmp_path)]

    done = subprocess.run(command, capture_output=True, check=True)

    assert usual_signals(done.stdout.decode()) == ignored_here() | 1 << (signal.SIGHUP - 1)


def test_a_long_command_arrives_whole(tmp_path: Path) -> None:
    long = "ü" * 60_000

    assert asyncio.run(said('printf %s "$1"', tmp_path, "sh", long)) == long


def test_a_command_with_a_zero_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="null byte"):
        asyncio.run(said("echo $1", tmp_path, "sh", "a\0b"))

    assert asyncio.run(said("echo hi", tmp_path)) == "hi"


def test_its_command_line_does_not_name_what_people_kill(tmp_path: Path) -> None:
    asyncio.run(said("echo hi", tmp_path))
    command = Path(f"/proc/{guardian.idle[-1].pid}/cmdline").read_bytes().split(b"\0")

    assert not any(b"bullpen" in word for word in command[1:])
    assert Path(f"/proc/{guardian.idle[-1].pid}/comm").read_text() == "guardian\n"


def test_without_an_interpreter_agents_run_unguarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian, "is_possible", True)
    monkeypatch.setattr(guardian, "idle", [])
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
    monkeypatch.setattr(watchman, "_watched", {})

    assert asyncio.run(said("(setsid sleep 60 &); echo hi", tmp_path)) == "hi"
    assert guardian.idle == []


def test_what_may_pass_is_tried_again_in_the_next_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian, "is_possible", True)
    monkeypatch.setattr(guardian, "idle", [])
    monkeypatch.setattr(watchman, "_watched", {})

    with monkeypatch.context() as short_of_an_interpreter:
        short_of_an_interpreter.setattr(sys, "executable", str(tmp_path / "gone"))
        assert parent_in_a_turn(tmp_path) == os.getpid()
    its_guardian = parent_in_a_turn(tmp_path)

    assert [one.pid for one in guardian.idle] == [its_guardian]
    guardian.let_idle_ones_go()


def parent_in_a_turn(folder: Path) -> int:
    return int(asyncio.run(said("echo $PPID", folder)))


def test_a_moment_without_descriptors_costs_nothing_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guardian, "is_possible", True)
    monkeypatch.setattr(guardian, "idle", [])
    before = descriptors()

    for left in range(5):
        with descriptors_left(left):
            assert guardian.take() is None
        assert descriptors() == before
        started = guardian.take()
        assert started is not None
        guardian.let_go(started)


def test_a_copy_of_the_process_does_not_keep_the_family_alive(tmp_path: Path) -> None:
    program = f"""
import asyncio, os, sys, time
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from tests.agents.test_guardian import said
async def main():
    turn = asyncio.ensure_future(said("trap '' TERM; echo $$ > pid; sleep 60", Path({str(tmp_path)!r})))
    while not Path({str(tmp_path / "pid")!r}).exists():
        await asyncio.sleep(0.01)
    if (copy := os.fork()) == 0:
        time.sleep(300)
    print(copy, flush=True)
    await turn
asyncio.run(main())
"""
    original = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert original.stdout is not None
    copy = process_id(int(original.stdout.readline()))
    agent = process_id(int((tmp_path / "pid").read_text()))
    assert copy is not None
    assert agent is not None

    original.kill()
    original.wait()
    original.stdout.close()

    wait_for(lambda: not is_alive(agent))
    assert is_alive(copy)
    os.kill(copy.pid, signal.SIGKILL)


def test_the_end_of_bullpen_does_not_wait_and_leaves_no_guardian(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from tests.agents.test_guardian import said\n"
        "print(asyncio.run(said('echo $PPID', Path(sys.argv[2]))))\n"
    )
    command = [sys.executable, "-W", "error", "-c", program, str(Path(__file__).parents[2]), str(tmp_path)]

    done = subprocess.run(command, capture_output=True, check=True)

    assert done.stderr == b""
    wait_for(lambda: (it := process_id(int(done.stdout))) is None or not is_alive(it))


def test_where_orphans_cannot_be_adopted_there_is_no_guardian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = tmp_path / "guardian_program.py"
    right = "libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0"
    source = Path(guardian_program.__file__).read_text()
    assert right in source
    refusing.write_text(source.replace(right, "False"))
    before = children()
    monkeypatch.setattr(guardian, "is_possible", True)
    monkeypatch.setattr(guardian, "idle", [])
    monkeypatch.setattr(guardian_program, "__file__", str(refusing))
    monkeypatch.setattr(watchman, "watch", lambda _: None)

    assert asyncio.run(said("echo hi", tmp_path)) == "hi"
    assert not guardian.is_possible
    wait_for(lambda: children() <= before)
