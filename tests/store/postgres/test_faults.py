"""Processes are killed, the server is stopped, nobody is let in: nothing is lost or doubled, and all is said."""

import asyncio
import os
import random
import signal
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from queue import SimpleQueue

import psycopg
import pytest
from tests.store.children import Child, in_parallel
from tests.store.postgres.server import needs_own_server, needs_postgres, new_schema

from bullpen.app import open_team
from bullpen.errors import BullpenError, StoreError, StoreUncertain, StoreUnreachable
from bullpen.store.base import Owner, TurnEnd
from bullpen.store.postgres import connections, message_rows, owner_locks
from bullpen.store.postgres.store import PostgresStore
from bullpen.testing.postgres import PASSWORD, PostgresServer
from bullpen.testing.store_contract import GIVEN, MAX, OTHER, OWNER, alive, asked, begin, dead, said

KILLS = 12
MOST_LINES = 12
STOPS = 3
WRITERS = 4


def talk(url: str, life: int, acknowledge: int) -> None:
    """Take over a conversation, say and answer without end, and tell of everything that is stored."""
    owner = Owner(token=f"life {life}", pid=os.getpid(), start_time=life, boot_id="")
    with PostgresStore(url) as store:
        assert store.claim("c", owner, is_alive=dead)
        store.recover("c", at=0, owner=owner)
        for number in count():
            question, answer = f"{life}-{number}-question", f"{life}-{number}-answer"
            store.append("c", said(question, "why? " * number), turns=[asked(question)], owner=owner)
            os.write(acknowledge, f"{question}\n".encode())
            store.start_turn("c", f"{question}-max", owner=owner, given=GIVEN, at=0)
            end = TurnEnd(turn_id=f"{question}-max", state="done", at=0)
            store.append("c", said(answer, "because", speaker=MAX), finishes=end, owner=owner)
            os.write(acknowledge, f"{answer}\n".encode())


@needs_postgres
def test_nothing_acknowledged_is_lost_or_doubled_by_kill_9() -> None:
    url, chance = new_schema(), random.Random(4)
    with PostgresStore(url) as store:
        begin(store, "c")
    told: list[str] = []
    for life in range(KILLS):
        child = Child(partial(talk, url, life))
        written = child.kill(after_lines=chance.randrange(MOST_LINES))
        told += written.decode().splitlines()

    with PostgresStore(url) as store:
        stored = [one.message.id for one in store.messages("c")]
        assert store.fsck() == []
        assert len(store.running("c")) <= 1
    assert len(told) > KILLS // 2
    assert len(set(stored)) == len(stored)
    assert [message for message in stored if message in set(told)] == told
    assert len(stored) - len(told) <= KILLS


@needs_postgres
def test_one_of_sixteen_processes_gets_a_conversation() -> None:
    url = new_schema()
    with PostgresStore(url) as store:
        for number in range(10):
            begin(store, f"c{number}")

    def claim_all(number: int) -> list[str]:
        owner = Owner(token=f"process {number}", pid=number, start_time=0, boot_id="")
        with PostgresStore(url) as store:
            return [name for name in (f"c{one}" for one in range(10)) if store.claim(name, owner, is_alive=alive)]

    won = [name for names in in_parallel(claim_all, 16) for name in names]
    assert sorted(won) == [f"c{number}" for number in range(10)]


@needs_postgres
def test_the_lock_of_a_killed_owner_is_free_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # However lately the server was started.
    monkeypatch.setattr(owner_locks, "GRACE_SECONDS", 10**6)
    url = new_schema()

    def own(pipe: int) -> None:
        store = PostgresStore(url)
        store.claim("c", OWNER, is_alive=dead)
        os.write(pipe, b"owned\n")
        time.sleep(1000)

    with PostgresStore(url) as store:
        begin(store, "c")
        child = Child(own)
        assert os.read(child.output, 100) == b"owned\n"
        assert store.is_locked(OWNER) is True
        child.kill(after_lines=0)
        wait_for(lambda: store.is_locked(OWNER) is False)
        assert store.claim("c", OTHER, is_alive=lambda owner: bool(store.is_locked(owner)))
        assert store.is_locked(OWNER) is None


