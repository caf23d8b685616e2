"""Who calls at a local socket or over TCP, and what the doors do where the system does not say."""

import asyncio
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from bullpen import callers, private_door
from bullpen.agents import process_tree
from bullpen.agents.processes import connections
from bullpen.agents.processes.connections import End
from bullpen.callers import caller
from bullpen.tools.calls import Answer, Call
from bullpen.tools.door import open_door


class MacLine:
    """A socket of macOS."""

    def __init__(self, pid: int, user: int, version: int = 0) -> None:
        self._pid, self._credentials = pid, struct.pack("2Ih2x16I", version, user, 1, *range(16))

    def getsockopt(self, level: int, option: int, size: int = 0) -> int | bytes:
        assert level == callers.SOL_LOCAL
        if option == callers.LOCAL_PEERCRED:
            return self._credentials[:size]
        assert (option, size) == (callers.LOCAL_PEERPID, 0)
        return self._pid


@pytest.fixture
def without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be on a system that has no SO_PEERCRED."""
    monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)


def test_the_process_at_the_other_end_of_a_pair_is_this_one() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert caller(one) == os.getpid()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (MacLine(7, os.getuid()), 7),
        (MacLine(7, os.getuid() + 1), None),
        (MacLine(0, os.getuid()), None),
        (MacLine(7, os.getuid(), version=1), None),
    ],
)
@pytest.mark.usefixtures("without_credentials")
def test_on_macos_the_process_and_its_user_are_asked_for(
    line: MacLine, found: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    assert caller(cast(Any, line)) == found


@pytest.mark.usefixtures("without_credentials")
def test_where_the_system_does_not_tell_nobody_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "freebsd")
    one, other = socket.socketpair()
    with one, other:
        assert caller(one) is None


def test_a_socket_that_fails_tells_of_nobody() -> None:
    one, other = socket.socketpair()
    one.close()
    with other:
        assert caller(one) is None


@pytest.mark.usefixtures("without_credentials")
async def test_then_nobody_uses_the_tools_of_a_turn() -> None:
    async def answering(call: Call) -> Answer:
        return Answer(id=call.id, text="yes")

    async with open_door(answering) as command:
        reader, writer = await asyncio.open_unix_connection(command[-1])
        writer.write(b'{"id":1,"tool":"team","arguments":{}}\n')
        with suppress(OSError):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.usefixtures("without_credentials")
async def test_and_nobody_decides_in_a_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with private_door.private_door(cast(Any, None), "token"):
        reader, writer = await asyncio.open_unix_connection(str(private_door.door_of("token")))
        writer.write(b'{"action": "nothing"}\n')
        told = json.loads(await reader.readline())
        writer.close()

    assert told == {"problem": "It cannot be known that this is not an agent's answer. Nothing was done."}


CONNECTS = """
import array, ctypes, mmap, os, socket, sys, threading
port, way = int(sys.argv[1]), sys.argv[2]
def connected():
    line = socket.create_connection(("127.0.0.1", port))
    told.append(line.getsockname()[1])
    return line
told, kept = [], []
system = ctypes.CDLL(None)
if way == "hidden":
    system.prctl(4, 0, 0, 0, 0)
    kept.append(connected())
elif way == "files of its own":
    def alone():
        assert system.unshare(0x400) == 0
        kept.append(connected())
        done.set()
        threading.Event().wait()
    done = threading.Event()
    threading.Thread(target=alone, daemon=True).start()
    done.wait()
else:
    line = connected()
    if way == "on its way":
        kept = socket.socketpair()
        kept[0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [line.fileno()]))])
    if way == "mapped":
        size, start = ctypes.c_size_t(mmap.PAGESIZE), ctypes.c_long(0)
        assert system.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, line.fileno(), start) != -1
    if way in ("on its way", "mapped", "closed"):
        line.close()
