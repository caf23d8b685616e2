"""A member in a pool takes its turns on workers: as if it ran here, and beyond the death of its node."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.cluster.processes import Processes
from tests.cluster.stage import WorkerStage, give_up, place

from bullpen.agents.registry import agent_spec
from bullpen.app import open_conversation
from bullpen.cluster import remote_agent
from bullpen.cluster.announcing import Announcement, InstructionsThere, announcement, read_announcement
from bullpen.cluster.database import Database
from bullpen.cluster.membership import is_alive
from bullpen.cluster.node import open_node
from bullpen.cluster.orders import Order, cancel
from bullpen.cluster.remote_agent import RemoteAgent
from bullpen.cluster.remote_folders import RemoteFolders
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.cluster.worker_file import WorkerFile
from bullpen.context.prompt import AssemblerOutput
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import ConversationEvent, Decided, TurnEnded, TurnEvent
from bullpen.conversation.member_agent import AnnouncedInstructions
from bullpen.conversation.owner import this_process
from bullpen.errors import ConversationInUse, NeedsCluster
from bullpen.store.base import PoolOrder
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.thread import StoreThread
from bullpen.team.file import load_team
from bullpen.team.team import Member
from bullpen.testing.store_contract import asked, begin
from bullpen.testing.store_contract import said as a_message
from bullpen.turn_events import Notice, TextDelta

OWNER = "tests.cluster.owner_process"


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> WorkerStage:
    return WorkerStage(tmp_path, url, processes)


@asynccontextmanager
async def opened(url: str, team: Path, resume: str | None = None) -> AsyncIterator[Conversation]:
    thread = StoreThread()
    async with open_node(url, name="n") as node:
        with node.open_store() as store:
            remote = partial(RemoteTeam, node)
            async with open_conversation(
                load_team(team), store, thread, resume, remote=remote, continues=True
            ) as conversation:
                yield conversation
    thread.close()


async def said_in(conversation: Conversation) -> list[tuple[str, str]]:
    return [(one.message.speaker.role_id, one.message.content) for one in await conversation.messages(limit=100)]


async def until_said(conversation: Conversation, text: str) -> list[tuple[str, str]]:
    while text not in [content for _, content in await said_in(conversation)]:
        await asyncio.sleep(0.01)
    return await said_in(conversation)


class Seen:
    """What a viewer of a conversation sees."""

    def __init__(self, conversation: Conversation) -> None:
        self.events: list[ConversationEvent] = []
        self._task = asyncio.create_task(self._watch(conversation))

    async def _watch(self, conversation: Conversation) -> None:
        async for event in conversation.watch():
            self.events.append(event)

    @property
    def text(self) -> str:
        events = [one.event for one in self.events if isinstance(one, TurnEvent)]
        return "".join(event.text for event in events if isinstance(event, TextDelta))

    @property
    def notices(self) -> list[str]:
        events = [one.event for one in self.events if isinstance(one, TurnEvent)]
        return [event.text for event in events if isinstance(event, Notice)]

    def decided(self) -> list[str]:
        return [one.choice for one in self.events if isinstance(one, Decided)]

    def ended(self) -> list[TurnEnded]:
        return [one for one in self.events if isinstance(one, TurnEnded)]


async def test_a_turn_runs_on_a_worker_and_its_reply_is_said(stage: WorkerStage) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        while seen.text != "Hello ":
            await asyncio.sleep(0.01)
        assert await said_in(conversation) == [("kim", "Hi.")]

        stage.go.touch()
        assert await until_said(conversation, "Hello you.") == [("kim", "Hi."), ("max", "Hello you.")]

        record = await conversation.read(lambda store, one: store.record(one, "1"))
        assert record is not None
        assert b"Hello you." in record.stream
        assert "Hi." in record.prompt
        assert record.command
        with PostgresStore(stage.url) as store:
            assert store.fsck(conversation.id) == []
        assert stage.started() == ["max"]


async def test_a_turn_whose_worker_is_killed_is_interrupted_and_waits_for_a_person(stage: WorkerStage) -> None:
    team, later = stage.write_team(max=[{"say": "Half."}, {"hang": True}]), stage.order("later")
    stage.write_file()
    worker = stage.start_worker()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        while seen.text != "Half.":
            await asyncio.sleep(0.01)

        await asyncio.to_thread(stage.lose, worker)
        while not seen.ended():
            await asyncio.sleep(0.01)

        assert seen.ended()[0].state == "interrupted"
        turn = await conversation.read(lambda store, one: store.turn(one, "1"))
        assert turn.state == "interrupted"
        assert turn.failure is not None
        assert turn.failure.kind == "worker_lost"
        assert turn.failure.partial_text == "Half."
        assert [ended.state for ended in conversation.undecided] == ["interrupted"]
        assert not conversation.waiting
        assert await started_before(stage, later) == ["max"]


async def started_before(stage: WorkerStage, later: Order) -> list[str]:
    """Start a worker and let it run one more order; return which turns were started before that."""
    stage.start_worker()
    async with Database(stage.url) as database:
        await place(database, later)
        while not await database.do("SELECT FROM outcomes WHERE turn = %s", later.turn):
            await asyncio.sleep(0.01)
    *before, last = stage.started()
    assert last == later.turn
    return before


async def test_a_pool_without_a_worker_is_said_and_its_turn_can_be_cancelled(
    stage: WorkerStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_agent, "NO_WORKER_SECONDS", 0)
    team, later = stage.write_team(max=[{"say": "Hello."}]), stage.order("later")
    stage.write_file()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        while not seen.notices:
            await asyncio.sleep(0.01)
        assert "No worker serves the pool 'gpu-box' now" in seen.notices[0]

        await conversation.cancel()
        while not seen.ended():
            await asyncio.sleep(0.01)

        assert seen.ended()[0].state == "cancelled"
        assert await started_before(stage, later) == []


async def test_cancelling_ends_a_turn_on_a_worker(stage: WorkerStage) -> None:
    team = stage.write_team(max=[{"say": "Half."}, {"hang": True}])
    stage.write_file()
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await asyncio.sleep(0)
        await conversation.say("Hi.")
        while seen.text != "Half.":
            await asyncio.sleep(0.01)

        await conversation.cancel()
        while not seen.ended():
            await asyncio.sleep(0.01)

        assert seen.ended()[0].state == "cancelled"


async def test_a_turn_continues_when_its_node_is_killed_and_is_adopted(
    stage: WorkerStage, processes: Processes
) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    stage.start_worker()
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    while not stage.started():
        await asyncio.sleep(0.01)

    node.kill()
    async with opened(stage.url, team, conversation_id) as conversation:
        seen = Seen(conversation)
        stage.go.touch()
        assert await until_said(conversation, "Hello you.") == [("kim", "Hi."), ("max", "Hello you.")]
        # The new owner heard it from the beginning.
        assert seen.text in ("Hello you.", "you.", "")
        assert conversation.paused is None
        assert stage.started() == ["max"]


async def test_what_nobody_wants_any_more_is_not_run(stage: WorkerStage, processes: Processes) -> None:
    """The end of a turn is stored and its node dies before it removes the order, or its member leaves the pool."""
    team = stage.write_team(max=[{"say": "Hello."}])
    stage.write_file()
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    async with Database(stage.url) as database:
        while not await database.do("SELECT FROM orders"):
            await asyncio.sleep(0.01)
        node.kill()
        await place(database, Order(conversation=conversation_id, turn="0", pool="gpu-box", packed=b""))
        async with opened(stage.url, team, conversation_id):
            assert await database.do("SELECT turn FROM orders") == [("1",)]
        team.write_text(team.read_text().replace('pool = "gpu-box"\ncwd = "project"', ""))
        async with opened(stage.url, team, conversation_id) as conversation:
            assert await database.do("SELECT turn FROM orders") == []
            turn = await conversation.read(lambda store, one: store.turn(one, "1"))

    assert turn.state == "interrupted"


async def test_what_a_deleted_conversation_has_ordered_is_not_run(stage: WorkerStage) -> None:
    owner = this_process()
    order = PoolOrder(pool="gpu-box", work=b"a secret", notes=b"", token="t", node=0)
    with PostgresStore(stage.url) as store:
        begin(store, "c")
        store.claim("c", owner, is_alive=lambda _: False)
        store.append("c", a_message("m1"), turns=[asked("m1")], owner=owner)
        store.start_turn("c", "m1-max", owner=owner, given=AssemblerOutput(prompt=""), at=1, order=order)
        store.delete("c", at=1, owner=owner)
    async with Database(stage.url) as database:
        assert await database.do("SELECT FROM orders") == []
        assert await database.do("SELECT FROM procrastinate_jobs") == []


async def test_a_turn_that_was_cancelled_when_its_node_was_killed_is_cancelled(
    stage: WorkerStage, processes: Processes
) -> None:
    team = stage.write_team(max=[{"say": "Half."}, {"hang": True}])
    stage.write_file()
    stage.start_worker()
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    while not stage.started():
        await asyncio.sleep(0.01)

    node.kill()
    async with Database(stage.url) as database:
        ((owner,),) = await database.do("SELECT owner FROM orders")
        assert await cancel(database, owner, conversation_id, "1")
    async with opened(stage.url, team, conversation_id) as conversation:
        while (turn := await conversation.read(lambda store, one: store.turn(one, "1"))).state == "running":
            await asyncio.sleep(0.01)

    assert turn.state == "cancelled"


async def test_the_conversations_of_a_frozen_node_go_to_another_one(stage: WorkerStage, processes: Processes) -> None:
    team = stage.write_team(max=[{"say": "Hello."}])
    stage.write_file()
    stage.start_worker()
    frozen = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = frozen.line()
    with PostgresStore(stage.url) as store:
        while store.conversation(conversation_id).messages < 2:
            await asyncio.sleep(0.01)

    frozen.freeze()
    async with open_node(stage.url, name="n") as node:
        rows = await node.database.do("SELECT id FROM processes WHERE name = 'owner'")
        await asyncio.to_thread(give_up, stage.url, "owner")
        assert not await is_alive(node.database, rows[0][0])
        while True:
            try:
                async with opened(stage.url, team, conversation_id) as conversation:
                    frozen.wake()
                    await conversation.say("And now?")
                    while len(await said_in(conversation)) < 4:
                        await asyncio.sleep(0.01)
                    said = await said_in(conversation)
                break
            except ConversationInUse:
                # The server ends its sessions, which takes a moment.
                await asyncio.sleep(0.01)

    assert said == [("kim", "Hi."), ("max", "Hello."), ("kim", "And now?"), ("max", "Hello.")]
    # It woke up to find that it owns nothing.
    line = ""
    while "lost" not in line and "Paused" not in line:
        line = await asyncio.to_thread(frozen.line)


async def test_a_node_that_leaves_does_not_end_what_runs_on_a_worker(stage: WorkerStage, processes: Processes) -> None:
    team = stage.write_team(max=[{"say": "Hello "}, stage.waits, {"say": "you."}])
    stage.write_file()
    stage.start_worker()
    node = processes.start(OWNER, stage.url, str(team), "new", "Hi.")
    conversation_id = node.line()
    while not stage.started():
        await asyncio.sleep(0.01)

    assert await asyncio.to_thread(node.stop) == 0

    async with opened(stage.url, team, conversation_id) as conversation:
        stage.go.touch()
        assert await until_said(conversation, "Hello you.") == [("kim", "Hi."), ("max", "Hello you.")]
        assert stage.started() == ["max"]


async def test_a_turn_that_is_lost_is_retried_once_if_the_team_file_says_so(stage: WorkerStage) -> None:
    team = stage.write_team('[limits]\non_interrupted = "retry-once"', max=[{"hang": True}])
    stage.write_file()
    async with opened(stage.url, team) as conversation:
        seen = Seen(conversation)
        await lose_its_worker(stage, conversation)
        while len(seen.decided()) < 1:
            await asyncio.sleep(0.01)
        assert seen.decided() == ['retried as turn 2, since the team file says on_interrupted = "retry-once"']
        assert not conversation.undecided
        assert conversation.paused is None

        # If that is lost, too, a person decides.
        await lose_its_worker(stage, None)
        while not conversation.undecided:
            await asyncio.sleep(0.01)
        assert [ended.turn.id for ended in conversation.undecided] == ["2"]
        assert stage.started() == ["max", "max"]
        (decision,) = await conversation.read(lambda store, one: store.decisions(one))
        assert (decision.person, decision.choice, decision.turns) == ("bullpen", "retry", ("1", "2"))
        assert len(seen.decided()) == 1


async def lose_its_worker(stage: WorkerStage, conversation: Conversation | None) -> None:
    """Let a worker begin a turn, and kill it."""
    before = len(stage.started())
    worker = stage.start_worker()
    if conversation is not None:
        await conversation.say("Hi.")
    while len(stage.started()) == before:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(stage.lose, worker)


async def test_without_a_cluster_a_pool_is_refused_in_a_sentence(stage: WorkerStage) -> None:
    from bullpen.app import open_team

    team = stage.write_team(max=[{"say": "Hello."}])
    with pytest.raises(NeedsCluster, match=r"max runs on workers of the pool 'gpu-box'.*`bullpen serve --cluster`"):
        async with open_team(team, db=stage.folder / "test.db"):
            pass


async def test_a_stand_in_may_live_on_another_machine(stage: WorkerStage) -> None:
    team = stage.write_team(far=[{"say": "Done elsewhere."}])
    here = '[[member]]\nname = "max"\ncommand = ["no-such-program-here"]\ncwd = "project"\nstand_in = ["far"]\n'
    team.write_text(f"{team.read_text()}{here}", encoding="utf-8")
    stage.write_file()
    stage.start_worker()
    async with opened(stage.url, team) as conversation:
        await conversation.say("[NEXT: max] Please.")
        said = await until_said(conversation, "Done elsewhere.")
        assert [speaker for speaker, _ in said] == ["kim", "bullpen", "max"]
        assert said[1][1].startswith("far stands in for max until ")
    assert stage.started() == ["far"]


def test_rules_that_a_worker_announced_are_given_where_its_cli_may_not_read_them() -> None:
    """Nobody agrees to settings on a worker, and without these Qwen reads no rules; pi always does."""
    rules = InstructionsThere(folder="web", name="AGENTS.md", text="Be brief.", problem="'~/x.md' is not imported.")
    node: Any = SimpleNamespace(announced=lambda _: [Announcement(instructions=(rules,))])
    given = {}
    for name in ("qwen", "pi"):
        member = Member(name="a", agent=name, type="ai", pool="web", cwd="web", permissions="full")
        spec, folders = agent_spec(name), cast(RemoteFolders, None)
        agent = RemoteAgent(
            member=member, spec=spec, folder=Path("web"), conversation_id="c", node=node, folders=folders
        )
        given[name] = agent.announced_instructions

    assert given == {
        "qwen": AnnouncedInstructions(text="Be brief.", problem="'~/x.md' is not imported."),
        "pi": AnnouncedInstructions(),
    }


def test_a_worker_announces_what_it_could_not_import(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Be brief.\n@../other.md\n", encoding="utf-8")
    file = WorkerFile(folders={"web": str(tmp_path)}, agents=("codex",))
    (there,) = read_announcement(asyncio.run(announcement(file))).instructions

    outside = f"'../other.md' in AGENTS.md is not imported: it is outside {tmp_path.resolve()}."
    assert (there.text, there.problem) == ("Be brief.\n@../other.md\n", outside)
