"""Members in a pool remember: their sessions stay on the worker, and nothing is missed or told twice, whatever dies."""

import asyncio
import time
from pathlib import Path

import psycopg
import pytest
from tests.cluster.processes import Processes
from tests.cluster.remembering import RememberingPool, Script, Told
from tests.cluster.stage import give_up
from tests.cluster.test_remote_agent import OWNER, Seen, opened, until_said

from bullpen.cluster import remote_agent
from bullpen.conversation.conversation import Conversation
from bullpen.store.postgres.store import PostgresStore
from bullpen.view.explanation import explain

HALF: Script = [{"say": "half of it"}, {"hang": True}]


@pytest.fixture
def pool(tmp_path: Path, url: str, processes: Processes) -> RememberingPool:
    return RememberingPool(tmp_path, url, processes)


async def tell(conversation: Conversation, text: str) -> None:
    await conversation.say(text)
    await conversation.until_quiet()


async def until_it_said(seen: Seen, text: str) -> None:
    while text not in seen.text:
        await asyncio.sleep(0.01)


def until_joined(url: str, count: int) -> None:
    """Wait until so many workers are there."""
    query = "SELECT FROM bullpen_cluster.processes WHERE kind = 'worker' AND ended_at IS NULL"
    with psycopg.connect(url, autocommit=True) as connection:
        while len(connection.execute(query).fetchall()) < count:
            time.sleep(0.01)


@pytest.mark.parametrize("cli", ["claude", "codex"])
async def test_a_member_continues_its_session_on_its_worker(cli: str, pool: RememberingPool) -> None:
    team = pool.member("a", cli=cli)
    pool.worker()
    async with opened(pool.url, team) as conversation:
        for word in ("owl", "yak", "emu"):
            await tell(conversation, f"{word} is next")
        told = Told(pool, conversation)

        assert told.origins == ["new", "resumed", "resumed"]
        assert told.wrong == []
        assert (told.memory.worker, told.memory.turns, told.memory.seen_to) == ("box", 3, 5)
        (file,) = pool.sessions(cli=cli)
        assert told.memory.file.size == file.stat().st_size
        assert ["owl is next" in record.prompt for record in told.records] == [True, False, False]
        # What each used alone, though codex reports all turns of a session together.
        used = [turn.usage and (turn.usage.input_tokens, turn.usage.output_tokens) for turn in told.turns]
        assert used[1] == used[2]
        with PostgresStore(pool.url) as store:
            known = explain(store, conversation.id, told.turns[2].id).known
        assert [message.first_words.split()[0] for message in known] == ["owl", "a:1", "yak", "a:2"]


async def test_another_worker_begins_again_with_the_conversation(pool: RememberingPool) -> None:
    team = pool.member("a")
    first = pool.worker("left")
    async with opened(pool.url, team) as conversation:
        seen = Seen(conversation)
        await tell(conversation, "one is next")
        await asyncio.to_thread(first.stop)
        second = pool.worker("right")
        await tell(conversation, "two is next")
        await tell(conversation, "three is next")
        await asyncio.to_thread(second.stop)
        pool.worker("left")
        await tell(conversation, "four is next")
        told = Told(pool, conversation)

        assert told.origins == [
            "new",
            "rebuilt: its session is on another worker, left",
            "resumed",
            "rebuilt: its session is on another worker, right",
        ]
        assert told.wrong == []
        assert (told.memory.origin, told.memory.reason) == ("rebuilt", "its session is on another worker, right")
        assert ["one is next" in record.prompt for record in told.records] == [True, True, False, True]
        sentence = "Its session was rebuilt from the conversation: its session is on another worker, left."
        assert sentence in seen.notices


async def test_of_several_workers_the_one_that_has_the_session_is_asked(pool: RememberingPool) -> None:
    team = pool.member("a")
    pool.worker("left")
    async with opened(pool.url, team) as conversation:
        await tell(conversation, "one is next")
        others = [pool.worker(name) for name in ("right", "other")]
        await asyncio.to_thread(until_joined, pool.url, 3)
        for word in ("two", "three", "four", "five", "six"):
            await tell(conversation, f"{word} is next")
        told = Told(pool, conversation)

        assert told.origins == ["new"] + ["resumed"] * 5
        assert told.wrong == []
        for other in others:
            assert await asyncio.to_thread(other.stop) == 0


async def test_a_worker_that_has_the_session_and_no_room_is_not_waited_for(
    pool: RememberingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_agent, "NO_WORKER_SECONDS", 0)
    slowly: Script = [{"say": "b:1 says so."}, pool.waits]
    team = pool.member("a")
    team = pool.member("b", slowly)
    pool.worker("left", at_once=1)
    async with opened(pool.url, team) as conversation:
        seen = Seen(conversation)
        await tell(conversation, "one is next [NEXT: a]")
        await conversation.say("two is next [NEXT: b]")
        await until_it_said(seen, "b:1 says so.")
        pool.worker("right")
        await conversation.say("three is next [NEXT: a]")
        while len(Told(pool, conversation).records) < 2 or Told(pool, conversation).turns[1].state != "done":
            await asyncio.sleep(0.01)
        told = Told(pool, conversation)

        assert told.origins == ["new", "rebuilt: its session is on another worker, left"]
        pool.go.touch()
        await conversation.until_quiet()
        assert told.wrong == []


