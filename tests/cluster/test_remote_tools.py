"""A member on another machine calls the tools of its turn, as one here does, whoever dies."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest
from msgspec.structs import replace
from tests.cluster.calling import CallingStage
from tests.cluster.here import times_of_turns, working
from tests.cluster.processes import Processes
from tests.cluster.test_remote_agent import OWNER, opened, said_in, until_said
from tests.conversation.test_turn_tools import Stage

from bullpen.approvals import Answer
from bullpen.cluster import remote_talk
from bullpen.cluster.announcing import read_announcement
from bullpen.cluster.remote_talk import RemoteTalk
from bullpen.cluster.telling import Telling
from bullpen.cluster.turn_log import Called, Uncalled
from bullpen.cluster.words import Listening, Returned
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.running_turn import RunningTurn
from bullpen.routing.queue import WaitingTurn
from bullpen.store.postgres.store import PostgresStore
from bullpen.tools.calls import MOST_CALLS, TOO_MANY_CALLS, Call
from bullpen.tools.uses import ToolUse

HAND_OVER: list[Any] = ["call", "hand_over", {"to": ["lea"], "note": "Look at it."}]
ASK: list[Any] = ["call", "ask_person", {"question": "Which?", "choices": ["plum", "pear"]}]
NOTE: list[Any] = ["call", "note", {"text": "Mind the gap."}]
READ: list[Any] = ["call", "read_history", {}]
SAY: list[Any] = ["say", "Done."]
REPLY = "Done.\n\nTo lea: Look at it."


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> CallingStage:
    return CallingStage(tmp_path, url, processes)


async def until_there(conversation: Conversation) -> None:
    """Wait until the node knows of the worker: before that, no turn of it has tools."""
    node = conversation._turns._agents.of_members["max"].node  # type: ignore[attr-defined]
    while not node.has_worker("gpu-box"):
        await asyncio.sleep(0.01)


def uses_of(stage: CallingStage, conversation_id: str) -> tuple[ToolUse, ...]:
    with PostgresStore(stage.url) as store:
        (turn,) = [one for one in store.turns(conversation_id) if one.member == "max"]
        assert store.fsck(conversation_id) == []
        return turn.uses


def test_the_agent_writes_nothing_where_it_is_only_asked_about_itself(stage: CallingStage, tmp_path: Path) -> None:
    program = stage.prepare(SAY).with_name("bin") / "claude"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for arguments in (["--version"], ["auth", "status"]):
        subprocess.run([program, *arguments], cwd=elsewhere, check=True)
    assert list(elsewhere.iterdir()) == []


async def test_it_looks_things_up_hands_over_and_leaves_notes(stage: CallingStage) -> None:
    team = stage.prepare(READ, ["call", "search", {"query": "plum"}], ["call", "team", {}], NOTE, HAND_OVER, SAY)
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await until_there(conversation)
        await conversation.note("The word is plum.", sender="kim")
        await conversation.say("Which word was it?")
        said = await until_said(conversation, "I am lea.")
    read, found, members, noted, handed = stage.answers
    assert "The word is plum." in read[0]
    assert found[0].startswith("#1 kim: The word is")
    assert "- lea, agent" in members[0]
    assert noted == ("The note is in the conversation.", False)
    assert handed[0].startswith("lea will answer next")
    assert said[2:] == [("max", "Mind the gap."), ("max", REPLY), ("lea", "I am lea.")]
    kinds = [use.kind for use in uses_of(stage, conversation.id)]
    assert kinds == ["look up", "look up", "note", "hand over"]


async def test_a_wrong_call_is_an_error_of_the_caller(stage: CallingStage) -> None:
    wrong: list[dict[str, Any]] = [{"number": 10**30}, {"number": "x"}, {}, {"number": 1, "conversation": "calm-oak"}]
    team = stage.prepare(*(["call", "read_message", arguments] for arguments in wrong), SAY)
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await until_there(conversation)
        await conversation.say("Hi.")
        await until_said(conversation, "Done.")
    assert [is_error for _, is_error in stage.answers] == [True] * 4


async def test_a_person_is_asked_and_time_limits_stop_meanwhile(
    stage: CallingStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    team = stage.prepare(ASK, SAY)
    asking = times_of_turns(monkeypatch)
    monkeypatch.setenv("PATH", stage.path)
    async with working(stage), opened(stage.url, team) as conversation:
        await until_there(conversation)
        await conversation.say("Hi.")
        turn, question = await asked(conversation)
        assert asking[0].is_asking
        await conversation.answer(turn, question, Answer(verdict="yes", text="plum"), by="kim")
        await until_said(conversation, "Done.")
        assert not asking[0].is_asking
    assert stage.answers == [("plum", False)]


async def asked(conversation: Conversation) -> tuple[str, str]:
    while not conversation.approvals.open:
        await asyncio.sleep(0.01)
    (key,) = conversation.approvals.open
    return key


@pytest.mark.parametrize("is_killed", [True, False])
async def test_a_call_outlives_its_node(stage: CallingStage, processes: Processes, is_killed: bool) -> None:
    team = stage.prepare(READ, NOTE, HAND_OVER, ASK, SAY)
    stage.start_worker()
    await until_worker(stage)
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    while not (await asyncio.to_thread(node.line)).startswith("Asked"):
        pass

    node.kill() if is_killed else await asyncio.to_thread(node.stop)

    async with opened(stage.url, team, conversation_id) as conversation:
        turn, question = await asked(conversation)
        assert len(stage.answers) == 3
        await conversation.answer(turn, question, Answer(verdict="yes", text="pear"), by="kim")
        said = await until_said(conversation, "I am lea.")
    assert stage.answers[3] == ("pear", False)
    assert said.count(("max", "Mind the gap.")) == 1
    assert ("max", REPLY) in said
    with PostgresStore(stage.url) as store:
        assert [one.question for one in store.approvals(conversation_id)] == ["ask_person.4"] * 2
    # The second node looked it up again, all of it at the same time.
    assert sorted(use.kind for use in uses_of(stage, conversation_id)) == ["ask", "hand over", "look up", "note"]


async def test_a_hand_over_counts_though_the_turn_ended_without_an_owner(
    stage: CallingStage, processes: Processes
) -> None:
    team = stage.prepare(HAND_OVER, ["wait", "go"], SAY)
    stage.start_worker()
    await until_worker(stage)
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    await stage.until_answered(1)
    node.kill()
    (stage.folder / "go").touch()
    with psycopg.connect(stage.url, autocommit=True) as connection:
        while not connection.execute("SELECT 1 FROM bullpen_cluster.outcomes").fetchall():
            await asyncio.sleep(0.01)

    async with opened(stage.url, team, conversation_id) as conversation:
        said = await until_said(conversation, "I am lea.")
    assert ("max", REPLY) in said


async def test_a_call_that_nobody_could_answer_is_answered_by_the_next_node(
    stage: CallingStage, processes: Processes
) -> None:
    team = stage.prepare(["wait", "go"], READ, SAY)
    stage.start_worker()
    await until_worker(stage)
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    while not (stage.folder / "arguments").exists():
        await asyncio.sleep(0.01)
    node.kill()
    (stage.folder / "go").touch()
    with psycopg.connect(stage.url, autocommit=True) as connection:
        # Its worker found nobody to tell, and left it there.
        while b"read_history" not in lines_left(connection):
            await asyncio.sleep(0.01)
    assert stage.answers == []

    async with opened(stage.url, team, conversation_id) as conversation:
        await until_said(conversation, "Done.")
    assert stage.answers[0][0].endswith("Hi.")


def lines_left(connection: "psycopg.Connection[Any]") -> bytes:
    return b"".join(line for (line,) in connection.execute("SELECT line FROM bullpen_cluster.lines").fetchall())


async def test_it_needs_no_connection(stage: CallingStage) -> None:
    team = stage.prepare(READ, HAND_OVER, SAY)
    async with opened(stage.url, team) as conversation:
        with psycopg.connect(stage.url) as connection:
            connection.execute("UPDATE bullpen_cluster.processes SET address = '127.0.0.1:1' WHERE kind = 'node'")
        stage.start_worker()
        await until_there(conversation)
        await conversation.say("Hi.")
        await until_said(conversation, "I am lea.")
    assert len(stage.answers) == 2


async def test_where_a_worker_knows_of_no_tools_the_agent_is_not_told_of_any(stage: CallingStage) -> None:
    team = stage.prepare(SAY)
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await until_there(conversation)
        with psycopg.connect(stage.url) as connection:
            query = "SELECT announced FROM bullpen_cluster.processes WHERE kind = 'worker'"
            ((data,),) = connection.execute(query).fetchall()
            old = replace(read_announcement(data), tools=False)
            older = msgspec.msgpack.encode(old)
            connection.execute("UPDATE bullpen_cluster.processes SET announced = %s WHERE kind = 'worker'", [older])
        await conversation._turns._agents.of_members["max"].node.look_at_workers()  # type: ignore[attr-defined]
        await conversation.say("Hi.")
        await until_said(conversation, "Done.")
        assert [content for _, content in await said_in(conversation)] == ["Hi.", "Done."]
    arguments = json.loads((stage.folder / "arguments").read_text())
    assert "--mcp-config" not in arguments
    with PostgresStore(stage.url) as store:
        record = store.record(conversation.id, "1")
    assert record is not None
    assert "read_history" not in record.prompt + (record.system or "")


class Talk:
    """What one owner does with the calls of a turn, without a database."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stage = Stage()
        self.left: list[Returned] = []
        running = RunningTurn(WaitingTurn(id="1", member="ann", message_id="m"))
        running.tools = self.stage.tools
        self.talk = RemoteTalk(None, 0, ("c", "1"), running)  # type: ignore[arg-type]

        async def leave(_: object, __: int, ___: object, word: Returned) -> None:
            self.left.append(word)

        monkeypatch.setattr(remote_talk, "leave_word", leave)

    async def until_left(self, count: int) -> None:
        while len(self.left) < count:
            await asyncio.sleep(0)


