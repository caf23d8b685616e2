"""A conversation has one owner, whoever looks from wherever; who lost it writes nothing, and its agents stop."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.conversation.stage import GO, HANG, Stage, events_so_far, said, tell, until_at_work
from tests.store.test_owner_locks import ELSEWHERE, becomes, needs

from bullpen.agents import process_tree
from bullpen.app import open_conversation
from bullpen.clock import milliseconds
from bullpen.conversation import heartbeat, owner
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Paused, TurnEnded
from bullpen.conversation.kept_output import KEEP_SECONDS
from bullpen.conversation.owner import this_process
from bullpen.conversation.repair import repair
from bullpen.errors import (
    BullpenError,
    ConversationInUse,
    NotTheOwner,
    StoreFull,
    StoreUnreachable,
    UnknownConversation,
)
from bullpen.store.base import Owner, Store, StoredConversation
from bullpen.store.owner_locks import OwnerLocks
from bullpen.store.sqlite import SqliteStore
from bullpen.store.thread import StoreThread
from bullpen.team.file import load_team
from bullpen.testing.clock import ManualClock
from bullpen.view import listing

OWNING = Path(__file__).with_name("owning.py")
SILENCE_SECONDS = 10 * owner.LOST_SECONDS
"""Longer than an owner may say nothing, however long its start took."""


class Elsewhere:
    """Another process that owns a conversation, or tries to, and what it tells."""

    def __init__(
        self,
        stage: Stage,
        resume: str,
        text: str = "",
        *,
        prefix: tuple[str, ...] = (),
        beat: float = 5,
        lost: float = 9,
    ) -> None:
        words = (OWNING, stage.write(), stage.db, resume, text, beat, lost)
        command = [*needs(prefix), sys.executable, *map(str, words)]
        self.told: list[str] = []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
        )

    async def line(self, *starts: str) -> str:
        """Return the next line that begins with one of these words, and keep the others."""
        assert self.process.stdout is not None
        while not (found := [line for line in self.told if line.startswith(starts)]):
            line = await asyncio.to_thread(self.process.stdout.readline)
            assert line, f"it told only {self.told}"
            self.told.append(line.strip())
        self.told.remove(found[0])
        return found[0]

    async def say(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{text}\n")
        self.process.stdin.flush()
        return await self.line("said", "refused")

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        await asyncio.to_thread(self.process.communicate)


@pytest.fixture
def on_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process one that sees neither processes nor locks of others."""
    monkeypatch.setattr(process_tree, "boot_id", lambda: "another boot")
    monkeypatch.setattr("platform.node", lambda: "another machine")
    monkeypatch.setattr(OwnerLocks, "is_held", lambda self, token: True if token in self._held else None)


@asynccontextmanager
async def watching(
    stage: Stage, clock: ManualClock, conversation_id: str, *, is_seen: bool = True
) -> AsyncIterator[None]:
    """Let the time pass in which an owner is watched; if it is to be seen, not before it has said that it lives."""

    async def pass_time() -> None:
        await clock.until_waiting()
        before = _owner(stage, conversation_id)
        while is_seen and _owner(stage, conversation_id) == before:
            await asyncio.sleep(0.01)
        clock.advance(owner.WATCH_SECONDS)

    passing = asyncio.create_task(pass_time())
    yield
    await passing


def _owner(stage: Stage, conversation_id: str) -> Owner | None:
    with SqliteStore(stage.db) as store:
        return store.conversation(conversation_id).owner


@pytest.mark.parametrize("prefix", ELSEWHERE)
async def test_who_is_elsewhere_does_not_take_a_living_owner_for_dead(team: Stage, prefix: tuple[str, ...]) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Mine [NEXT: a]")
        # No heartbeat is enough for it, so that only the lock counts.
        other = Elsewhere(team, conversation.id, prefix=prefix, lost=0)
        assert f"is open in process {os.getpid()}" in await other.line("in use", "owns")
        await other.end()
        assert (await tell(conversation, "Still mine [NEXT: b]"))[-1] == "b: I am b."


