"""`bullpen mcp`: what a CLI may say to it, and how calls reach the turn."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from bullpen.agents import process_tree
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.process import Child
from bullpen.agents.runner import prepare_for_agents
from bullpen.agents.tool_server import TOOL_NAMES
from bullpen.cli import main
from bullpen.tools import calls, door
from bullpen.tools.calls import Answer, Call, ToolCall, WrongCall, read_call
from bullpen.tools.catalog import TOOLS
from bullpen.tools.door import open_door
from bullpen.tools.mcp import ENDED, LONGEST_LINE, VERSIONS, Lines, McpServer


def heard(*messages: object) -> tuple[McpServer, list[Any]]:
    """Return a server that was told all of this, and what it replied."""
    server = McpServer()
    for message in messages:
        server.hear(message if isinstance(message, bytes) else json.dumps(message).encode())
    return server, server.replies


def request(method: str, number: int = 1, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


@pytest.mark.parametrize(
    ("wanted", "given"), [(VERSIONS[1], VERSIONS[1]), ("2099-01-01", VERSIONS[0]), (7, VERSIONS[0])]
)
def test_a_client_gets_the_version_that_it_wants_or_ours(wanted: object, given: str) -> None:
    _, (reply,) = heard(request("initialize", protocolVersion=wanted))

    assert reply["result"]["protocolVersion"] == given
    assert reply["result"]["serverInfo"]["name"] == "bullpen"


def test_it_lists_the_tools_and_answers_a_ping() -> None:
    _, (listed, pong) = heard(request("tools/list"), {"jsonrpc": "2.0", "id": "a", "method": "ping"})

    assert [tool["name"] for tool in listed["result"]["tools"]] == [tool["name"] for tool in TOOLS]
    assert pong == {"jsonrpc": "2.0", "id": "a", "result": {}}


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b"7", -32600),
        ({"id": 1}, -32600),
        (request("resources/list"), -32601),
        (request("tools/call"), -32602),
        (request("tools/call", name="rm"), -32602),
        (request("tools/call", name="search", arguments=[1]), -32602),
        (request("tools/call", name="search", arguments={"query": "x" * 2_000_000}), -32602),
    ],
)
def test_what_it_does_not_understand_is_said_and_it_goes_on(message: object, code: int) -> None:
    server, (reply,) = heard(message)

    assert reply["error"]["code"] == code
    server.hear(json.dumps(request("ping")).encode())
    last: Any = server.replies[-1]
    assert last["result"] == {}


@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("number", [5, "a"])
@pytest.mark.parametrize("size", [LONGEST_LINE + 100_000, 2 * LONGEST_LINE + 100_000])
def test_a_call_that_is_far_too_long_is_refused_under_its_id(number: object, size: int, is_last: bool) -> None:
    call = {"method": "tools/call", "params": {"name": "search", "arguments": {"query": 'x"id":7,' + "x" * size}}}
    line = json.dumps({**call, "id": number} if is_last else {"id": number, **call}).encode() + b"\n"
    lines = Lines()
    (kept,) = [one for start in range(0, len(line), 65536) for one in lines.feed(line[start : start + 65536])]

    server, (reply,) = heard(kept)

    assert (reply["id"], reply["error"]["code"], server.calls) == (number, -32700, [])


def test_notifications_and_answers_are_not_replied_to() -> None:
    server, replies = heard({"method": "notifications/initialized"}, {"id": 1, "result": {}}, {"id": 1, "error": {}})

    assert (replies, server.calls) == ([], [])


def test_a_call_is_answered_under_the_clients_id_whatever_comes_first() -> None:
    server, replies = heard(
        [
            request("tools/call", 5, name="team"),
            {**request("tools/call", name="search", arguments={"query": "x"}), "id": "b"},
        ]
    )

    assert server.calls == [
        {"id": 1, "tool": "team", "arguments": {}},
        {"id": 2, "tool": "search", "arguments": {"query": "x"}},
    ]
    server.answered(2, "found", is_error=False)
    server.answered(2, "again", is_error=False)
    server.answered(1, "wrong", is_error=True)
    assert [(one["id"], one["result"]["content"][0]["text"], one["result"]["isError"]) for one in replies] == [
        ("b", "found", False),
        (5, "wrong", True),
    ]


def test_a_call_that_is_taken_back_is_not_answered() -> None:
    server, replies = heard(
        request("tools/call", 5, name="team"), {"method": "notifications/cancelled", "params": {"requestId": 5}}
    )
    server.answered(1, "late", is_error=False)

    assert (server.calls[-1], replies) == ({"id": 1}, [])


def test_after_the_end_of_the_turn_every_call_is_told_so() -> None:
    server, replies = heard(request("tools/call", 5, name="team"))
    server.disconnected()
    server.hear(json.dumps(request("tools/call", 6, name="team")).encode())

    assert [(one["id"], one["result"]["content"][0]["text"], one["result"]["isError"]) for one in replies] == [
        (5, ENDED, True),
        (6, ENDED, True),
    ]


@pytest.mark.parametrize("bad", [b'"\\ud83d"', b"NaN", b"-Infinity"])
async def test_what_is_not_text_or_a_number_does_not_close_the_door(bad: bytes) -> None:
    asked: list[Call] = []

    async def answering(call: Call) -> Answer:
        asked.append(call)
        return Answer(id=call.id, text="yes")

    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"query":%s}}}\n'
    async with open_door(answering) as command:
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        for given in (bad, b'"x"'):
            process.stdin.write(call % given)
            assert json.loads(await process.stdout.readline())["result"]["isError"] is False
        process.stdin.close()
        await process.wait()

    assert [one.arguments["query"] for one in asked][1] == "x"


def test_what_is_listed_is_what_is_read() -> None:
    """The list is written by hand, since its process does without our types."""
    by_name = {kind.__struct_config__.tag: kind for kind in get_args(ToolCall)}

    for tool in TOOLS:
        schema: Any = tool["inputSchema"]
        fields = msgspec.structs.fields(by_name.pop(str(tool["name"])))
        assert list(schema["properties"]) == [field.name for field in fields]
        assert schema["required"] == [field.name for field in fields if field.required]
    assert by_name == {}
    assert tuple(tool["name"] for tool in TOOLS) == TOOL_NAMES


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("rm", {}),
        ("search", {}),
        ("search", {"query": 7}),
        ("search", {"query": "x", "conversation": "other"}),
        ("search", {"query": "x", "type": "note"}),
        ("read_history", {"first": 0}),
        ("read_history", {"first": 10**30}),
        ("hand_over", {"to": []}),
        ("hand_over", {"to": "max"}),
    ],
)
def test_a_call_with_wrong_arguments_says_what_is_wrong(tool: str, arguments: dict[str, Any]) -> None:
    if "type" in arguments:
        assert isinstance(read_call(tool, arguments), calls.Search)
        return
    with pytest.raises(WrongCall, match=tool):
        read_call(tool, arguments)


async def talk(command: Sequence[str], *messages: object) -> list[Any]:
    """Return what a server replies that is started as a CLI would do it."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.sep, env={"PATH": os.defpath}
    )
    out, _ = await process.communicate(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    return [json.loads(line) for line in out.splitlines()]


async def test_calls_reach_the_turn_and_answers_come_back() -> None:
    asked: list[Call] = []

    async def answering(call: Call) -> Answer:
        asked.append(call)
        return Answer(id=call.id, text=f"你好 {call.arguments['query']} " + "x" * 200_000)

    async with open_door(answering) as command:
        assert stat.S_IMODE(Path(command[-1]).parent.stat().st_mode) == 0o700
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=2**22
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(
            json.dumps(request("tools/call", 9, name="search", arguments={"query": "😀"})).encode() + b"\n"
        )
        reply = json.loads(await process.stdout.readline())
        process.stdin.close()
        assert await process.wait() == 0

    assert (reply["id"], reply["result"]["isError"]) == (9, False)
    assert reply["result"]["content"][0]["text"].startswith("你好 😀 x")
    assert [call.tool for call in asked] == ["search"]
    assert not Path(command[-1]).parent.exists()


async def test_a_call_that_is_open_when_the_turn_ends_is_answered() -> None:
    async def never(_: Call) -> Answer:
        await asyncio.Event().wait()
        raise AssertionError

    async with open_door(never) as command:
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request("tools/call", 9, name="team")).encode() + b"\n")
        process.stdin.write(json.dumps(request("ping", 10)).encode() + b"\n")
        assert json.loads(await process.stdout.readline())["id"] == 10
    reply = json.loads(await process.stdout.readline())
    process.stdin.close()
    await process.wait()

    assert reply["result"] == {"content": [{"type": "text", "text": ENDED}], "isError": True}