@needs_postgres
def test_a_forked_child_that_outlives_its_owner_does_not_keep_its_lock() -> None:
    url = new_schema()

    def own(pipe: int) -> None:
        store = PostgresStore(url)
        store.claim("c", OWNER, is_alive=dead)
        grandchild = os.fork()
        if grandchild == 0:
            time.sleep(1000)
        store.append("c", said("m1"), owner=OWNER)
        os.write(pipe, f"{grandchild}\n".encode())
        time.sleep(1000)

    with PostgresStore(url) as store:
        begin(store, "c")
        child = Child(own)
        grandchild = int(os.read(child.output, 100))
        try:
            os.kill(child.pid, signal.SIGKILL)
            wait_for(lambda: store.is_locked(OWNER) is False)
        finally:
            os.kill(grandchild, signal.SIGKILL)
            child.wait()


@needs_postgres
def test_a_writer_that_is_stopped_in_the_middle_does_not_lock_others_out(monkeypatch: pytest.MonkeyPatch) -> None:
    soon = connections.SETTINGS.replace("session_timeout', '10s'", "session_timeout', '300ms'")
    assert soon != connections.SETTINGS
    monkeypatch.setattr(connections, "SETTINGS", soon)
    url = new_schema()

    def freeze(pipe: int) -> None:
        with PostgresStore(url) as store:
            store.claim("c", OWNER, is_alive=dead)
            try:
                with store._writing("c", OWNER) as place:
                    added = message_rows.NewMessages(place, [said("late")])
                    head = place.found().head
                    os.write(pipe, b"frozen\n")
                    os.kill(os.getpid(), signal.SIGSTOP)
                    added.add(head, 1, said("late"))
            except StoreUnreachable as error:
                os.write(pipe, f"{error}\n".encode())

    with PostgresStore(url) as store:
        begin(store, "c")
        child = Child(freeze)
        assert os.read(child.output, 100) == b"frozen\n"
        # Waits until the server has ended the other's transaction.
        assert store.claim("c", OTHER, is_alive=dead)
        store.append("c", said("m1"), owner=OTHER)
        os.kill(child.pid, signal.SIGCONT)

        assert b"cannot be reached: " in child.wait()
        assert [one.message.id for one in store.messages("c")] == ["m1"]
        assert store.fsck() == []


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@needs_own_server
def test_nothing_acknowledged_is_lost_or_doubled_by_a_crash_of_the_server(server: PostgresServer) -> None:
    url = server.url()
    with PostgresStore(url) as store:
        for number in range(WRITERS):
            begin(store, f"c{number}")
        told: SimpleQueue[tuple[str, str]] = SimpleQueue()
        is_over = threading.Event()
        writers = [
            threading.Thread(target=write, args=(store, f"c{number}", told, is_over)) for number in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        for _ in range(STOPS):
            seen = told.qsize()
            wait_for(lambda seen=seen: told.qsize() > seen + 20)
            server.stop(signal.SIGQUIT)
            server.start()
        seen = told.qsize()
        wait_for(lambda: told.qsize() > seen + 20)
        is_over.set()
        for writer in writers:
            writer.join()

        acknowledged = [told.get() for _ in range(told.qsize())]
        for number in range(WRITERS):
            stored = [one.message.id for one in store.messages(f"c{number}")]
            assert stored == [message for conversation, message in acknowledged if conversation == f"c{number}"]
        assert store.fsck() == []


def write(
    store: PostgresStore, conversation: str, told: SimpleQueue[tuple[str, str]], is_over: threading.Event
) -> None:
    """Say one message after the other, each again until it is acknowledged."""
    for number in count():
        while True:
            try:
                store.append(conversation, said(f"m{number}"))
                break
            except StoreError:
                time.sleep(0.01)
        told.put((conversation, f"m{number}"))
        if is_over.is_set():
            return


@needs_own_server
def test_an_owner_has_its_lock_again_after_the_server_was_restarted(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_locks, "GRACE_SECONDS", 10**6)
    with PostgresStore(server.url()) as store, PostgresStore(server.url()) as elsewhere:
        begin(store, "restarted")
        store.claim("restarted", OWNER, is_alive=dead)
        server.stop()
        server.start()

        # Nobody is called dead at once only because the server forgot all locks.
        assert elsewhere.is_locked(OWNER) is None
        monkeypatch.setattr(owner_locks, "GRACE_SECONDS", 0)
        assert elsewhere.is_locked(OWNER) is False
        store.beat("restarted", OWNER, at=7)
        assert elsewhere.is_locked(OWNER) is True
        store.append("restarted", said("m1"), owner=OWNER)


@needs_own_server
def test_a_wrong_password_is_said_without_it(server: PostgresServer) -> None:
    wrong = server.url(password="sesame-open")
    with pytest.raises(StoreUnreachable, match="refused the connection: password authentication failed") as refused:
        PostgresStore(wrong)
    assert "sesame" not in everything_said(refused.value)
    assert str(refused.value).startswith(f"postgresql://kai@127.0.0.1:{server.port}/postgres refused")
    with pytest.raises(StoreUnreachable, match='database "nowhere" does not exist'):
        PostgresStore(server.url().replace("/postgres", "/nowhere"))


@needs_own_server
def test_a_server_that_is_away_is_said_without_the_password(server: PostgresServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(StoreUnreachable, match=r"cannot be reached: .*refused\. Is the server running\?$") as away:
            PostgresStore(server.url().replace(f":{server.port}/", f":{port}/"))
    assert PASSWORD not in everything_said(away.value)

    with PostgresStore(server.url()) as store:
        begin(store, "away")
        server.stop()
        try:
            with pytest.raises(StoreUnreachable, match="Is the server running") as away:
                store.append("away", said("m1"))
            assert PASSWORD not in everything_said(away.value)
        finally:
            server.start()
        assert store.append("away", said("m1")).sequence == 1


@needs_own_server
def test_a_socket_is_an_address_too(server: PostgresServer) -> None:
    with PostgresStore(server.socket_url()) as store:
        assert store.conversations() is not None


@pytest.mark.parametrize(
    "address", ["postgresql://kai:secret-7@host:port/db", "postgresql://kai:secret-7@[::1/db", "kai secret-7"]
)
def test_what_is_no_address_is_said_without_a_word_of_it(address: str) -> None:
    with pytest.raises(BullpenError) as refused:
        PostgresStore(address)
    assert "secret-7" not in everything_said(refused.value)


def everything_said(error: BaseException) -> str:
    """Return what a person could ever see of an error, with --debug too."""
    import traceback

    return "".join(traceback.format_exception(error))


def wait_for(condition: object) -> None:
    """Wait until something is so; the test's time limit says when that is too long."""
    assert callable(condition)
    while not condition():
        time.sleep(0.01)


LOSE = """
    CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
"""
WHILE_IT_COMMITS = """
    CREATE CONSTRAINT TRIGGER lost AFTER INSERT ON messages DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION lose()
"""


@needs_postgres
def test_a_server_that_is_lost_while_it_commits_and_stays_away_leaves_nothing_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "UNSURE_SECONDS", 0)
    url = new_schema()
    with PostgresStore(url) as store:
        begin(store, "c")
        with psycopg.connect(url) as connection:
            connection.execute(LOSE)
            connection.execute(WHILE_IT_COMMITS)

        with pytest.raises(StoreUncertain, match="was lost while something was stored"):
            store.append("c", said("1", "hello"))

        # The next one has a connection of its own.
        assert store.messages("c") == []


async def _talk_and_lose(url: str, folder: Path) -> tuple[bool, bool, list[str]]:
    team = folder / "team.toml"
    team.write_text('name = "t"\n[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = ["cat"]\n')
    async with open_team(team, db=PostgresStore(url)) as conversation:
        await conversation.note("one")
        with psycopg.connect(url) as connection:
            connection.execute(LOSE)
            connection.execute(WHILE_IT_COMMITS)
        with pytest.raises(StoreUncertain):
            await conversation.note("two")
        with psycopg.connect(url) as connection:
            connection.execute("DROP TRIGGER lost ON messages")
        # It does not know what is stored, so it stores nothing more.
        with pytest.raises(StoreUncertain):
            await conversation.note("three")
        found = conversation.is_lost, conversation.is_uncertain
        conversation_id = conversation.id
    async with open_team(team, db=PostgresStore(url), resume=conversation_id) as conversation:
        await conversation.note("four")
        messages = await conversation.messages(limit=9)
    return *found, [one.message.content for one in messages]


@needs_postgres
def test_a_conversation_that_does_not_know_what_is_stored_stores_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "UNSURE_SECONDS", 0)
    is_lost, is_uncertain, texts = asyncio.run(_talk_and_lose(new_schema(), tmp_path))

    assert is_lost
    assert is_uncertain
    assert texts == ["one", "four"]