@pytest.mark.parametrize("prefix", ELSEWHERE)
async def test_who_owns_it_elsewhere_owns_it_until_it_dies(
    team: Stage, monkeypatch: pytest.MonkeyPatch, prefix: tuple[str, ...]
) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: a]")
    other = Elsewhere(team, conversation.id, prefix=prefix)
    assert await other.line("owns", "in use") == f"owns {conversation.id}"
    with monkeypatch.context() as patch:
        patch.setattr(owner, "LOST_SECONDS", 0.0)
        patch.setattr(owner, "WATCH_SECONDS", 0.0)
        with pytest.raises(ConversationInUse):
            async with team.open(conversation.id):
                pass
    other.kill()
    await other.end()
    assert becomes(False, lambda: _is_locked(team, conversation.id))
    async with team.open(conversation.id) as again:
        assert (await tell(again, "Mine again [NEXT: b]"))[-1] == "b: I am b."


def _is_locked(stage: Stage, conversation_id: str) -> bool | None:
    with SqliteStore(stage.db) as store:
        left = store.conversation(conversation_id).owner
        return None if left is None else store.is_locked(left)


async def test_an_owner_of_another_boot_lives_as_long_as_its_lock_is_held(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with team.open() as conversation:
        monkeypatch.setattr(process_tree, "boot_id", lambda: "another boot")
        monkeypatch.setattr(owner, "LOST_SECONDS", 0.0)
        monkeypatch.setattr(owner, "WATCH_SECONDS", 0.0)
        with pytest.raises(ConversationInUse):
            async with team.open(conversation.id):
                pass
        assert (await tell(conversation, "Mine [NEXT: a]"))[-1] == "a: I am a."


async def test_an_owner_on_another_machine_lives_as_long_as_it_is_seen(
    team: Stage, clock: ManualClock, on_another_machine: None
) -> None:
    other = Elsewhere(team, "new", beat=0.1)
    id_ = (await other.line("owns")).partition(" ")[2]
    assert (await other.say("Hello [NEXT: kim]")) == "said Hello [NEXT: kim]"
    clock.advance(SILENCE_SECONDS)
    with pytest.raises(ConversationInUse, match=f"process {other.process.pid} on "):
        async with watching(team, clock, id_), team.open(id_):
            pass
    assert (await other.say("Still mine [NEXT: kim]")).startswith("said")
    other.kill()
    await other.end()
    clock.advance(SILENCE_SECONDS)
    async with watching(team, clock, id_, is_seen=False), team.open(id_) as again:
        assert (await said(again))[-1] == "kim: Still mine [NEXT: kim]"


async def test_a_clock_that_differs_makes_nobody_dead(
    team: Stage, clock: ManualClock, on_another_machine: None
) -> None:
    other = Elsewhere(team, "new", beat=0.1)
    id_ = (await other.line("owns")).partition(" ")[2]
    for hours in (-5, 10):
        clock.advance(hours * 3_600)
        with pytest.raises(ConversationInUse):
            async with watching(team, clock, id_), team.open(id_):
                pass
    other.kill()
    await other.end()


async def test_what_a_machine_had_open_when_it_was_started_again_is_not_waited_for(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello [NEXT: a]")
    monkeypatch.setattr(owner, "WATCH_SECONDS", 10_000.0)
    with SqliteStore(team.db) as store:
        before = replace(this_process(), boot_id="the last boot", seen_at=1_000, token="gone")
        store.claim(conversation.id, before, is_alive=lambda _: False)
    async with team.open(conversation.id) as again:
        assert len(await said(again)) == 2


async def test_who_is_stopped_on_this_machine_keeps_its_conversation(team: Stage, clock: ManualClock) -> None:
    other = Elsewhere(team, "new", beat=0.1)
    id_ = (await other.line("owns")).partition(" ")[2]
    os.kill(other.process.pid, signal.SIGSTOP)
    clock.advance(SILENCE_SECONDS)
    with pytest.raises(ConversationInUse):
        async with team.open(id_):
            pass
    os.kill(other.process.pid, signal.SIGCONT)
    assert (await other.say("Mine [NEXT: kim]")).startswith("said")
    await other.end()


@pytest.mark.parametrize("beat", [0.1, 10_000], ids=["notices by its heartbeat", "notices when it writes"])
async def test_who_was_stopped_for_longer_than_its_heartbeat_and_lost_its_conversation_writes_nothing(
    stage: Stage, clock: ManualClock, on_another_machine: None, beat: float
) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", HANG)
    other = Elsewhere(stage, "new", "Go [NEXT: a]", beat=beat)
    id_ = (await other.line("owns")).partition(" ")[2]
    (agent,) = process_tree.descendants(other.process.pid)[-1:]
    os.kill(other.process.pid, signal.SIGSTOP)
    clock.advance(SILENCE_SECONDS)
    async with watching(stage, clock, id_, is_seen=False), stage.open(id_) as conversation:
        assert [turn.id for turn in conversation.undecided] == ["1"]
        await conversation.skip()
        assert (await tell(conversation, "Mine now [NEXT: b]"))[-1] == "b: I am b."
        before = await _picture(conversation)
        os.kill(other.process.pid, signal.SIGCONT)
        if beat > 1:
            assert "is open in process" in await other.say("Too late [NEXT: b]")
        assert "is open in process" in await other.line("paused")
        assert await other.line("turn") == "turn 1 interrupted"
        assert becomes(False, lambda: process_tree.is_alive(agent))
        assert (await other.say("Still too late [NEXT: b]")).startswith("refused")
        assert await _picture(conversation) == before
        assert (await tell(conversation, "Still mine [NEXT: b]"))[-1] == "b: I am b."
        assert await conversation.read(lambda store, _: store.fsck()) == []
    await other.end()


async def test_every_decision_of_who_lost_it_is_refused_and_its_agents_stop(stage: Stage, clock: ManualClock) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", HANG)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        # All that the agent says is stored by then, so that nothing else is written but the heartbeat.
        while not await conversation.read(_output):
            clock.advance(KEEP_SECONDS)
        _steal(stage, conversation.id)
        await clock.until(lambda: conversation.is_lost)
        await conversation.until_quiet()
        assert conversation.running == {}
        assert [ended.state for ended in events_so_far(conversation, TurnEnded)] == ["interrupted"]
        assert "Continue there" in events_so_far(conversation, Paused)[-1].text
        before = await _picture(conversation)
        for change in (
            lambda: conversation.say("More [NEXT: b]"),
            lambda: conversation.note("More"),
            lambda: conversation.ask("a"),
            lambda: conversation.continue_turns(),
            lambda: conversation.drop(),
            lambda: conversation.reorder(["2"]),
            lambda: conversation.set_task("More"),
            lambda: conversation.rename("More"),
        ):
            with pytest.raises(NotTheOwner):
                await change()
        assert await _picture(conversation) == before
    # Closing does not take it from the thief either.
    with SqliteStore(stage.db) as store:
        kept = store.conversation(conversation.id)
        assert kept.owner is not None
        assert kept.owner.token == "thief"
        assert [turn.state for turn in store.turns(kept.id)] == ["running", "queued"]


async def test_output_that_cannot_be_kept_stops_the_agent(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "BEAT_SECONDS", 1e9)
    stage.person("kim")
    stage.agent("a", [{"say": "I work"}, GO, {"say": "still"}, {"hang": True}])
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await until_at_work(conversation, "a")
        while not await conversation.read(_output):
            clock.advance(KEEP_SECONDS)
        _steal(stage, conversation.id)
        stage.go()
        await clock.until(lambda: conversation.is_lost)
        await conversation.until_quiet()
        assert [ended.state for ended in events_so_far(conversation, TurnEnded)] == ["interrupted"]


async def test_a_reply_of_who_lost_it_is_not_stored(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", [{"say": "I work"}, GO])
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await until_at_work(conversation, "a")
        _steal(stage, conversation.id)
        stage.go()
        await conversation.until_quiet()
        assert len(await said(conversation)) == 1
        assert conversation.running == {}
        assert conversation.paused is not None
        assert "is open in process 7" in conversation.paused


HERE = "this machine"
LIVES = {
    "seen lately, without a lock, in a pid namespace that we cannot see": (HERE, 0, None, True),
    "not seen lately, without a lock": (HERE, -60, None, False),
    "seen lately, and its lock is free": (HERE, 0, False, False),
    "not seen lately, and its lock is held": (HERE, -60, True, True),
    "on another machine, seen lately, and no lock is shared": ("elsewhere", 0, False, True),
    "on another machine, not seen lately": ("elsewhere", -60, False, False),
    "on another machine, its lock is held": ("elsewhere", -60, True, True),
    "on another machine whose clock is ahead": ("elsewhere", 3_600, None, False),
}


@pytest.mark.parametrize(("place", "seen", "lock", "lives"), LIVES.values(), ids=LIVES)
def test_who_is_alive(tmp_path: Path, place: str, seen: int, lock: bool | None, lives: bool) -> None:
    me = this_process()
    nobody = replace(me, pid=2**22 + 1, seen_at=me.seen_at + seen * 1_000)
    one = nobody if place == HERE else replace(nobody, boot_id="another boot", host="another machine")
    with SqliteStore(tmp_path / "a.db") as store, SqliteStore(tmp_path / "a.db") as holder:
        if lock is not None:
            assert holder._locks.hold(one.token)
        if lock is False:
            holder._locks.let_go(one.token)
        assert owner.is_alive(one, store) is lives


async def test_who_could_not_write_that_it_let_go_keeps_nobody_out(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk while a conversation is closed, and this process, `bullpen serve` perhaps, lives on."""
    with monkeypatch.context() as patch:
        async with team.open() as conversation:
            await conversation.say("Hello [NEXT: kim]")
            patch.setattr(SqliteStore, "release", _full(SqliteStore.release))
    with SqliteStore(team.db) as store:
        left = store.conversation(conversation.id).owner
        assert left is not None
        assert store.is_locked(left) is False
    other = Elsewhere(team, conversation.id)
    assert await other.line("owns", "in use") == f"owns {conversation.id}"
    await other.end()
    async with team.open(conversation.id) as again:
        assert (await tell(again, "Mine again [NEXT: b]"))[-1] == "b: I am b."
    assert not list(team.db.parent.glob("*-owner-*"))


def _full(release: Any) -> Any:
    def release_on_a_full_disk(store: SqliteStore, *args: Any) -> None:
        def full() -> None:
            raise StoreFull(store.path)

        setattr(store._database, "writing_without_sync", full)  # noqa: B010
        release(store, *args)

    return release_on_a_full_disk


async def test_who_could_not_look_at_what_it_closes_keeps_nobody_out(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is away while a conversation is closed, and a node that lives on with its store."""
    loaded = load_team(team.write())
    with SqliteStore(team.db) as store:
        with monkeypatch.context() as patch:
            async with open_conversation(loaded, store, StoreThread()) as conversation:
                await conversation.say("Hello [NEXT: kim]")
                patch.setattr(store, "conversation", _away)

        assert store.conversation(conversation.id).owner is None
        async with open_conversation(loaded, store, StoreThread(), conversation.id) as again:
            assert again.id == conversation.id


def _away(_: str) -> StoredConversation:
    raise StoreUnreachable("postgresql://x", "connection refused", has_answered=False)


def test_nothing_is_left_of_a_claim_that_cannot_be_written(team: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteStore(team.db) as store:
        store.create("c", team="t", team_file="", started_at=1)

        def full() -> None:
            raise StoreFull(store.path)

        with monkeypatch.context() as patch:
            patch.setattr(store._database, "writing_without_sync", full)
            with pytest.raises(StoreFull):
                store.claim("c", this_process(), is_alive=lambda _: False)
        assert not list(team.db.parent.glob("*-owner-*"))
        assert store._locks._held == {}
        assert store.claim("c", this_process(), is_alive=lambda _: True)


async def test_who_has_a_conversation_open_that_is_deleted_stops(stage: Stage, clock: ManualClock) -> None:
    stage.person("kim")
    stage.agent("a", HANG)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await until_at_work(conversation, "a")
        with SqliteStore(stage.db) as store:
            with pytest.raises(NotTheOwner):
                store.delete(conversation.id, at=1)
            # Nothing but a mistake could do this, or another program.
            store.delete(conversation.id, at=1, owner=store.conversation(conversation.id).owner)
        await clock.until(lambda: conversation.is_lost)
        await conversation.until_quiet()
        assert [ended.state for ended in events_so_far(conversation, TurnEnded)] == ["interrupted"]
        assert conversation.is_lost


@pytest.mark.parametrize("change", ["repair", "delete", "archive"])
def test_what_changes_a_conversation_watches_an_owner_on_another_machine(
    team: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Its clock is behind, so it seems not to have been seen for a minute; but it says that it is alive."""
    changes: dict[str, Callable[[Store], object]] = {
        "repair": lambda store: repair(store, "c"),
        "delete": lambda store: listing.delete(store, "c", at=1),
        "archive": lambda store: listing.archive(store, "c", at=1, can_wait=True),
    }
    late = milliseconds() - 60_000
    elsewhere = replace(this_process(), boot_id="another boot", host="another machine", seen_at=late)
    with SqliteStore(team.db) as store, SqliteStore(team.db) as theirs:
        store.create("c", team="t", team_file="", started_at=1)
        monkeypatch.setattr(theirs._locks, "hold", lambda _: False)
        theirs.claim("c", elsewhere, is_alive=lambda _: False)

        def meanwhile(seconds: float) -> None:
            if seconds:
                theirs.beat("c", elsewhere, at=late + 5_000)

        monkeypatch.setattr(clock, "pause", meanwhile)
        with pytest.raises(BullpenError, match=r"open|another machine"):
            changes[change](store)
        if change == "archive":
            with pytest.raises(BullpenError, match="may have c open"):
                listing.archive(store, "c", at=1)
        theirs.beat("c", elsewhere, at=late + 10_000)
        assert store.conversation("c").archived_at is None

        monkeypatch.setattr(clock, "pause", lambda _: None)
        changes[change](store)
        if change != "archive":
            with pytest.raises((NotTheOwner, UnknownConversation)):
                theirs.beat("c", elsewhere, at=late + 15_000)


def test_only_an_owner_of_this_machine_ended_when_this_machine_was_started_again(tmp_path: Path) -> None:
    long_ago = replace(this_process(), boot_id="another boot", seen_at=1_000)
    with SqliteStore(tmp_path / "a.db") as store:
        assert not owner._must_be_watched(long_ago, store)
        assert owner._must_be_watched(replace(long_ago, host="another machine"), store)


def test_an_owner_of_an_earlier_bullpen_is_known_by_its_process_alone(tmp_path: Path) -> None:
    me = replace(this_process(), host="", seen_at=0)
    with SqliteStore(tmp_path / "a.db") as store:
        assert owner.life_of(me, store) == "alive"
        assert owner.life_of(replace(me, start_time=me.start_time + 1), store) == "dead"
        assert owner.life_of(replace(me, pid=2**22 + 1), store) == "dead"


async def test_an_owner_elsewhere_whose_clock_is_ahead_and_who_says_nothing_is_dead(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "WATCH_SECONDS", 0.0)
    async with team.open() as conversation:
        await conversation.say("Hello [NEXT: kim]")
    with SqliteStore(team.db) as store:
        ahead = replace(this_process(), boot_id="another", host="another", seen_at=milliseconds() + 3_600_000)
        store.claim(conversation.id, ahead, is_alive=lambda _: False)
        store._locks.remove(ahead.token)
    async with team.open(conversation.id) as again:
        assert len(await said(again)) == 1


async def test_who_lost_it_at_a_limit_becomes_quiet(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.people_and_agents("kim", "a b")
    stage.limits["turns_per_message"] = 1
    update = SqliteStore.update

    def robbed(self: SqliteStore, conversation_id: str, *args: Any, **kwargs: Any) -> None:
        monkeypatch.setattr(SqliteStore, "update", update)
        _steal(stage, conversation_id)
        update(self, conversation_id, *args, **kwargs)

    async with stage.open() as conversation:
        monkeypatch.setattr(SqliteStore, "update", robbed)
        await tell(conversation, "Go [NEXT: a, b]")
        assert conversation.paused is not None
        assert "is open in process 7" in conversation.paused
        with pytest.raises(NotTheOwner):
            await conversation.continue_turns()


def _steal(stage: Stage, conversation_id: str) -> None:
    with SqliteStore(stage.db) as store:
        thief = Owner(token="thief", pid=7, start_time=7, boot_id="thief")
        assert store.claim(conversation_id, thief, is_alive=lambda _: False)


def _output(store: Store, conversation_id: str) -> bytes:
    record = store.record(conversation_id, "1")
    return b"" if record is None else record.stream


async def _picture(conversation: Conversation) -> object:
    """Return all that is stored, but for when its owner was seen."""
    return await conversation.read(
        lambda store, id_: (replace(store.conversation(id_), owner=None), store.messages(id_), store.turns(id_))
    )


async def test_the_next_turns_number_comes_from_the_table(team: Stage) -> None:
    """Two owners once left a conversation in which every message was refused: "Turn 2 is already done"."""
    async with team.open() as conversation:
        await tell(conversation, "One [NEXT: a]")
        await tell(conversation, "Two [NEXT: b]")
    with closing(sqlite3.connect(team.db)) as db, db:
        db.execute("UPDATE states SET progress = json_set(progress, '$.turns_made', 1, '$.message_number', 2)")
    async with team.open(conversation.id) as again:
        assert (again.progress.turns_made, again.progress.message_number) == (2, 4)
        assert (await tell(again, "Three [NEXT: a & b]"))[-3:-2] == ["kim: Three [NEXT: a & b]"]
        assert sorted((await _turns(team, again)).items())[2:] == [("3", "done"), ("4", "done")]
        with closing(sqlite3.connect(team.db)) as db, db:
            db.execute(
                "INSERT INTO turns (conversation, id, member, asked_by, intent, step, position, state, queued_at,"
                " ended_at) VALUES (1, '5', 'a', 1, 2, 0, 9, 'dropped', 1, 1)"
            )
        assert (await tell(again, "Four [NEXT: a]"))[-1] == "a: I am a."
        assert (await _turns(team, again))["6"] == "done"
        with closing(sqlite3.connect(team.db)) as db, db:
            db.execute("UPDATE turns SET id = '9' WHERE id = '5'")
        await again.ask("b, a, b")
        await again.until_quiet()
        assert (await _turns(team, again)).keys() == {"1", "2", "3", "4", "6", "7", "8", "9"}


async def _turns(stage: Stage, conversation: Conversation) -> dict[str, str]:
    turns = await conversation.read(lambda store, id_: store.turns(id_))
    return {turn.id: turn.state for turn in turns}
