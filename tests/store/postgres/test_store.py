"""The store in PostgreSQL keeps the contract, and any text."""

from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.store.postgres.server import empty_tables, needs_postgres, new_schema
from tests.store.properties import (
    APPROVALS,
    CONVERSATIONS,
    TEXT,
    TEXTS,
    Written,
    check_any_approvals,
    check_any_piece,
    check_any_text,
)

from bullpen.approvals import ApprovalRecord
from bullpen.errors import StoreDamaged, StoreTooNew, StoreTooOld
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store
from bullpen.store.postgres import schema, search
from bullpen.store.postgres.store import PostgresStore
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import ANSWERED, ASKED, KAI, OWNER, StoreContract, asked, begin, dead, said

pytestmark = needs_postgres


class TestPostgresStore(StoreContract):
    def open_store(self, folder: Path) -> Store:
        address = folder / "address"
        if not address.exists():
            address.write_text(empty_tables())
        return PostgresStore(address.read_text())


@settings(max_examples=30)
@given(conversation=CONVERSATIONS, query=TEXT)
def test_any_text_comes_back_as_it_was(conversation: Written, query: str) -> None:
    url = empty_tables()
    check_any_text(lambda: PostgresStore(url), conversation, query)


@settings(max_examples=30)
@given(records=APPROVALS)
def test_any_question_and_answer_comes_back_as_it_was(records: list[ApprovalRecord]) -> None:
    url = empty_tables()
    check_any_approvals(lambda: PostgresStore(url), records)


@settings(max_examples=30)
@given(texts=TEXTS, data=st.data())
def test_any_piece_of_what_was_said_is_found(texts: list[str], data: st.DataObject) -> None:
    url = empty_tables()
    check_any_piece(lambda: PostgresStore(url), texts, data)


@settings(max_examples=20)
@given(conversation=CONVERSATIONS)
def test_the_chain_is_the_same_as_in_sqlite(tmp_path_factory: pytest.TempPathFactory, conversation: Written) -> None:
    conversation_id, team, messages = conversation
    stores: tuple[Store, ...] = (
        SqliteStore(tmp_path_factory.mktemp("chain") / "a.db"),
        PostgresStore(empty_tables()),
    )
    links = []
    for store in stores:
        with store:
            store.create(conversation_id, team=team, team_file=team, started_at=0)
            links.append([store.append(conversation_id, message).hash for message in messages])
    assert links[0] == links[1]


def test_a_message_with_too_many_words_for_the_index_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MOST_BYTES", 1_000)
    with PostgresStore(empty_tables()) as store:
        begin(store, "c")
        many = " ".join(f"word{number}" for number in range(1000))
        store.append("c", ConversationMessage(id="m1", content=f"{many} needle", speaker=KAI))
        store.append("c", said("m2", "another needle"))
        store.append("c", said("m3", "nothing"))

        assert [found.message_id for found in store.search("needle")] == ["m2", "m1"]
        assert [found.message_id for found in store.search("word999")] == ["m1"]
        assert store.search("ord999") == []


def test_the_longest_text_that_any_index_must_hold() -> None:
    """More distinct words than a tsvector can hold."""
    words = " ".join(f"{number:x}" * 9 for number in range(60_000))
    with PostgresStore(empty_tables()) as store:
        begin(store, "c")
        store.append("c", said("m1", words))
        assert [found.message_id for found in store.search("fff" * 9)] == ["m1"]


def test_more_candidates_than_a_page_are_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PAGE", 3)
    with PostgresStore(empty_tables()) as store:
        begin(store, "c")
        store.extend("c", [said(f"m{number}", f"a b {'b a' if number % 4 else 'a-b'}") for number in range(20)])
        assert [found.sequence for found in store.search("a-b", limit=9)] == [17, 13, 9, 5, 1]


def test_a_lock_is_taken_as_soon_as_a_lost_session_lets_go_of_it() -> None:
    """The server may take long to notice that a connection is broken."""
    url = empty_tables()
    mine = (
        "SELECT pid, classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1"
    )
    with PostgresStore(url) as store, PostgresStore(url) as other:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        with psycopg.connect(url, autocommit=True) as broken:
            (pid, key), *_ = broken.execute(f"{mine} AND granted".encode()).fetchall()
            broken.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
            broken.execute("SELECT pg_advisory_lock(%s)", [key])
            store.renew_locks()
        with psycopg.connect(url, autocommit=True) as db:
            while db.execute(f"{mine} AND classid::bigint << 32 | objid::bigint = %s".encode(), [key]).fetchall():
                pass
        store.renew_locks()

        assert other.is_locked(OWNER)


def test_a_newer_or_unusable_database_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    url = new_schema()
    PostgresStore(url).close()
    with psycopg.connect(url) as db:
        db.execute("INSERT INTO migrations VALUES (99, 'from the future')")
    known = len(schema.scripts())
    with pytest.raises(StoreTooNew, match=f"format {known + 1}, but this bullpen only reads up to {known}"):
        PostgresStore(url)
    monkeypatch.setattr(schema, "OLDEST_SERVER", 99)
    with pytest.raises(StoreTooOld, match="but bullpen needs 99 or newer"):
        PostgresStore(new_schema())


def test_what_was_changed_is_noticed_and_nothing_is_written_after_that() -> None:
    url = empty_tables()
    with PostgresStore(url) as store:
        begin(store, "c")
        store.extend("c", [said(f"m{number}") for number in range(3)])
    with psycopg.connect(url) as db:
        db.execute("UPDATE messages SET content = 'HELLO' WHERE sequence = 1")
    with PostgresStore(url) as store:
        with pytest.raises(StoreDamaged, match="message 'm0' has changed since it was stored"):
            store.messages("c")
        assert [(finding.kind, finding.conversation_id) for finding in store.fsck()] == [("changed", "c")]
        with pytest.raises(StoreDamaged):
            store.append("c", said("m9"))
    with psycopg.connect(url) as db:
        db.execute("DELETE FROM messages WHERE sequence = 3")
    with PostgresStore(url) as store, pytest.raises(StoreDamaged, match="message 3 of a conversation is not its last"):
        store.append("c", said("m9"))


def test_what_was_changed_of_questions_and_answers_is_noticed() -> None:
    url = empty_tables()
    with PostgresStore(url) as store:
        begin(store, "c")
        store.append("c", said("m1"), turns=[asked("m1")])
        for record in (ASKED, ANSWERED, replace(ASKED, question="q2")):
            store.note_approval("c", record)
        assert store.fsck() == []
    for statement, problem in (
        ("UPDATE approvals SET is_open = 0 WHERE sequence = 3", "noted as open"),
        ("UPDATE approvals SET question = 'q3' WHERE sequence = 1", "approval number 1 cannot be read"),
        ("UPDATE approvals SET hash = '\\x00' WHERE sequence = 2", "approval number 2 has changed since it was stored"),
        ("DELETE FROM approvals WHERE sequence = 3", "its last approval is number 2, not 3"),
        ("UPDATE turns SET id = 'other'", "approval number 2 is of turn 'm1-max', which does not exist"),
    ):
        with psycopg.connect(url) as db:
            assert db.execute(statement.encode()).rowcount == 1
        with PostgresStore(url) as store:
            assert any(problem in finding.text for finding in store.fsck()), problem
            with PostgresStore(new_schema()) as other, store.copying_out("c") as copied, pytest.raises(StoreDamaged):
                other.copy_in(copied)
