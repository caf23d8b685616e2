"""What was acknowledged stays, whatever happens to the process, the disk, the callers and the team file."""

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests import forked
from tests.conversation.stage import (
    FAIL,
    GO,
    HANG,
    Stage,
    events_so_far,
    said,
    tell,
    until_at_work,
    until_said,
    waiting,
)

from bullpen.app import open_conversation, open_store
from bullpen.conversation import turn_loop
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Dropped, Paused, Said, Trouble, TurnEnded
from bullpen.conversation.turn_checks import TurnChecks
from bullpen.conversation.turn_files import TurnFiles
from bullpen.errors import (
    ConversationClosed,
    ConversationInUse,
    MessageDiffers,
    NotTheOwner,
    StoreError,
    StoreFull,
    UnknownConversation,
    UnknownMember,
)
from bullpen.exchange.files import FORMATS, Format, write_export
from bullpen.routing.progress import Progress
from bullpen.routing.queue import TurnQueue
from bullpen.store.base import Store
from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import load_team
from bullpen.view.listing import conversation_summary
from bullpen.view.messages import plain_messages, shown_messages

OPEN = """
import asyncio, sys
from bullpen import open_team

async def main():
    async with open_team(sys.argv[1], resume=sys.argv[2], db=sys.argv[3]):
        pass

asyncio.run(main())
"""


async def test_sending_again_is_harmless(team: Stage) -> None:
    async with team.open() as conversation:
        first = await conversation.say("Hello [NEXT: a]", message_id="mine")
        again = await conversation.say("Hello [NEXT: a]", message_id="mine")
        await conversation.until_quiet()
        assert (first.already_stored, again.already_stored) == (False, True)
        assert first.message == again.message
        assert await said(conversation) == ["kim: Hello [NEXT: a]", "a: I am a."]
        with pytest.raises(MessageDiffers):
            await conversation.say("Something else", message_id="mine")
    async with team.open(conversation.id) as again_open:
        assert (await again_open.say("Hello [NEXT: a]", message_id="mine")).already_stored
        assert len(events_so_far(again_open, Said)) == 0


async def test_sending_again_is_harmless_also_when_somebody_else_is_awaited_by_now(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "b")
    stage.agent("a", "Kim? [NEXT: kim]", "Lee? [NEXT: lee]", "Nobody? [NEXT: b]")
    async with stage.open() as conversation:
        await tell(conversation, "[FROM: lee] Hello")
        await tell(conversation, "Here.", message_id="mine")
        assert conversation.waits_for == "lee"
        again = await conversation.say("Here.", message_id="mine")
        assert (again.already_stored, again.message.speaker.role_id) == (True, "kim")
        with pytest.raises(MessageDiffers):
            await conversation.say("Here.", message_id="mine", sender="lee")
        await conversation.until_quiet()
        assert len(await said(conversation)) == 4


