"""The embedded store keeps the contract, and any text."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.base import Store, StoredMessage, TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import (
    GIVEN,
    OTHER,
    OWNER,
    StoreContract,
    asked,
    begin,
    dead,
    read_stream,
    said,
    start,
)


class TestSqliteStore(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "bullpen.db")


# What any text holds seldom is put in more often: Chinese, emoji of several characters, control characters, quotes.
TEXT = st.lists(
    st.one_of(
        st.text(),
        st.sampled_from(["你好，世界", "👩‍💻🏽", "\r\n\x1b[0m\x7f", "\"\\'", "\ufeff\u2028e\u0301", "x" * 500]),
    ),
    max_size=8,
).map("".join)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
SPEAKERS = st.builds(
    Speaker,
    role_id=TEXT,
    role_name=TEXT,
    type=st.sampled_from(["human", "ai", "system"]),
    role_title=st.none() | TEXT,
)
ROUTINGS = st.builds(
    Routing,
    resolved_addressees=NAMES,
    raw_next_markers=NAMES,
    drop_targets=NAMES,
    parent_message_id=st.none() | TEXT,
    intent=st.none() | TEXT,
)
MESSAGES = st.builds(
    ConversationMessage,
    id=TEXT,
    content=TEXT,
    speaker=SPEAKERS,
    timestamp=st.integers(-(2**63), 2**63 - 1),
    routing=st.none() | ROUTINGS,
)


@pytest.fixture
def path() -> Iterator[Path]:
    """Give a place in memory, where writing is fast enough for many examples."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder) / "bullpen.db"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    conversation_id=TEXT,
    team=TEXT,
    messages=st.lists(MESSAGES, max_size=6, unique_by=lambda message: message.id),
    query=TEXT,
)
def test_any_text_comes_back_as_it_was(
    path: Path, conversation_id: str, team: str, messages: list[ConversationMessage], query: str
) -> None:
    path.unlink(missing_ok=True)
    with SqliteStore(path) as store:
        store.create(conversation_id, team=team, team_file=team, started_at=0, team_task=team)
        stored = [store.append(conversation_id, message) for message in messages]
        store.search(query)

    with SqliteStore(path) as store:
        assert [one.message for one in store.messages(conversation_id)] == messages
        assert store.messages(conversation_id) == stored
        assert [store.message(conversation_id, message.id) for message in messages] == stored
        assert (store.conversation(conversation_id).team, store.fsck()) == (team, [])


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXT, min_size=1, max_size=5), data=st.data())
def test_any_piece_of_what_was_said_is_found(path: Path, texts: list[str], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(texts))
    words = [word for word in text.split() if any(character.isalnum() for character in word)]
    path.unlink(missing_ok=True)
    with SqliteStore(path) as store:
        store.create("c", team="", team_file="", started_at=0)
        stored: list[StoredMessage] = [
            store.append("c", ConversationMessage(id=str(number), content=content, speaker=SPEAKER))
            for number, content in enumerate(texts)
        ]
        expected = {one.message.id for one in stored if one.message.content == text}
        for word in words:
            assert expected <= {found.message_id for found in store.search(word)}


SPEAKER = Speaker(role_id="kai", role_name="Kai", type="human")


def test_a_prompt_that_repeats_the_one_before_is_stored_as_a_difference(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        for number in range(1, 4):
            text = "\n".join(f"line {line} of the history, as it was said" for line in range(100 + number))
            store.append("c", said(f"m{number}"), turns=[asked(f"m{number}", "max", turn_id=str(number))], owner=OWNER)
            store.start_turn("c", str(number), owner=OWNER, given=replace(GIVEN, prompt=text), at=number)
            store.end_turn("c", TurnEnd(turn_id=str(number), state="failed", at=number), owner=OWNER)
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        assert db.execute("SELECT count(*) FROM prompts WHERE base IS NOT NULL").fetchone() == (2,)


def test_damaged_output_of_a_running_turn_is_found_and_stops_nothing(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        begin(store, "c")
        store.claim("c", OWNER, is_alive=dead)
        start(store)
        store.keep_output("c", "m1-max", b"first ", owner=OWNER)
        store.keep_output("c", "m1-max", b"second", owner=OWNER)
    with closing(sqlite3.connect(tmp_path / "a.db")) as db, db:
        db.execute("UPDATE stream_parts SET data = x'00112233445566' WHERE number = 2")
    with SqliteStore(tmp_path / "a.db") as store:
        store.claim("c", OTHER, is_alive=dead)
        store.recover("c", at=140, owner=OTHER)
        assert read_stream(store) == b"first "
        store.append("c", said("m2"), owner=OTHER)
