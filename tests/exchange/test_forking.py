"""Forking: a new conversation with the history of another one up to a message, which is only read."""

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bullpen.app import open_team
from bullpen.errors import BullpenError, StoreDamaged, StoreFull, UnknownConversation
from bullpen.exchange import new_conversations
from bullpen.exchange.files import export_pieces
from bullpen.exchange.forking import FORKED_FROM, UNFINISHED, fork_conversation
from bullpen.exchange.importing import import_conversation, read_import
from bullpen.memory import FileMark, MemberMemory, Memory
from bullpen.messages import ConversationMessage
from bullpen.routing.progress import Progress
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Owner, StateChange, TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, EXAMPLE_TEAM, KAI, MAX, prompt_for, write_example

ELSEWHERE = Owner(token="elsewhere", pid=1, start_time=1, boot_id="elsewhere")
TEAM = """\
name = "Echo"
lead = "max"
[[member]]
name = "kai"
[[member]]
name = "max"
command = ["echo", "Max here."]
[[member]]
name = "sarah"
command = ["echo", "Sarah here."]
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with SqliteStore(tmp_path / "c.db") as opened:
        write_example(opened)
        yield opened


def everything(store: SqliteStore, conversation_id: str) -> object:
    stored, turns = store.conversation(conversation_id), store.turns(conversation_id)
    return stored, store.messages(conversation_id), turns, [store.record(conversation_id, turn.id) for turn in turns]


def messages(store: SqliteStore, conversation_id: str) -> list[ConversationMessage]:
    return [stored.message for stored in store.messages(conversation_id)]


def progress(store: SqliteStore, conversation_id: str) -> Progress:
    return msgspec.convert(store.conversation(conversation_id).progress, Progress)


def test_a_fork_has_the_messages_up_to_there_as_they_were_said(store: SqliteStore) -> None:
    fork = fork_conversation(store, EXAMPLE_ID, 4)

    assert messages(store, fork.id) == messages(store, EXAMPLE_ID)[:4]
    hashes = {stored.hash for stored in store.messages(EXAMPLE_ID)}
    assert not hashes & {stored.hash for stored in store.messages(fork.id)}, "it has a chain of its own"
    original, forked = store.conversation(EXAMPLE_ID), store.conversation(fork.id)
    for field in ("team", "team_file", "team_path", "team_task"):
        assert getattr(forked, field) == getattr(original, field)
    assert forked.extra == {FORKED_FROM: {"conversation": EXAMPLE_ID, "message": 4}}
    assert (forked.state, forked.paused, forked.waits_for) == ("waiting", None, "kai")
    assert (fork.title, fork.at) == ("Where do we start? (fork at #4)", 4)
    assert forked.title == fork.title
    assert store.conversations()[0].id == fork.id, "it is the latest"
    assert store.turns(fork.id) == []
    assert store.fsck() == []


def test_without_a_number_it_has_all_messages(store: SqliteStore) -> None:
    fork = fork_conversation(store, EXAMPLE_ID)

    assert fork.at == 6
    assert messages(store, fork.id) == messages(store, EXAMPLE_ID)


def test_the_other_conversation_is_only_read_even_while_it_runs_elsewhere(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.claim(EXAMPLE_ID, ELSEWHERE, is_alive=lambda _: False)
    store.start_turn(EXAMPLE_ID, "5", owner=ELSEWHERE, given=prompt_for("max", messages(store, EXAMPLE_ID)), at=1)
    extend, before = store.extend, everything(store, EXAMPLE_ID)
    late = replace(messages(store, EXAMPLE_ID)[0], id="late")
    count = 0

    def extend_while_it_goes_on(conversation_id: str, some: Sequence[ConversationMessage]) -> None:
        nonlocal count
        count += 1
        with SqliteStore(tmp_path / "c.db") as elsewhere:
            elsewhere.append(EXAMPLE_ID, replace(late, id=f"late-{count}"), owner=ELSEWHERE)
        extend(conversation_id, some)

    fork_conversation(store, EXAMPLE_ID)
    assert everything(store, EXAMPLE_ID) == before

    monkeypatch.setattr(new_conversations, "STORED_AT_ONCE", 1)
    monkeypatch.setattr(store, "extend", extend_while_it_goes_on)
    fork = fork_conversation(store, EXAMPLE_ID)

    assert [message.id for message in messages(store, fork.id)] == ["m1", "m2", "m3", "m4", "m5", "m6"]
    assert len(messages(store, EXAMPLE_ID)) == 12
    assert [turn.id for turn in store.running(EXAMPLE_ID)] == ["5"]
    assert store.fsck() == []


def test_titles_stay_within_their_length_and_name_only_the_last_fork(store: SqliteStore) -> None:
    store.label(EXAMPLE_ID, title="Long " * 14)
    first = fork_conversation(store, EXAMPLE_ID, 4)
    second = fork_conversation(store, first.id, 2)

    assert len(first.title) <= 72
    assert first.title.endswith("… (fork at #4)")
    assert second.title.endswith("… (fork at #2)")
    assert "#4" not in second.title
    assert store.conversation(second.id).extra == {FORKED_FROM: {"conversation": first.id, "message": 2}}


@pytest.mark.parametrize("at", [0, -1, 7, 10**20])
def test_a_number_that_no_message_has(store: SqliteStore, at: int) -> None:
    with pytest.raises(BullpenError, match=f"has 6 messages, so it cannot be forked at message {at}"):
        fork_conversation(store, EXAMPLE_ID, at)

    assert [one.id for one in store.conversations()] == [EXAMPLE_ID]


def test_what_cannot_be_forked(store: SqliteStore) -> None:
    store.create("empty", team="t", team_file="", started_at=1)
    with pytest.raises(BullpenError, match="Nothing was said in empty yet, so there is nothing to fork"):
        fork_conversation(store, "empty")
    with pytest.raises(UnknownConversation):
        fork_conversation(store, "gone")


def test_a_fork_that_fails_leaves_nothing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    extend, states = store.extend, list[str | None]()

    def full_after_one(conversation_id: str, some: Sequence[ConversationMessage]) -> None:
        states.append(store.conversation(conversation_id).paused)
        if len(states) == 2:
            raise StoreFull("c.db")
        extend(conversation_id, some)

    monkeypatch.setattr(new_conversations, "STORED_AT_ONCE", 1)
    monkeypatch.setattr(store, "extend", full_after_one)
    with pytest.raises(StoreFull):
        fork_conversation(store, EXAMPLE_ID)

    assert [one.id for one in store.conversations()] == [EXAMPLE_ID]
    assert states == [UNFINISHED, UNFINISHED], "who looks meanwhile sees that it is not all there"


def test_nothing_of_a_damaged_conversation_is_copied(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    with SqliteStore(path) as store:
        write_example(store)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE messages SET content = 'changed' WHERE id = 'm3'")
    database.close()

    with SqliteStore(path) as store:
        with pytest.raises(StoreDamaged, match="message 'm3' has changed since it was stored"):
            fork_conversation(store, EXAMPLE_ID, 4)
        assert [one.id for one in store.conversations()] == [EXAMPLE_ID]


def test_people_continue_a_fork_where_it_ends(tmp_path: Path) -> None:
    team, path = tmp_path / "team.toml", tmp_path / "c.db"
    team.write_text(TEAM, encoding="utf-8")

    async def talk() -> list[tuple[str, str, str | None]]:
        async with open_team(team, db=path) as conversation:
            for text in ("[NEXT: sarah] One.", "[NEXT: max] Two."):
                await conversation.say(text)
                await conversation.until_quiet()
        with SqliteStore(path) as store:
            fork = fork_conversation(store, conversation.id, 2)
        async with open_team(team, db=path, resume=fork.id) as forked:
            await forked.say("And now?")
            await forked.until_quiet()
            return [
                (one.message.id, one.message.content, next((turn.id for turn in forked_turns(path, fork.id)), None))
                for one in await forked.messages()
            ][2:]

    said = asyncio.run(talk())

    assert [(message_id, text) for message_id, text, _ in said] == [("msg-3", "And now?"), ("msg-4", "Sarah here.")]
    assert said[0][2] == "3", "no turn has the number of one in the other conversation"


def forked_turns(path: Path, conversation_id: str) -> list[WaitingTurn]:
    with SqliteStore(path) as store:
        return [turn.waiting for turn in store.turns(conversation_id)]


def remembered(store: SqliteStore, sessions: Sequence[str]) -> None:
    """Store a conversation in which max answers every message, each time with the session that is named."""
    store.create("c", team="Builders", team_file=EXAMPLE_TEAM, started_at=1)
    store.claim("c", ELSEWHERE, is_alive=lambda _: False)
    for number, session in enumerate(sessions):
        asked, reply = f"msg-{2 * number + 1}", f"msg-{2 * number + 2}"
        turn = WaitingTurn(id=str(number + 1), member="max", message_id=asked)
        question = ConversationMessage(id=asked, content="?", speaker=KAI, timestamp=1)
        store.append("c", question, turns=[turn], owner=ELSEWHERE)
        store.start_turn("c", turn.id, owner=ELSEWHERE, given=prompt_for("max", [question]), at=1)
        memory = Memory(
            session_id=session,
            began_at=1,
            since=1,
            seen_to=2 * number + 1,
            agent="claude-code",
            folder="/project",
            visibility="all",
            file=FileMark(size=1, digest=""),
        )
        end = TurnEnd(turn_id=turn.id, state="done", at=1, memory=memory)
        said = ConversationMessage(id=reply, content="!", speaker=MAX, timestamp=1)
        store.append("c", said, finishes=end, owner=ELSEWHERE)


def borrowed(store: SqliteStore, at: int | None = None, conversation_id: str = "c") -> tuple[str, str] | None:
    """Return the session of which max would continue a copy, and the reply that it ended with."""
    found: MemberMemory | None = progress(store, fork_conversation(store, conversation_id, at).id).borrowed.get("max")
    return None if found is None else (found.memory.session_id, found.reply_id)


def test_an_agent_continues_a_copy_of_the_session_that_it_had_at_the_message(store: SqliteStore) -> None:
    remembered(store, ["session-a", "session-a", "session-b"])

    assert borrowed(store) == borrowed(store, 6) == ("session-b", "msg-6")
    assert borrowed(store, 5) == borrowed(store, 4) == ("session-a", "msg-4")
    assert borrowed(store, 3) == borrowed(store, 2) == ("session-a", "msg-2")
    assert borrowed(store, 1) is None


def test_a_fork_of_a_fork_continues_a_copy_of_the_same_session_if_it_is_not_cut(store: SqliteStore) -> None:
    remembered(store, ["session-a", "session-b"])
    fork = fork_conversation(store, "c")

    assert borrowed(store, 4, fork.id) == ("session-b", "msg-4")
    assert borrowed(store, 3, fork.id) is None


def test_who_was_made_to_forget_has_forgotten_in_the_fork_too(store: SqliteStore) -> None:
    remembered(store, ["session-a"])
    change = StateChange(progress=msgspec.to_builtins(Progress(forgotten={"max": "kai"})))
    store.update("c", at=1, change=change, owner=ELSEWHERE)

    assert progress(store, fork_conversation(store, "c").id).forgotten == {"max": "kai"}


def test_a_fork_can_be_exported_and_imported(store: SqliteStore) -> None:
    fork = fork_conversation(store, EXAMPLE_ID, 4)

    imported = read_import("".join(export_pieces(store, fork.id, "json")).encode())
    conversation_id = import_conversation(store, imported)

    assert messages(store, conversation_id) == messages(store, EXAMPLE_ID)[:4]
    stored = store.conversation(conversation_id)
    assert (stored.title, stored.extra) == (fork.title, store.conversation(fork.id).extra)