async def test_the_next_owner_knows_a_question_by_the_same_number(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Talk(monkeypatch)
    # It hears at once what was called and taken back before its time, which does not even begin.
    owner.talk.on_called(Called(1, "team", {}))
    owner.talk.on_uncalled(Uncalled(1))
    owner.talk.on_called(Called(2, "ask_person", {"question": "Which?"}))

    await owner.until_left(1)

    assert [one.id for one in owner.stage.asked] == ["ask_person.2"]


async def test_every_call_is_answered_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = Talk(monkeypatch)
    for number in range(1, MOST_CALLS + 3):
        owner.talk.on_called(Called(number, "team", {}))

    await owner.until_left(MOST_CALLS + 2)

    assert [word.call for word in owner.left if word.text == TOO_MANY_CALLS] == [MOST_CALLS + 1, MOST_CALLS + 2]


async def test_a_worker_passes_no_more_calls_on_than_a_turn_may_make() -> None:
    telling = Telling(None, 1, ("c", "1"))  # type: ignore[arg-type]
    listening = Listening(None, None, 1, ("c", "1"), telling)  # type: ignore[arg-type]
    calls = [
        asyncio.create_task(listening.call(Call(id=number, tool="team", arguments={})))
        for number in range(1, MOST_CALLS + 2)
    ]
    done, waiting = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)

    assert [task.result().text for task in done] == [TOO_MANY_CALLS]
    assert telling.log.count == MOST_CALLS
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def until_worker(stage: CallingStage) -> None:
    """Wait until a worker has joined."""
    with psycopg.connect(stage.url, autocommit=True) as connection:
        while not connection.execute("SELECT 1 FROM bullpen_cluster.processes WHERE kind = 'worker'").fetchall():
            await asyncio.sleep(0.01)
