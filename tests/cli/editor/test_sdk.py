"""The public Python client of the protocol talks with a team: everything that it hears is what its schema describes."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.editor.client import Editor
from tests.cli.editor.sdk import Watching, acp, play, schema

Write = Callable[..., Path]
EDIT = {"file_path": "a.py", "old_string": "x = 1\n", "new_string": "x = 2\n"}


def test_the_sdk_follows_a_whole_conversation(playing: Write, tmp_path: Path, environment: dict[str, str]) -> None:
    command = (
        f'["{sys.executable}", "-m", "bullpen.testing.agent", "--as", "text", "--script", \'[{{"say": "Good."}}]\']'
    )
    playing(
        {"think": "Hm."},
        {"todo": [{"text": "build", "completed": False}]},
        {"tool": {"name": "Read", "input": {"file_path": "a.py"}, "output": "x = 1"}},
        {"ask": "touch a"},
        {"say": "Done. [NEXT: sarah]"},
        {"usage": {"input": 100, "output": 20, "cached": 3}, "cost": 0.01},
        more=f'[[member]]\nname = "sarah"\ncommand = {command}\n',
    )

    async def story(connection: Any, client: Watching) -> None:
        begun = await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        session = begun.session_id
        assert [mode.id for mode in begun.modes.available_modes] == ["default", "@max", "@sarah", "@all"]
        await connection.set_session_mode(session_id=session, mode_id="@max")
        answer = await connection.prompt(session_id=session, prompt=[acp.text_block("Go.")])
        assert answer.stop_reason == "end_turn"
        assert answer.usage.output_tokens == 20
        [listed] = (await connection.list_sessions(cwd=str(tmp_path))).sessions
        assert (listed.session_id, listed.title) == (session, "Go.")
        said = client.written
        client.updates.clear()
        await connection.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert [update.content.text.split("\n")[0] for update in client.of("user_message_chunk")] == ["Go."]
        assert client.written.endswith("**sarah:**\n\nGood.")
        assert said.endswith("**sarah:**\n\nGood.")
        [commands] = client.of("available_commands_update") or await _soon(client, "available_commands_update")
        assert "retry" in [command.name for command in commands.available_commands]
        await connection.close_session(session_id=session)

    client = play(tmp_path, environment, story)

    [(call, options)] = client.questions
    assert call.title == "max: touch a"
    assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]


async def _soon(client: Watching, kind: str) -> list[Any]:
    while not client.of(kind):
        await asyncio.sleep(0.05)
    return client.of(kind)


def test_the_sdk_sees_thoughts_plans_calls_with_diffs_and_answers(
    playing: Write, tmp_path: Path, environment: dict[str, str]
) -> None:
    playing(
        {"think": "Hm."},
        {"todo": [{"text": "build", "completed": False}]},
        {"tool": {"name": "Edit", "input": EDIT, "output": "ok"}},
        {"ask": "touch a"},
        {"say": "Done."},
    )

    async def story(connection: Any, client: Watching) -> None:
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        await connection.prompt(session_id=session, prompt=[acp.text_block("Go.")])

    client = play(tmp_path, environment, story, answers="No, and say why")

    assert [update.content.text for update in client.of("agent_thought_chunk")] == ["Hm."]
    assert client.of("plan")[0].entries[0].content == "max: build"
    edited = client.of("tool_call")[0]
    [diff] = edited.content
    assert (diff.type, diff.old_text, diff.new_text) == ("diff", "x = 1\n", "x = 2\n")
    [(call, _)] = client.questions
    [answered] = [update for update in client.of("tool_call_update") if update.tool_call_id == call.tool_call_id]
    assert answered.status == "failed"


def test_the_sdk_cancels_while_it_is_asked(playing: Write, tmp_path: Path, environment: dict[str, str]) -> None:
    playing({"ask": "touch a"})

    async def story(connection: Any, client: Watching) -> None:
        session = (await connection.new_session(cwd=str(tmp_path), mcp_servers=[])).session_id
        client.may_answer.clear()
        prompting = asyncio.ensure_future(connection.prompt(session_id=session, prompt=[acp.text_block("Go.")]))
        await client.is_asked.wait()
        await connection.cancel(session_id=session)
        client.may_answer.set()
        assert (await prompting).stop_reason == "cancelled"

    play(tmp_path, environment, story, answers="cancel")


def test_all_that_is_sent_is_in_the_schema_and_nothing_else_is(
    editor: Callable[..., Editor], playing: Write, tmp_path: Path
) -> None:
    playing(
        {"think": "Hm."},
        {"todo": [{"text": "build", "completed": False}]},
        {"tool": {"name": "Edit", "input": EDIT, "output": "ok"}},
        {"ask": "touch a"},
        {"say": "Done. [ASK: yes | no]"},
    )
    one = editor("--trust")
    session = one.opened(tmp_path)
    one.ask("session/set_mode", sessionId=session, modeId="@max")
    number = one.begin_prompt(session, "Go.")
    one.choose(one.question(), "Yes, for exactly this from now on")
    one.answer_to(number)
    one.prompt(session, "/who")
    one.ask("session/list")
    one.ask("session/load", sessionId=session, cwd=str(tmp_path))

    results = ["InitializeResponse", "NewSessionResponse", "SetSessionModeResponse", "PromptResponse"]
    results += ["PromptResponse", "ListSessionsResponse", "LoadSessionResponse"]
    for message in one.heard:
        if "method" in message:
            _check(SENT[message["method"]], message["params"])
        else:
            _check(results.pop(0), message["result"])
    assert results == []


SENT = {"session/update": "SessionNotification", "session/request_permission": "RequestPermissionRequest"}


def _check(name: str, value: dict[str, Any]) -> None:
    """Read a message as the schema does, and see that it leaves nothing of it out."""
    read = getattr(schema, name).model_validate(value)
    assert read.model_dump(by_alias=True, exclude_unset=True, mode="json") == value


def test_the_sdk_is_told_what_is_wrong(tmp_path: Path, environment: dict[str, str]) -> None:
    async def story(connection: Any, client: Watching) -> None:
        with pytest.raises(acp.RequestError, match=r"team\.toml"):
            await connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        with pytest.raises(acp.RequestError, match="no open session"):
            await connection.prompt(session_id="nobody", prompt=[acp.text_block("Go.")])
        with pytest.raises(acp.RequestError, match="does not know the method"):
            await connection.fork_session(session_id="nobody", cwd=str(tmp_path), mcp_servers=[])

    play(tmp_path, environment, story)
