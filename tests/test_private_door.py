"""The private door of a conversation: whoever may come from an agent is refused, and whoever nobody knows."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import pytest

from bullpen import private_door
from bullpen.agents import guardian, process_tree
from bullpen.errors import DoorClosed

TAKEN = "There is no action 'nothing'. Nothing was done."
REFUSED = "An agent cannot answer what agents ask. Nothing was done."
UNKNOWN = "It cannot be known that this is not an agent's answer. Nothing was done."

COMES = """
import os, socket, sys, time
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
if sys.argv[2:] == ["fork"]:
    parent = os.getpid()
    if os.fork():
        os._exit(0)
    while os.getppid() == parent:
        time.sleep(0.002)
line.sendall(b'{"action": "nothing"}\\n')
print(line.makefile().readline())
"""
STARTS = "import subprocess, sys\nprocess = subprocess.Popen([sys.executable, '-c', {!r}, *sys.argv[1:]])\n{}"


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # If an agent runs these tests, they are not about that one.
    monkeypatch.setattr(process_tree, "TURN_VARIABLE", "BULLPEN_TURN_OF_THIS_TEST")


def told(program: str, *words: str, **variables: str) -> Any:
    """Return what a program hears that comes to the door."""

    async def play() -> Any:
        async with private_door.private_door(cast(Any, None), "token"):
            peer = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", program, str(private_door.door_of("token")), *words),
                env={**os.environ, **variables},
                stdout=subprocess.PIPE,
            )
            heard, _ = await asyncio.wait_for(peer.communicate(), 60)
        return json.loads(heard)["problem"]

    return asyncio.run(play())


def test_a_person_is_heard() -> None:
    assert told(COMES) == TAKEN


def test_who_has_ended_is_not_taken_for_a_person() -> None:
    assert told(COMES, "fork") == UNKNOWN


def test_neither_is_who_has_ended_and_was_not_waited_for() -> None:
    reads = STARTS.format(COMES, "print(process.stdout.read().decode())")
    reads = reads.replace("*sys.argv[1:]]", "*sys.argv[1:]], stdout=subprocess.PIPE")

    assert told(reads, "fork") == UNKNOWN


def test_an_agent_of_any_bullpen_is_refused() -> None:
    assert told(COMES, **{process_tree.TURN_VARIABLE: "turn"}) == REFUSED


def test_an_agent_is_refused_although_its_environment_is_empty() -> None:
    empties = STARTS.format(COMES, "process.wait()").replace("*sys.argv[1:]]", "*sys.argv[1:]], env={}")

    assert told(empties, **{process_tree.TURN_VARIABLE: "turn"}) == REFUSED


def test_who_cannot_be_known_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_door, "caller", lambda _: None)

    assert told(COMES) == UNKNOWN


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has guardians")
def test_what_a_guardian_adopts_comes_from_an_agent(tmp_path: Path) -> None:
    keeper = guardian.Guardian()
    keeper.greet()
    file = tmp_path / "pid"
    orphan = f"env -i setsid sh -c 'echo $$ > {file}; exec sleep 60' & exit"
    with Path(os.devnull).open("r+b") as nothing:
        first = keeper.start(["sh", "-c", orphan], cwd=tmp_path, env=os.environ, stdio=[nothing.fileno()] * 3)
    try:
        ended = process_tree.process_id(first)
        while not (file.exists() and file.read_text()) or (ended and process_tree.is_alive(ended)):
            time.sleep(0.002)
        found = process_tree.process_id(int(file.read_text()))
        assert found is not None
        assert process_tree.is_of_an_agent(found) is True
    finally:
        guardian.let_go(keeper)
        keeper.reap()


def opened(token: str) -> list[str]:
    """Return which sockets are there while a conversation is open."""

    async def play() -> list[str]:
        async with private_door.private_door(cast(Any, None), token):
            return sorted(path.name for path in private_door.door_of(token).parent.glob("[!.]*"))

    return asyncio.run(play())


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such addresses")
def test_a_door_with_a_long_address_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("long" * 30)))
    assert len(opened("mine")) == 1
    before = len(list(Path("/proc/self/fd").iterdir()))

    assert len(opened("mine")) == 1
    with pytest.raises(DoorClosed):
        private_door.decide("mine", private_door.Decided(action="nothing"))

    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("mode", [0o750, 0o710, 0o705, 0o701])
def test_there_is_no_door_in_a_folder_that_others_may_enter(mode: int) -> None:
    folder = private_door.door_of("mine").parent
    folder.mkdir(parents=True)
    folder.chmod(mode)

    assert opened("mine") == []


def test_a_folder_of_doors_is_made_for_nobody_else() -> None:
    assert opened("mine") == [private_door.door_of("mine").name]
    assert private_door.door_of("mine").parent.stat().st_mode & 0o777 == 0o700


def test_a_socket_of_a_killed_process_is_removed_once_in_a_while() -> None:
    left, mine = private_door.door_of("left"), private_door.door_of("mine").name
    assert opened("mine") == [mine]
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(left))

    # Looking for it wakes every process that has a conversation open, so not each that opens one does.
    assert opened("mine") == sorted([left.name, mine])
    os.utime(left.parent / private_door.TIDIED, (0, 0))

    assert opened("mine") == [mine]
