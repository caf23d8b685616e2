"""What an agent already knows in a turn: each message of its session, with the turn in which it got there."""

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.view.remembering import FIRST, GONE, OWNER, SECOND, write_remembering

from bullpen.memory import FileMark, MemberMemory, Memory, SessionUse
from bullpen.routing.progress import Progress
from bullpen.store.base import StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.view.difference import difference
from bullpen.view.explanation import Explanation, explain
from bullpen.view.session_messages import messages_in_session

ID = "warm-river-1"


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "a.db")
    write_remembering(store)
    return store


def known(explanation: Explanation) -> list[tuple[int | None, str | None]]:
    return [(seen.sequence, seen.since_turn) for seen in explanation.known]


def new(explanation: Explanation) -> list[int | None]:
    return [seen.sequence for seen in explanation.new]


def test_a_new_session_knows_nothing_yet(store: SqliteStore) -> None:
    explanation = explain(store, ID, "1")

    assert (known(explanation), new(explanation)) == ([], [1])
    assert explanation.in_session == f"a new one, {FIRST}"


def test_a_session_that_continues_knows_what_came_in_its_turns_and_its_own_reply(store: SqliteStore) -> None:
    explanation = explain(store, ID, "2")

    assert known(explanation) == [(1, "1"), (2, "1")]
    assert new(explanation) == [3]
    assert explanation.in_session == f"{FIRST}, continued after turn 1, with 1 turn in it"
    assert explanation.known_sentence == "2 messages already in its session: #1 to #2 since turn 1"
    assert explanation.not_offered == ()
    assert [seen.sequence for seen in explanation.messages] == [1, 2, 3]


def test_a_rebuilt_session_says_why_and_gets_everything_again(store: SqliteStore) -> None:
    explanation = explain(store, ID, "3")

    assert known(explanation) == []
    assert new(explanation) == [1, 2, 3, 4, 5]
    assert explanation.in_session == f"rebuilt: {GONE}"
    after = explain(store, ID, "4")
    assert known(after) == [(number, "3") for number in range(1, 7)]
    assert after.in_session == f"{SECOND}, continued after turn 3, with 1 turn in it"


def test_the_difference_counts_what_each_knew_and_not_what_was_written_again(store: SqliteStore) -> None:
    compared = difference(explain(store, ID, "2"), explain(store, ID, "3"))

    assert (compared.in_both, compared.only_left) == (3, ())
    assert [seen.sequence for seen in compared.only_right] == [4, 5]


def test_a_session_of_another_conversation_is_not_mistaken_for_a_turn_of_this_one(store: SqliteStore) -> None:
    use = SessionUse(origin="forked", id="another-session", continues="2", turns=5)

    assert messages_in_session(store, ID, "max", use) == {}


def test_what_came_with_a_copy_of_a_session_is_known_too(store: SqliteStore) -> None:
    memory = Memory(
        session_id="another-session",
        began_at=0,
        since=2,
        seen_to=5,
        pending=("msg-4",),
        early=("msg-1",),
        agent="claude-code",
        folder="/shop",
        visibility="all",
        file=FileMark(size=1, digest="d"),
    )
    borrowed = {"max": MemberMemory(turn_id="9", reply_id="msg-6", memory=memory)}
    progress = msgspec.to_builtins(replace(Progress(), borrowed=borrowed))
    store.claim(ID, OWNER, is_alive=lambda _: False)
    store.update(ID, at=1, change=StateChange(progress=progress), owner=OWNER)
    use = SessionUse(origin="forked", id="another-session", continues="9", turns=5)

    assert messages_in_session(store, ID, "max", use) == dict.fromkeys(
        ["msg-1", "msg-2", "msg-3", "msg-5", "msg-6"], ""
    )