print(told[0], flush=True)
sys.stdin.read()
"""
only_linux = pytest.mark.skipif(sys.platform != "linux", reason="the system does not say whose a connection is")


@contextmanager
def connecting(way: str, **variables: str) -> Iterator[tuple[int, int, int]]:
    """Yield the process of a program that has connected to here, its port and ours."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        program = [sys.executable, "-c", CONNECTS, str(port), way]
        environment = {**os.environ, **variables}
        with subprocess.Popen(program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            line, _ = listener.accept()
            assert process.stdin
            assert process.stdout
            with line, process.stdin:
                yield process.pid, int(process.stdout.readline()), port


AGENT = {process_tree.TURN_VARIABLE: "turn"}


@only_linux
def test_an_agents_connection_is_known() -> None:
    with connecting("plainly", **AGENT) as (_, client, server):
        assert callers.is_agents_connection(client, server) is True


@only_linux
@pytest.mark.parametrize("way", ["hidden", "files of its own", "on its way", "mapped", "closed"])
def test_an_agents_connection_is_never_taken_for_a_persons(way: str) -> None:
    with connecting(way, **AGENT) as (_, client, server):
        assert callers.is_agents_connection(client, server) is not False


@only_linux
@pytest.mark.parametrize("way", ["on its way", "mapped"])
def test_nor_if_others_show_nothing_either(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connecting(way, **AGENT) as (agent, client, server):
        monkeypatch.setattr(callers, "is_out_of_sight", lambda pid: pid != agent)
        assert callers.is_agents_connection(client, server) is None


@only_linux
def test_a_persons_connection_is_known() -> None:
    with connecting("plainly") as (_, client, server):
        assert callers.is_agents_connection(client, server) is False


@pytest.fixture
def no_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be on a machine where no agent runs."""
    monkeypatch.setattr(process_tree, "processes_of_agents", set)


@only_linux
@pytest.mark.usefixtures("no_agents")
def test_sshd_which_shows_nothing_is_a_persons(monkeypatch: pytest.MonkeyPatch) -> None:
    with connecting("on its way") as (sshd, client, server):
        monkeypatch.setattr(callers, "is_out_of_sight", lambda pid: pid == sshd)
        assert callers.is_agents_connection(client, server) is False


@only_linux
def test_while_an_agent_runs_it_may_be_that_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    with connecting("on its way") as (sshd, client, server):
        monkeypatch.setattr(callers, "is_out_of_sight", lambda pid: pid == sshd)
        monkeypatch.setattr(process_tree, "processes_of_agents", lambda: {os.getpid()})
        assert callers.is_agents_connection(client, server) is None


@only_linux
def test_an_agent_that_ends_meanwhile_is_not_taken_for_sshd(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [End(2**63, os.getuid(), True)]
    monkeypatch.setattr(callers, "ends_between", lambda *_: [*ends])
    monkeypatch.setattr(callers, "is_out_of_sight", lambda _: True)

    def ending() -> set[int]:
        """End when agents are looked for; its connection ends with it."""
        ends.clear()
        return set()

    monkeypatch.setattr(process_tree, "processes_of_agents", ending)

    assert callers.is_agents_connection(1, 2) is None


@only_linux
@pytest.mark.usefixtures("no_agents")
def test_what_nobody_can_have_is_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    with connecting("on its way") as (_, client, server):
        monkeypatch.setattr(callers, "is_out_of_sight", lambda _: False)
        assert callers.is_agents_connection(client, server) is None


@only_linux
@pytest.mark.parametrize(
    ("lent", "found"),
    [("", False), ("kim:{}:10\n", None), ("# none\nkim:{}\nkim:one:ten\n", False)],
    ids=["another's", "lent", "unreadable"],
)
def test_a_socket_of_a_user_that_an_agent_may_become_may_be_the_agents(
    lent: str, found: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = os.getuid() + 10_000_000
    (tmp_path / "subuid").write_text(lent.format(other - 9))
    monkeypatch.setattr(connections, "SUBORDINATE", tmp_path / "subuid")
    monkeypatch.setattr(callers, "ends_between", lambda *_: [End(2**63, other, True)])
    monkeypatch.setattr(process_tree, "processes_of_agents", lambda: {os.getpid()})

    assert callers.is_agents_connection(1, 2) is found


@only_linux
@pytest.mark.parametrize(("lent", "found"), [("", False), ("kim:{}:10\n", None)])
def test_nor_is_sshd_heard_beside_an_agent_that_has_become_such_a_user(
    lent: str, found: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = os.getuid() + 10_000_000
    (tmp_path / "subuid").write_text(lent.format(other - 9))
    monkeypatch.setattr(connections, "SUBORDINATE", tmp_path / "subuid")
    monkeypatch.setattr(callers, "ends_between", lambda *_: [End(2**63, os.getuid(), True)])
    monkeypatch.setattr(process_tree, "processes_of_agents", lambda: {0})
    monkeypatch.setattr(callers, "users_of", lambda pid: {os.getuid() if pid else other})
    monkeypatch.setattr(callers, "is_out_of_sight", lambda _: True)

    assert callers.is_agents_connection(1, 2) is found


@only_linux
def test_another_users_proxy_shows_nothing_and_is_heard_while_an_agent_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "processes_of_agents", lambda: {os.getpid()})
    monkeypatch.setattr(callers, "ends_between", lambda *_: [End(2**63, os.getuid() + 1, True)])

    assert callers.is_agents_connection(1, 2) is False


@only_linux
@pytest.mark.parametrize(("is_connected", "found"), [(True, False), (False, None)])
def test_who_is_outside_of_this_system_is_heard_while_connected(
    is_connected: bool, found: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = [End(1, os.getuid(), is_connected)]
    monkeypatch.setattr(callers, "ends_between", lambda own, _: ours if own == 2 else [])

    assert callers.is_agents_connection(1, 2) is found