async def test_no_call_goes_on_when_its_turn_has_ended() -> None:
    begun, ended = [], []

    async def answering(call: Call) -> Answer:
        begun.append(call.id)
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(100 * call.id):
                await asyncio.sleep(0)
            ended.append(call.id)
        raise AssertionError

    async with open_door(answering) as command:
        _, writer = await asyncio.open_unix_connection(command[-1])
        for number in (0, 1):
            writer.write(b'{"id":%d,"tool":"team","arguments":{}}\n' % number)
        while len(begun) < 2:
            await asyncio.sleep(0.005)
    assert ended == [0, 1]
    writer.close()


async def test_hundreds_of_calls_at_once_are_all_answered() -> None:
    async def answering(call: Call) -> Answer:
        await asyncio.sleep(0)
        return Answer(id=call.id, text="yes")

    async with open_door(answering) as command:
        messages = [request("tools/call", number, name="team") for number in range(500)]
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None

        async def read() -> list[Any]:
            assert process.stdout is not None
            return [json.loads(await process.stdout.readline()) for _ in messages]

        reading = asyncio.create_task(read())
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            await process.stdin.drain()
        replies = await reading
        process.stdin.close()
        await process.wait()

    assert sorted(reply["id"] for reply in replies) == list(range(500))
    assert {reply["result"]["content"][0]["text"] for reply in replies} <= {"yes", door.TOO_MANY}