async def test_what_a_killed_worker_left_in_a_session_is_taken_out(pool: RememberingPool) -> None:
    team = pool.member("a", [{"say": "a:1 says so."}], HALF)
    worker = pool.worker()
    async with opened(pool.url, team) as conversation:
        seen = Seen(conversation)
        await tell(conversation, "one is next")
        (file,) = pool.sessions()
        before = file.read_bytes()
        await conversation.say("two is next")
        await until_it_said(seen, "half of it")
        worker.kill()
        await asyncio.to_thread(give_up, pool.url)
        while not seen.ended()[1:]:
            await asyncio.sleep(0.01)
        assert len(file.read_bytes()) > len(before)
        pool.worker()
        await conversation.retry()
        await conversation.until_quiet()
        told = Told(pool, conversation)

        assert [turn.state for turn in told.turns] == ["done", "interrupted", "done"]
        assert told.origins == ["new", "resumed", "resumed"]
        assert file.read_bytes().startswith(before)
        assert told.wrong == []
        assert told.memory.turns == 2


async def test_a_cancelled_turn_leaves_nothing_in_its_session(pool: RememberingPool) -> None:
    team = pool.member("a", [{"say": "a:1 says so."}], HALF)
    pool.worker()
    async with opened(pool.url, team) as conversation:
        seen = Seen(conversation)
        await tell(conversation, "one is next")
        (file,) = pool.sessions()
        before = file.read_bytes()
        await conversation.say("two is next")
        await until_it_said(seen, "half of it")
        assert len(file.read_bytes()) > len(before)
        await conversation.cancel()
        await conversation.until_quiet()
        assert file.read_bytes() == before
        await conversation.skip()
        await tell(conversation, "three is next")
        told = Told(pool, conversation)

        assert told.origins == ["new", "resumed", "resumed"]
        assert told.wrong == []
        assert "Your turn 2 was cancelled" in told.records[2].prompt


async def test_a_turn_that_another_node_ends_leaves_its_memory(pool: RememberingPool, processes: Processes) -> None:
    slowly: Script = [pool.waits, {"say": "a:1 says so."}]
    team = pool.member("a", slowly)
    pool.worker()
    node = processes.start(OWNER, pool.url, str(team), "new", "one is next")
    conversation_id = node.line()
    await pool.until_turn("a", 1)
    node.kill()

    async with opened(pool.url, team, conversation_id) as conversation:
        pool.go.touch()
        await until_said(conversation, "a:1 says so.")
        told = Told(pool, conversation)
        assert told.memory.seen_to == 1
        await tell(conversation, "two is next")

        assert told.origins == ["new", "resumed"]
        assert told.wrong == []


async def test_a_turn_that_began_again_and_that_another_node_ends_is_told_as_it_was(
    pool: RememberingPool, processes: Processes
) -> None:
    slowly: Script = [pool.waits, {"say": "a:2 says so."}]
    team = pool.member("a", [{"say": "a:1 says so."}], slowly)
    first = pool.worker("left")
    async with opened(pool.url, team) as conversation:
        conversation_id = conversation.id
        await tell(conversation, "one is next")
    await asyncio.to_thread(first.stop)
    pool.worker("right")
    node = processes.start(OWNER, pool.url, str(team), conversation_id, "two is next")
    node.line()
    await pool.until_turn("a", 2)
    node.kill()

    async with opened(pool.url, team, conversation_id) as conversation:
        pool.go.touch()
        await until_said(conversation, "a:2 says so.")
        await tell(conversation, "three is next")
        told = Told(pool, conversation)

        assert told.origins == ["new", "rebuilt: its session is on another worker, left", "resumed"]
        assert told.wrong == []
        assert told.memory.turns == 2


async def test_a_member_in_a_pool_forgets(pool: RememberingPool) -> None:
    team = pool.member("a")
    pool.worker()
    async with opened(pool.url, team) as conversation:
        await tell(conversation, "one is next")
        await conversation.forget("a")
        await tell(conversation, "two is next")
        await tell(conversation, "three is next")
        told = Told(pool, conversation)

        assert told.origins == ["new", "rebuilt: kim made it forget", "resumed"]
        assert told.wrong == []
        assert len(pool.sessions()) == 2


async def test_a_session_that_a_person_continued_on_the_worker_is_left_to_them(pool: RememberingPool) -> None:
    team = pool.member("a")
    pool.worker()
    async with opened(pool.url, team) as conversation:
        await tell(conversation, "one is next")
        (file,) = pool.sessions()
        with file.open("ab") as added:
            added.write(b'{"type":"user","message":{"role":"user","content":"by hand"}}\n')
        theirs = file.read_bytes()
        await tell(conversation, "two is next")
        told = Told(pool, conversation)

        assert told.origins == ["new", "rebuilt: somebody else continued its session"]
        assert file.read_bytes() == theirs
        assert told.wrong == []
