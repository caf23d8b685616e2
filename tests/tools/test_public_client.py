"""The client of the public SDK speaks with our server, and whatever it or others send that is wrong is answered."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent
from tests.conversation.test_turn_tools import ANN, CONVERSATION, Stage, history, message

from bullpen.store.sqlite import SqliteStore
from bullpen.tools.calls import MOST_CALLS, TOO_MANY_CALLS
from bullpen.tools.catalog import TOOLS
from bullpen.tools.door import open_door
from bullpen.tools.mcp import ENDED

CALLS = MOST_CALLS + 500


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """The tools of a turn of ann's in a conversation of 30 messages; beside it there is another one."""
    with SqliteStore(tmp_path / "c.db") as store:
        store.create(CONVERSATION, team="t", team_file="", started_at=0)
        store.create("other-oak-000002", team="t", team_file="", started_at=0)
        store.extend("other-oak-000002", [message(1, "of the other one")])
        said = [message(number, f"word-{number} 密😀") for number in range(1, 31)]
        yield Stage(ANN, history(store, said, ANN))


@asynccontextmanager
async def client(command: tuple[str, ...]) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(command=command[0], args=list(command[1:]))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


async def called(session: ClientSession, tool: str, **arguments: Any) -> tuple[str, bool]:
    result = await session.call_tool(tool, arguments)
    assert isinstance(result, CallToolResult)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text, bool(result.is_error)


async def test_it_lists_and_calls_every_tool(stage: Stage) -> None:
    async with open_door(stage.tools.answer) as command, client(command) as session:
        listed = (await session.list_tools()).tools
        results = [
            await called(session, "read_history", first=3, last=4),
            await called(session, "search", query="word-7"),
            await called(session, "read_message", number=30),
            await called(session, "read_diff", turn="9"),
            await called(session, "team"),
            await called(session, "hand_over", to=["bob"], note="Look."),
            await called(session, "ask_person", question="Which?", choices=["plum"]),
            await called(session, "note", text="Mind the gap."),
        ]

    assert [tool.name for tool in listed] == [tool["name"] for tool in TOOLS]
    assert len(results) == len(TOOLS)
    assert [is_error for _, is_error in results] == [False] * len(TOOLS)
    assert "word-3 密😀" in results[0][0]
    assert stage.notes == ["Mind the gap."]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_history", {"first": "three"}),
        ("read_history", {"first": -1}),
        ("read_history", {"conversation": "other-oak-000002"}),
        ("read_message", {"number": 1, "conversation_id": "other-oak-000002"}),
        ("read_message", {}),
        ("search", {"query": None}),
        ("search", {"query": "x" * 100_000}),
        ("hand_over", {"to": "bob"}),
        ("hand_over", {"to": ["somebody-else"]}),
        ("ask_person", {"question": ""}),
        ("note", {"text": "x" * 100_000}),
    ],
)
async def test_wrong_arguments_are_an_error_of_the_caller(stage: Stage, tool: str, arguments: dict[str, Any]) -> None:
    async with open_door(stage.tools.answer) as command, client(command) as session:
        text, is_error = await called(session, tool, **arguments)
        assert is_error
        assert "of the other one" not in text
        assert not (await called(session, "team"))[1]
    assert stage.tools.handed_over == []


async def test_a_tool_that_there_is_not_is_an_error(stage: Stage) -> None:
    async with open_door(stage.tools.answer) as command, client(command) as session:
        with pytest.raises(MCPError, match="There is no tool"):
            await session.call_tool("delete_everything", {})
        assert not (await called(session, "team"))[1]


async def test_after_the_turn_has_ended_every_call_says_so(stage: Stage) -> None:
    async with open_door(stage.tools.answer) as command:
        pass
    async with client(command) as session:
        assert await called(session, "hand_over", to=["bob"]) == (ENDED, True)
    assert stage.tools.handed_over == []


async def test_of_many_calls_those_that_are_too_many_are_refused(stage: Stage) -> None:
    def lines(first: int) -> bytes:
        params = {"name": "read_message", "arguments": {"number": 1}}
        asked = ({"jsonrpc": "2.0", "id": first + one, "method": "tools/call", "params": params} for one in range(10))
        return b"".join(json.dumps(one).encode() + b"\n" for one in asked)

    texts: list[str] = []
    async with open_door(stage.tools.answer) as command:
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        for first in range(0, CALLS, 10):
            process.stdin.write(lines(first))
            replies = [json.loads(await process.stdout.readline()) for _ in range(10)]
            texts += [reply["result"]["content"][0]["text"] for reply in replies]
        process.stdin.close()
        await process.wait()

    assert sum(text.startswith("#1 kim") for text in texts) == MOST_CALLS
    assert texts.count(TOO_MANY_CALLS) == CALLS - MOST_CALLS
    assert len(stage.tools.uses) == MOST_CALLS


async def test_a_client_that_leaves_in_the_middle_of_a_call_does_no_harm(stage: Stage) -> None:
    is_asked, is_over = asyncio.Event(), asyncio.Event()
    answer = stage.tools.answer

    async def slow(call: Any) -> Any:
        if call.tool != "ask_person":
            return await answer(call)
        is_asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_over.set()

    async with open_door(slow) as command:
        async with client(command) as session:
            asking = asyncio.create_task(session.call_tool("ask_person", {"question": "Which?"}))
            await is_asked.wait()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        await is_over.wait()
        async with client(command) as session:
            assert not (await called(session, "team"))[1]


def test_the_bounds_are_those_of_the_docs() -> None:
    docs = (Path(__file__).parents[2] / "docs" / "tools.md").read_text(encoding="utf-8")

    assert f"{MOST_CALLS:,} calls for a turn" in docs