async def test_closing_in_mid_turn_ends_it_and_keeps_the_rest(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", HANG)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        waiter = asyncio.create_task(conversation.until_quiet())
    await waiter
    assert (await _states(stage, conversation)) == {"1": "interrupted", "2": "queued"}
    async with stage.open(conversation.id) as again:
        assert [turn.id for turn in again.undecided] == ["1"]
        assert again.paused is None, "b cannot begin before a is decided"
        await again.skip()
        await again.until_quiet()
        assert (await said(again))[-1] == "b: I am b."


async def test_closing_before_a_turn_began_leaves_it_in_the_queue(team: Stage) -> None:
    async with team.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
    assert (await _states(team, conversation)).popitem() == ("2", "queued")
    async with team.open(conversation.id) as again:
        assert waiting(again)[-1] == "b"


async def test_a_closed_conversation_says_so(team: Stage) -> None:
    async with team.open() as conversation:
        pass
    with pytest.raises(ConversationClosed):
        await conversation.say("Hello?")
    with pytest.raises(ConversationClosed):
        await conversation.continue_turns()


async def test_one_conversation_has_one_owner(team: Stage) -> None:
    async with team.open() as conversation:
        with pytest.raises(ConversationInUse, match=str(os.getpid())):
            async with team.open(conversation.id):
                pass
        other = await asyncio.to_thread(
            forked.run,
            [sys.executable, "-c", OPEN, str(team.path), conversation.id, str(team.db)],
            capture_output=True,
            encoding="utf-8",
        )
        assert "ConversationInUse" in other.stderr
        assert (await tell(conversation, "Still mine"))[-1] == "a: I am a."
    async with team.open(conversation.id):
        pass


async def test_a_conversation_that_is_not_there_is_unknown(team: Stage) -> None:
    with pytest.raises(UnknownConversation):
        async with team.open("no-such-thing"):
            pass


async def test_files_are_private(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello")
        modes = {path.name: path.stat().st_mode & 0o777 for path in team.db.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert team.db.parent.stat().st_mode & 0o777 == 0o700


async def test_who_left_the_team_is_not_asked_any_more(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "b c")
    stage.agent("a", FAIL)
    async with stage.open() as conversation:
        await tell(conversation, "First [NEXT: c]", sender="lee")
        await tell(conversation, "Go [NEXT: a, c]", sender="lee")
        await tell(conversation, "And you [NEXT: kim, c]", sender="lee")
        assert (conversation.waits_for, waiting(conversation)) == ("kim", ["c", "kim", "c"])
    del stage.members["c"], stage.members["a"], stage.members["lee"]
    async with stage.open(conversation.id) as again:
        assert [turn.member for turn in again.waiting] == ["kim"]
        assert len(events_so_far(again, Dropped)[0].turns) == 2
        with pytest.raises(UnknownMember):
            await again.retry()
        await again.hand_over("b")
        await again.until_quiet()
        assert (await tell(again, "I am the only one."))[-2:] == ["kim: I am the only one.", "b: I am b."]


async def test_a_gone_person_is_not_waited_for_and_a_gone_agent_does_not_get_the_next_word(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "a b")
    stage.agent("c", "Lee? [NEXT: lee]")
    async with stage.open() as conversation:
        await tell(conversation, "Hello [NEXT: c]", sender="kim")
        await tell(conversation, "Hm [NEXT: c]", sender="lee")
    del stage.members["c"], stage.members["lee"]
    async with stage.open(conversation.id) as again:
        assert again.waits_for is None
        assert (await tell(again, "Anybody?"))[-1] == "a: I am a."


async def test_what_an_agent_handed_over_that_has_left_the_team_is_forgotten(stage: Stage) -> None:
    stage.people_and_agents("kim", "a b")
    stage.agent("c", "Kim? [NEXT: kim]")
    async with stage.open() as conversation:
        await tell(conversation, "Hello [NEXT: c]")
        assert conversation.progress.handed_over == {"kim": "c"}
    del stage.members["c"]
    async with stage.open(conversation.id) as again:
        assert again.progress.handed_over == {}
        assert (await tell(again, "Anybody?"))[-1] == "a: I am a."


async def test_a_turn_that_ran_when_the_process_was_killed_is_interrupted_and_waits(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", HANG, "Again.")
    id_ = await _left_behind(stage, "Go [NEXT: a, b]", after="start_turn")
    with SqliteStore(stage.db) as store:
        listed, before = conversation_summary(store, id_), store.conversation(id_).owner
    assert (listed.state, listed.needs_you) == ("interrupted", True)
    async with stage.open(id_) as again:
        turn = await again.read(lambda store, id_: store.turn(id_, "1"))
        assert before is not None
        assert turn.started_at is not None
        assert turn.ended_at == max(turn.started_at, before.seen_at), "when its process was last seen, not now"
        assert again.paused == "bullpen stopped during turn 1 of a. Files may have been changed."
        assert again.waits_for == "kim"
        kinds = [type(news).__name__ for news in events_so_far(again)]
        assert kinds == ["Paused", "Undecided"]
        await again.until_quiet()
        assert stage.prompts("a") == [], "nothing runs by itself"
        assert (await again.read(conversation_summary)).state == "undecided"
        await again.hand_over("b")
        await again.until_quiet()
        assert (await said(again))[1:] == ["b: I am b."]


async def test_what_a_killed_turn_had_said_and_done_stays_in_its_place(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", [{"say": "Half of it "}, {"hang": True}], "Again.")
    id_ = await _left_behind(stage, "Go [NEXT: a]", after="keep_output")
    async with stage.open(id_) as again:
        [ended] = (await again.read(plain_messages))[0].unanswered
        assert (ended.turn, ended.member, ended.state, ended.after) == ("1", "a", "interrupted", 1)
        assert ended.said == "Half of it "
        await again.retry()
        await again.until_quiet()
        [ended] = (await again.read(plain_messages))[0].unanswered
        assert (ended.after, ended.said) == (1, "Half of it "), "also after its retry"


async def test_what_a_cancelled_and_a_failed_turn_had_said_stays_in_its_place(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", [{"say": "Begun."}, {"hang": True}])
    stage.agent("b", [{"say": "Broken."}, {"exit": 3}])
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await until_said(conversation, "Begun.")
        await conversation.cancel()
        await tell(conversation, "And you [NEXT: b]")
        messages = await conversation.read(plain_messages)
        ended = [turn for message in messages for turn in message.unanswered]
        assert [(one.member, one.state, one.after, one.said) for one in ended] == [
            ("a", "cancelled", 1, "Begun."),
            ("b", "failed", 2, "Broken."),
        ]
        for number, member in enumerate("ab"):
            [page] = await conversation.read(shown_messages, after=number, limit=1)
            assert [turn.member for turn in page.unanswered] == [member]
        for file_format in FORMATS:
            text = await conversation.read(_exported, file_format)
            assert "Begun." in text
            assert "Broken." in text


def _exported(store: Store, conversation_id: str, file_format: Format) -> str:
    file = io.StringIO()
    write_export(store, conversation_id, file, file_format)
    return file.getvalue()


@pytest.mark.parametrize("method", ["update", "recover"])
async def test_being_killed_while_taking_over_changes_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    stage.people_and_agents("kim", "a b")
    id_ = await _left_behind(stage, "Go [NEXT: a, b]", after="start_turn")
    for after in (False, True):
        with monkeypatch.context() as patch:
            patch.setattr(SqliteStore, method, _dies(getattr(SqliteStore, method), after=after))
            with pytest.raises(Killed):
                async with stage.open(id_):
                    pass
    async with stage.open(id_) as again:
        assert [turn.id for turn in again.undecided] == ["1"]
        assert again.paused is not None
        await again.skip()
        await again.until_quiet()
        assert (await said(again))[-1] == "b: I am b."


async def test_what_waited_when_the_process_was_killed_still_waits(stage: Stage) -> None:
    stage.people_and_agents("kim", "a b")
    id_ = await _left_behind(stage, "Go [NEXT: a, b]", after="append")
    async with stage.open(id_) as again:
        assert again.paused == "2 turns were waiting when bullpen stopped."
        await again.until_quiet()
        assert len(await said(again)) == 1
        await again.continue_turns()
        await again.until_quiet()
        assert (await said(again))[1:] == ["a: I am a.", "b: I am b."]


class Killed(Exception):
    """Stands for the end of the process."""


def _dies(method: Callable[..., Any], *, after: bool) -> Callable[..., Any]:
    def dying(*args: Any, **kwargs: Any) -> None:
        if after:
            method(*args, **kwargs)
        raise Killed

    return dying


class FullDisk:
    """Lets a method of the store fail a number of times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str, times: int) -> None:
        self.left = times
        real = getattr(SqliteStore, method)

        def failing(store: SqliteStore, *args: Any, **kwargs: Any) -> Any:
            if self.left:
                self.left -= 1
                raise StoreFull("the disk")
            return real(store, *args, **kwargs)

        monkeypatch.setattr(SqliteStore, method, failing)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_loop, "STORE_RETRY_SECONDS", (0.01,))


@pytest.mark.usefixtures("impatient")
async def test_a_reply_that_cannot_be_stored_is_kept_until_it_can(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", [{"say": "Precious."}, GO])
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        FullDisk(monkeypatch, "append", 3)
        stage.go()
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["a: Precious.", "b: I am b."]
        assert len(events_so_far(conversation, Trouble)) == 3


@pytest.mark.usefixtures("impatient")
async def test_a_reply_that_waits_for_the_disk_is_not_lost_by_a_cancel_or_by_closing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", [{"say": "Precious."}, GO])
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        disk = FullDisk(monkeypatch, "append", 10**9)
        stage.go()
        while not events_so_far(conversation, Trouble):
            await asyncio.sleep(0.01)
        cancelling = asyncio.create_task(conversation.cancel())
        before = len(events_so_far(conversation, Trouble))
        while len(events_so_far(conversation, Trouble)) < before + 2:
            await asyncio.sleep(0.01)
        disk.left = 0
        await cancelling
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["a: Precious."]
        assert waiting(conversation) == ["b"]


@pytest.mark.usefixtures("impatient")
async def test_closing_on_a_full_disk_ends(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", "Precious.", HANG)
    async with stage.open() as conversation:
        disk = FullDisk(monkeypatch, "append", 0)
        await conversation.say("Go [NEXT: a, b]")
        disk.left = 10**9
        while not events_so_far(conversation, Trouble):
            await asyncio.sleep(0.01)
    disk.left = 0
    async with stage.open(conversation.id) as again:
        assert [turn.member for turn in again.undecided] == ["a"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("method", ["start_turn", "end_turn"])
async def test_no_trouble_with_the_disk_leaves_a_turn_hanging(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", FAIL, "Works.", "Works.")
    async with stage.open() as conversation:
        FullDisk(monkeypatch, method, 2)
        await tell(conversation, "Go [NEXT: a, b]")
        for _ in range(3):
            if conversation.paused is not None:
                assert "the disk" in conversation.paused
                assert events_so_far(conversation, Paused)[-1].kind == "trouble"
                await conversation.continue_turns()
                await conversation.until_quiet()
        assert [turn.member for turn in conversation.undecided] == ["a"]
        await conversation.retry()
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["a: Works.", "b: I am b."]


@pytest.mark.usefixtures("impatient", "commands_are_watched")
async def test_a_turn_begins_when_there_is_room_to_store_what_it_found(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.person("kim")
    stage.agent("cat", command=["sh", "-c", "echo x > made.txt; echo Done."], cwd=".")
    async with stage.open() as conversation:
        FullDisk(monkeypatch, "add_changes", 2)
        assert await tell(conversation, "Go [NEXT: cat]") == ["kim: Go [NEXT: cat]", "cat: Done."]
        begins = "The turn begins as soon as that works."
        assert [event.text.endswith(begins) for event in events_so_far(conversation, Trouble)] == [True, True]
        (record,) = await conversation.read(lambda store, which: store.changes(which))
        assert "made.txt" in [file.path for file in record.changes.files]


async def test_no_turn_runs_whose_beginning_was_not_stored_when_another_owner_came(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.people_and_agents("kim", "a")
    async with stage.open() as conversation:

        async def begin(*_: object) -> None:
            conversation._journal.lost = NotTheOwner(conversation.id)
            raise StoreFull("the disk")

        monkeypatch.setattr(TurnFiles, "begin", begin)
        assert await tell(conversation, "Go [NEXT: a]") == ["kim: Go [NEXT: a]"]
        assert stage.prompts("a") == []
        assert [event.state for event in events_so_far(conversation, TurnEnded)] == ["interrupted"]


async def test_a_cap_that_cannot_be_stored_pauses_all_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.people_and_agents("kim", "a b")
    stage.limits["turns_per_message"] = 1
    async with stage.open() as conversation:
        disk = FullDisk(monkeypatch, "update", 10**9)
        await tell(conversation, "Go [NEXT: a, b]")
        assert conversation.paused is not None
        with pytest.raises(StoreError):
            await conversation.continue_turns()
        assert conversation.paused is not None
        disk.left = 0
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "b: I am b."


async def test_a_message_that_cannot_be_stored_changes_nothing(team: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async with team.open() as conversation:
        FullDisk(monkeypatch, "append", 1)
        before = conversation.progress
        with pytest.raises(StoreFull):
            await conversation.say("Hello", message_id="mine")
        assert (conversation.progress, conversation.waiting) == (before, ())
        await conversation.say("Hello", message_id="mine")
        await conversation.until_quiet()
        assert await said(conversation) == ["kim: Hello", "a: I am a."]


async def test_a_turn_that_somebody_else_has_ended_does_not_stop_the_conversation(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", [{"say": "I work"}, GO])
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        owner = (await conversation.read(lambda store, id_: store.conversation(id_))).owner
        assert owner is not None
        with SqliteStore(stage.db) as thief:
            thief.release(conversation.id, owner)
            thief.recover(conversation.id, at=1)
        stage.go()
        await conversation.until_quiet()
        assert conversation.paused is not None
        assert "is not open here any more" in conversation.paused
        assert conversation.running == {}


async def test_a_turn_whose_reply_is_stored_does_not_end_a_second_time(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a mistake after the commit")

    stage.people_and_agents("kim", "a")
    monkeypatch.setattr(TurnChecks, "replied", fail)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await conversation.until_quiet()
        turns = await conversation.read(lambda store, id_: store.turns(id_))

        assert [(turn.state, turn.failure) for turn in turns] == [("done", None)]
        assert (conversation.paused, conversation.undecided, conversation.running) == (None, (), {})


ACTIONS: dict[str, Callable[[Conversation], Any]] = {
    "say": lambda conversation: conversation.say("More [NEXT: b]", message_id="more"),
    "retry": lambda conversation: conversation.retry(),
    "skip": lambda conversation: conversation.skip(),
    "hand over": lambda conversation: conversation.hand_over("b"),
    "ask": lambda conversation: conversation.ask("b"),
    "drop": lambda conversation: conversation.drop(),
    "go on": lambda conversation: conversation.continue_turns(),
    "set task": lambda conversation: conversation.set_task("this"),
    "reorder": lambda conversation: conversation.reorder(["3"]),
}


@pytest.mark.parametrize("action", ACTIONS)
async def test_whoever_stops_waiting_leaves_memory_and_disk_in_agreement(stage: Stage, action: str) -> None:
    stage.people_and_agents("kim", "b c")
    stage.agent("a", FAIL)
    async with stage.open() as conversation:
        for steps in range(12):
            await tell(conversation, f"Go {steps} [NEXT: a, c]", message_id=f"go {steps}")
            act = ACTIONS[action] if action not in ("say", "reorder") else _for_step(action, conversation, steps)
            caller = asyncio.ensure_future(act(conversation))
            for _ in range(steps):
                await asyncio.sleep(0 if steps % 2 else 0.001)
            caller.cancel()
            await asyncio.wait([caller])
            await conversation.until_quiet()
            await _agree(conversation)
        assert await conversation.read(lambda store, _: store.fsck()) == []


def _for_step(action: str, conversation: Conversation, steps: int) -> Callable[[Conversation], Any]:
    last = conversation.waiting[-1].id
    return {
        "say": lambda c: c.say(f"More {steps} [NEXT: b]", message_id=f"more {steps}"),
        "reorder": lambda c: c.reorder([last]),
    }[action]


async def _agree(conversation: Conversation) -> None:
    """Check that what is in memory is what another process would read from the disk."""
    # Whoever was cancelled may have left something to be finished behind them.
    await asyncio.gather(*conversation._journal.changes, return_exceptions=True)
    await conversation.until_quiet()
    stored = await conversation.read(lambda store, id_: store.conversation(id_))
    queued = await conversation.read(lambda store, id_: store.queued(id_))
    assert TurnQueue(turn.waiting for turn in queued).waiting == conversation.waiting
    assert msgspec.convert(stored.progress, Progress) == conversation.progress
    assert (stored.paused, stored.waits_for, stored.team_task) == (
        conversation.paused,
        conversation.waits_for,
        conversation.team_task,
    )
    assert stored.running == len(conversation.running)


async def test_whoever_stops_waiting_for_the_opening_owns_nothing(team: Stage) -> None:
    async with team.open() as conversation:
        await tell(conversation, "Hello")
    loaded = load_team(team.path)
    for steps in range(15):
        opening = asyncio.create_task(_opened(team, conversation.id))
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        opening.cancel()
        await asyncio.wait([opening])
    async with open_store(team.db) as (store, thread), open_conversation(loaded, store, thread, conversation.id):
        pass


async def _opened(stage: Stage, id_: str) -> None:
    async with stage.open(id_) as conversation:
        await conversation.until_quiet()


async def _states(stage: Stage, conversation: Conversation) -> dict[str, str]:
    with SqliteStore(stage.db) as store:
        return {turn.id: turn.state for turn in store.turns(conversation.id)}


async def _left_behind(stage: Stage, text: str, *, after: str) -> str:
    """Say something in a process that is killed after a method of the store, and return the conversation."""
    driver = Path(__file__).with_name("left_behind.py")
    arguments = [str(stage.write()), str(stage.db), text, after]
    done = await asyncio.to_thread(subprocess.run, [sys.executable, str(driver), *arguments], capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    return done.stdout.decode().strip()
