"""One conversation in an editor, in this process: what must hold whatever happens at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conversation.stage import HANG, Stage, until_at_work

from bullpen import errors
from bullpen.app import open_conversation
from bullpen.cli.editor import sessions as editor_sessions
from bullpen.cli.editor.session import EditorSession
from bullpen.cli.editor.sessions import Sessions
from bullpen.cli.editor.shapes import EditorOptions
from bullpen.conversation import broadcast
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Asked
from bullpen.turn_events import ApprovalAsked

PATIENCE_SECONDS = 60.0


class Client:
    """An editor that remembers what it was told, and reads only while it wants to."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.reads = asyncio.Event()
        self.reads.set()

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        await self.reads.wait()
        self.updates.append(params["update"])

    def ask(self, method: str, params: dict[str, Any]) -> tuple[int, "asyncio.Future[Any]"]:
        self.asked.append(params)
        return len(self.asked), asyncio.get_running_loop().create_future()

    def take_back(self, number: int) -> None:
        pass

    def texts(self, kind: str = "agent_message_chunk") -> str:
        return "".join(one["content"]["text"] for one in self.updates if one["sessionUpdate"] == kind)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("BULLPEN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stage = Stage(tmp_path)
    stage.person("kim")
    return stage


@asynccontextmanager
async def opened(stage: Stage) -> AsyncIterator[tuple[Conversation, EditorSession, Client]]:
    async with asyncio.timeout(PATIENCE_SECONDS), stage.open() as conversation:
        client = Client()
        session = EditorSession(conversation, stage.folder, client, None, stage.db)
        yield conversation, session, client
        await session.close()


async def test_a_turn_that_begins_after_it_was_cancelled_is_cancelled(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.agent("a", HANG)
    async with opened(stage) as (conversation, session, _):
        say = conversation.say

        async def say_too_late(text: str, *, sender: str | None = None) -> None:
            await session.cancel()
            await say(text, sender=sender)

        monkeypatch.setattr(conversation, "say", say_too_late)
        assert (await session.prompt("Go."))["stopReason"] == "cancelled"


async def test_an_editor_that_did_not_read_for_long_is_shown_the_rest(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcast, "MOST_EVENTS", 10)
    monkeypatch.setattr(broadcast, "RECENT_EVENTS", 5)
    stage.agent("a", [{"say": "one two three four five six seven", "chunk": 1}], "Here I am.")
    async with opened(stage) as (conversation, session, client):
        client.reads.clear()
        prompting = asyncio.create_task(session.prompt("Go."))
        while not conversation.message_count:
            await asyncio.sleep(0.01)
        await conversation.until_quiet()
        client.reads.set()
        assert (await prompting)["stopReason"] == "end_turn"

        assert (await session.prompt("Again."))["stopReason"] == "end_turn"
        assert "Here I am." in client.texts()


async def test_a_prompt_ends_as_cancelled_when_its_session_is_closed(stage: Stage) -> None:
    stage.agent("a", HANG)
    async with opened(stage) as (conversation, session, _):
        prompting = asyncio.create_task(session.prompt("Go."))
        await until_at_work(conversation, "a")
        session.leave()
        await session.close()
        assert (await prompting)["stopReason"] == "cancelled"


async def test_a_conversation_that_nobody_waits_for_any_more_is_closed_before_the_database(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.agent("a")
    entering, may_enter, happened = asyncio.Event(), asyncio.Event(), list[str]()

    @asynccontextmanager
    async def slowly(*given: Any, **more: Any) -> AsyncIterator[Conversation]:
        entering.set()
        await may_enter.wait()
        async with open_conversation(*given, **more) as conversation:
            yield conversation
        happened.append("closed")

    monkeypatch.setattr(editor_sessions, "open_conversation", slowly)
    sessions = Sessions(EditorOptions(file=stage.write(), trust=True, db=stage.db, sender=None), Client())
    async with asyncio.timeout(PATIENCE_SECONDS):
        opening = asyncio.create_task(sessions.new(str(stage.folder)))
        await entering.wait()
        opening.cancel()
        asyncio.get_running_loop().call_soon(may_enter.set)
        await asyncio.gather(opening, return_exceptions=True)
        assert happened == ["closed"]
        await sessions.close_all()


async def test_loading_it_again_changes_no_running_prompt(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    used = {"usage": {"input": 100, "output": 20, "cached": 0}}
    stage.agent("a", [{"say": "Built. [NEXT: b]"}, used], agent="claude")
    stage.agent("b", HANG)
    async with opened(stage) as (conversation, session, _):
        prompting = asyncio.create_task(session.prompt("Go."))
        await until_at_work(conversation, "b")
        await session.replay()
        await session.cancel()
        assert (await prompting)["usage"]["outputTokens"] == 20


async def test_one_question_has_one_dialog(stage: Stage) -> None:
    stage.agent("a")
    question = ApprovalAsked(id="q1", kind="command", command="touch x")
    asked = Asked(turn_id="1", member="a", question=question, at=0)
    async with opened(stage) as (conversation, session, client):
        conversation.approvals.open["1", "q1"] = asked
        await session._tell(asked)
        await session._tell(asked)
        while not client.asked:
            await asyncio.sleep(0)
        # The other one, if there were one, is not later than that.
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(client.asked) == 1
        conversation.approvals.open.clear()


async def test_what_could_not_be_said_here_is_shown_when_it_is_said_elsewhere(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.agent("a")

    async def refuse(text: str, *, sender: str | None = None) -> None:
        raise errors.BullpenError("The disk is full.")

    async with opened(stage) as (conversation, session, client):
        with monkeypatch.context() as patched:
            patched.setattr(conversation, "say", refuse)
            await session.prompt("Hello.")
        assert "The disk is full." in client.texts()
        await conversation.say("Hello.")
        await session.prompt("/who")
        assert client.texts("user_message_chunk") == "Hello."
