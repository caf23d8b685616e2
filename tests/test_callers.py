"""Who calls at a local socket, and what both doors do where the system does not say."""

import asyncio
import json
import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest

from bullpen import callers, private_door
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
