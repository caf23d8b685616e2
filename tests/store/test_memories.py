"""Memories of members: stored with the reply of their turn or not at all, kept apart, deleted, checked."""

import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests import forked

from bullpen.errors import NotTheOwner, StoreDamaged
from bullpen.memory import FileMark, MemberMemory, Memory
from bullpen.store.base import Store, TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, MAX, MEMORY, OTHER, OWNER, alive, asked, begin, said
from bullpen.turn_events import Usage

FULL = Memory(
    session_id="11111111-2222-4333-8444-555555555501",
    origin="rebuilt",
    reason="the file of its session is gone",
    turns=7,
    began_at=1,
    since=1,
    seen_to=1,
    pending=("m1",),
    early=("m1",),
    said=("m2",),
    agent="claude-code",
    folder="/project 😀",
    model="large",
    used_model="large-2",
    visibility="addressed",
    first_system="a",
    system="b",
    task="c",
    file=FileMark(size=2**40, digest="d" * 32),
    tokens=123_456,
    used=Usage(input_tokens=1, output_tokens=2, cached_tokens=3, cost_usd=0.5),
    is_shortened=True,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bullpen.db"


@pytest.fixture
def store(path: Path) -> SqliteStore:
    store = SqliteStore(path)
    for name in ("c", "d"):
        begin(store, name)
        store.claim(name, OWNER, is_alive=alive)
    return store


def answered(store: Store, number: int, memory: Memory | None, *, conversation: str = "c", member: str = "max") -> None:
    """Let a member answer a message, and leave a memory."""
    asking, turn = said(f"m{number}"), f"m{number}-{member}"
    store.append(conversation, asking, turns=[asked(asking.id, member)], owner=OWNER)
    store.start_turn(conversation, turn, owner=OWNER, given=GIVEN, at=1)
    end = TurnEnd(turn_id=turn, state="done", at=2, memory=memory)
    reply = said(f"m{number + 1}", speaker=replace(MAX, role_id=member))
    store.append(conversation, reply, finishes=end, owner=OWNER)


def tampered(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as db:
        assert db.execute(statement).rowcount == 1
    db.close()


def test_every_field_comes_back_after_opening_it_again(store: SqliteStore, path: Path) -> None:
    answered(store, 1, FULL)
    store.close()

    with SqliteStore(path) as again:
        assert again.memory("c", "max") == MemberMemory(turn_id="m1-max", reply_id="m2", memory=FULL)
        assert again.fsck() == []


def test_the_last_one_of_each_member_counts_and_a_turn_without_one_changes_nothing(store: SqliteStore) -> None:
    for number, member in ((1, "max"), (3, "sarah"), (5, "max")):
        answered(store, number, replace(MEMORY, session_id=f"session-{number}"), member=member)
    answered(store, 7, None)
    answered(store, 1, replace(MEMORY, session_id="other"), conversation="d")

    last = {member: store.memory("c", member) for member in ("max", "sarah", "ben")}
    assert {name: left and left.memory.session_id for name, left in last.items()} == {
        "max": "session-5",
        "sarah": "session-3",
        "ben": None,
    }
    assert [left.memory.session_id for left in store.memories("c")] == ["session-1", "session-3", "session-5"]


def test_a_turn_that_ended_badly_leaves_none(store: SqliteStore) -> None:
    store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
    store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=1)
    store.end_turn("c", TurnEnd(turn_id="m1-max", state="failed", at=2), owner=OWNER)

    assert store.memory("c", "max") is None


def test_it_is_stored_with_the_reply_or_not_at_all(store: SqliteStore) -> None:
    store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
    store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=1)
    end = TurnEnd(turn_id="m1-max", state="done", at=2, memory=MEMORY)

    with pytest.raises(NotTheOwner):
        store.append("c", said("m2", speaker=MAX), finishes=end, owner=OTHER)
    with pytest.raises(ValueError, match="surrogates"):
        store.append("c", said("m2", "\ud83d", speaker=MAX), finishes=end, owner=OWNER)

    assert store.memory("c", "max") is None
    assert store.turn("c", "m1-max").state == "running"


def test_deleting_a_conversation_deletes_its_memories_and_no_others(store: SqliteStore, path: Path) -> None:
    answered(store, 1, replace(MEMORY, session_id="session-to-delete"))
    answered(store, 1, MEMORY, conversation="d")

    store.delete("c", at=9, owner=OWNER)

    assert store.memory("d", "max") is not None
    assert store.fsck() == []
    store.close()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM memories").fetchone() == (1,)
    db.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memories SET memory = x''",
        "UPDATE memories SET memory = 'text'",
        "UPDATE memories SET memory = CAST(substr(memory, 1, 9) || x'00' || substr(memory, 11) AS BLOB)",
        "UPDATE memories SET memory = substr(memory, 1, length(memory) - 1)",
    ],
)
def test_a_damaged_one_is_found_and_never_used(store: SqliteStore, path: Path, statement: str) -> None:
    answered(store, 1, FULL)
    store.close()
    tampered(path, statement)

    with SqliteStore(path) as again:
        assert [(finding.conversation_id, finding.kind) for finding in again.fsck()] == [("c", "record")]
        with pytest.raises(StoreDamaged):
            again.memory("c", "max")


@pytest.mark.parametrize(("since", "seen_to"), [(0, 1), (2, 1), (1, 3), (3, 3)])
def test_one_that_has_seen_what_was_not_said_is_found(store: SqliteStore, since: int, seen_to: int) -> None:
    answered(store, 1, replace(MEMORY, since=since, seen_to=seen_to))

    (finding,) = store.fsck()
    assert (finding.kind, f"seen messages {since} to {seen_to}" in finding.text) == ("turn", True)


def test_one_of_another_member_is_not_a_members_own(store: SqliteStore) -> None:
    answered(store, 1, MEMORY, member="max")

    assert store.memory("c", "MAX") is None


LIFE = """
import sys
from pathlib import Path
from tests.store.test_memories import answered, MEMORY, replace
from bullpen.store.sqlite import SqliteStore
with SqliteStore(Path(sys.argv[1])) as store:
    first = int(sys.argv[2])
    for number in range(first, 100_000, 2):
        answered(store, number, replace(MEMORY, session_id=f"session-{number}", seen_to=number))
        print(number, flush=True)
"""


def test_whenever_its_process_is_killed_each_reply_has_its_memory(store: SqliteStore, path: Path) -> None:
    chance = random.Random(14)
    store.close()
    for _ in range(4):
        with SqliteStore(path) as again:
            again.recover("c", at=1, owner=OWNER)
            first = again.conversation("c").messages + 1
            first += 1 - first % 2
            if again.conversation("c").messages % 2:
                again.append("c", said(f"m{first - 1}"), owner=OWNER)
        command = [sys.executable, "-c", LIFE, str(path), str(first)]
        child = forked.start(command, stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(chance.randint(1, 12)):
            acknowledged = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        child.communicate()
        with SqliteStore(path) as again:
            left = again.memories("c")
            replies = {turn.id: turn.reply_id for turn in again.turns("c") if turn.state == "done"}
            assert {one.turn_id: one.reply_id for one in left} == replies
            assert f"m{acknowledged}-max" in replies
            assert all(one.memory.session_id == f"session-{one.memory.seen_to}" for one in left)
            assert again.fsck() == []