async def test_a_server_without_a_turn_says_so() -> None:
    replies = await talk([sys.executable, "-P", door.SERVER, "/nonexistent"], request("tools/call", 1, name="team"))

    assert [reply["result"]["content"][0]["text"] for reply in replies] == [ENDED]


async def test_what_comes_through_the_socket_and_is_not_a_call_ends_that_connection_only() -> None:
    async def answering(call: Call) -> Answer:
        return Answer(id=call.id, text="yes")

    async with open_door(answering) as command:
        for bad in (b"{\n", b"[]\n", b'{"id": "x"}\n', b"x" * 5_000_000 + b"\n"):
            reader, writer = await asyncio.open_unix_connection(command[-1])
            writer.write(bad)
            with suppress(OSError):
                assert await reader.read() == b""
            writer.close()
        reader, writer = await asyncio.open_unix_connection(command[-1])
        writer.write(b'{"id":1,"tool":"team","arguments":{}}\n')
        assert json.loads(await reader.readline()) == {"id": 1, "text": "yes", "is_error": False}
        writer.close()


async def test_who_does_not_read_its_answers_is_not_heard_any_more() -> None:
    async def answering(call: Call) -> Answer:
        await asyncio.sleep(3600)
        raise AssertionError(call)

    # One that is open already is refused at once.
    call = b'{"id":1,"tool":"team","arguments":{"x":"%s"}}\n'
    given = call % b"" * 10_000 + call % (b"x" * 100_000) * 300
    async with open_door(answering) as command:
        with socket.socket(socket.AF_UNIX) as line:
            line.setblocking(False)
            line.connect(command[-1])
            sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(line, given))
            await asyncio.wait([sending], timeout=3)
            assert not sending.done()
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def test_only_some_processes_use_the_tools_of_a_turn_at_once() -> None:
    async def answering(call: Call) -> Answer:
        return Answer(id=call.id, text="yes")

    async def answer() -> tuple[bytes, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_unix_connection(command[-1])
        writer.write(b'{"id":1,"tool":"team","arguments":{}}\n')
        with suppress(OSError):
            return await reader.readline(), writer
        return b"", writer

    async with open_door(answering) as command:
        visits = [await answer() for _ in range(door.MOST_VISITORS + 1)]
        assert [bool(line) for line, _ in visits] == [True] * door.MOST_VISITORS + [False]
        for _, writer in visits:
            writer.close()
        line = b""
        while not line:  # until those who have left are gone
            line, writer = await answer()
            writer.close()


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the system does not say who connects")
async def test_processes_of_other_users_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answering(call: Call) -> Answer:
        return Answer(id=call.id, text="yes")

    monkeypatch.setattr(os, "getuid", lambda: -1)
    async with open_door(answering) as command:
        reader, writer = await asyncio.open_unix_connection(command[-1])
        writer.write(b'{"id":1,"tool":"team","arguments":{}}\n')
        with suppress(OSError):
            assert await reader.read() == b""
        writer.close()


CALLS = """
import os, socket, sys
if "orphan" in sys.argv and "bare" not in sys.argv and (os.fork() or os.setsid() or os.fork()):
    os._exit(0)
if "bare" not in sys.argv:
    # In a process of its own, as a CLI starts its server, and without the environment of the CLI.
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:], "bare"], {"BULLPEN_TURN": "spoofed"})
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
try:
    line.sendall(b'{"id":1,"tool":"team","arguments":{}}\\n')
    said = line.recv(1000)
except OSError:
    said = b""
print("answered" if said else "refused", flush=True)
"""
UNTIL_SAID = '"$@" > said; while [ ! -s said ]; do sleep 0.05; done; cat said'


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="the system does not say who connects")
@pytest.mark.parametrize("how", ["child", "orphan"])
@pytest.mark.parametrize("has_tools", [True, False])
async def test_agents_of_other_turns_are_refused(tmp_path: Path, how: str, has_tools: bool) -> None:
    async def answering(call: Call) -> Answer:
        return Answer(id=call.id, text="yes")

    await prepare_for_agents()
    async with open_door(answering, process_tree.may_use_tools) as command:
        said = bytearray()
        child = Child(
            ["/bin/sh", "-c", UNTIL_SAID, "sh", sys.executable, "-c", CALLS, command[-1], how],
            cwd=tmp_path,
            env={**os.environ, **({process_tree.TOOLS_VARIABLE: command[-1]} if has_tools else {})},
            stdin=b"",
            on_stdout=said.extend,
            on_stderr=said.extend,
            crash_records=CrashRecords(tmp_path),
        )
        try:
            async with asyncio.timeout(30):
                await child.wait()
        finally:
            await child.stop()

    assert said.decode() == ("answered\n" if has_tools else "refused\n")
    assert not process_tree.tools_of


async def test_where_the_path_of_a_socket_would_be_too_long_there_are_no_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))

    async def answering(call: Call) -> Answer:
        raise AssertionError(call)

    async with open_door(answering) as command:
        assert command == ()


def test_the_command_is_of_no_use_to_people_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["mcp", "--help"])

    assert "An agent's CLI starts this for one turn" in " ".join(capsys.readouterr().out.split())
