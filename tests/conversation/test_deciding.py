"""What becomes of turns that end without a reply, and of those that wait behind them."""

import asyncio

import pytest
from tests.conversation.stage import FAIL, GO, HANG, Stage, events_so_far, said, tell, until_at_work, waiting

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Decided, Dropped, Held, Paused, Undecided
from bullpen.errors import NobodyToAsk, NothingRuns, NothingToDecide, TurnConflict, UnknownMember
from bullpen.store.base import Turn
from bullpen.testing.clock import ManualClock


async def turn_of(conversation: Conversation, turn_id: str) -> Turn:
    return await conversation.read(lambda store, id_: store.turn(id_, turn_id))


def asked_so_far(conversation: Conversation) -> list[object]:
    """Return what people were asked to decide."""
    return [*events_so_far(conversation, Undecided), *events_so_far(conversation, Paused)]


@pytest.fixture
def relay(stage: Stage) -> Stage:
    """A relay whose first agent fails once."""
    stage.people_and_agents("kim", "b c")
    stage.agent("a", FAIL, "Now it works.")
    return stage


async def test_a_failed_turn_blocks_its_relay_and_nothing_else(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go [NEXT: a & c, b]")
        assert (await said(conversation))[1:] == ["c: I am c."]
        assert waiting(conversation) == ["b"]
        (undecided,) = events_so_far(conversation, Undecided)
        assert (undecided.turn.member, undecided.state) == ("a", "failed")
        assert "exit code 3: no such luck" in undecided.text
        assert (await tell(conversation, "Meanwhile [NEXT: c]"))[-1] == "c: I am c."
        assert waiting(conversation) == ["b"]


async def test_a_failed_turn_keeps_its_words_its_command_and_its_stream_and_is_no_message(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go")
        turn = await turn_of(conversation, "1")
        record = await conversation.read(lambda store, id_: store.record(id_, "1"))
        assert await said(conversation) == ["kim: Go"]
    assert (turn.state, turn.failure and turn.failure.partial_text) == ("failed", "half of it")
    assert record is not None
    assert record.command == tuple(relay.members["a"]["command"])
    assert record.stream == b"half of it"
    assert record.prompt == relay.prompt("a")


async def test_retry_does_it_again_under_a_new_number(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go [NEXT: a, b]")
        again = await conversation.retry()
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["a: Now it works.", "b: I am b."]
        assert (await turn_of(conversation, again.id)).retry_of == "1"
        assert conversation.undecided == ()
        with pytest.raises(NothingToDecide):
            await conversation.retry("1")
    assert "half of it" not in relay.prompt("b")


async def test_skip_goes_on_without_it(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go [NEXT: a, b]")
        await conversation.skip("1")
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["b: I am b."]
        assert [news.choice for news in events_so_far(conversation, Decided)] == ["skipped"]


async def test_another_member_can_answer_instead(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go [NEXT: a, b]")
        with pytest.raises(NobodyToAsk, match="kim is a person"):
            await conversation.hand_over("kim")
        with pytest.raises(UnknownMember):
            await conversation.hand_over("nobody")
        await conversation.hand_over("c")
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["c: I am c.", "b: I am b."]
    assert "I am c." in relay.prompt("b")


async def test_whoever_comes_later_in_the_relay_and_takes_over_answers_once(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go [NEXT: a, b, c]")
        await conversation.hand_over("b")
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["b: I am b.", "c: I am c."]
        assert [turn.member for news in events_so_far(conversation, Dropped) for turn in news.turns] == ["b"]


async def test_a_retry_keeps_its_place_in_the_relay(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go [NEXT: b, a, c]")
        await conversation.retry("2")
        await conversation.until_quiet()
        turns = await conversation.read(lambda store, id_: store.turns(id_))
        assert [(turn.member, turn.step) for turn in turns if turn.retry_of == "2"] == [("a", 1)]


async def test_who_takes_over_still_answers_other_messages(stage: Stage) -> None:
    stage.people_and_agents("kim lee", "b c")
    stage.agent("a", FAIL)
    async with stage.open() as conversation:
        await tell(conversation, "Go [NEXT: a, c]", sender="kim")
        await tell(conversation, "And you [NEXT: lee, b]", sender="kim")
        assert "b" in [turn.member for turn in conversation.waiting]
        await conversation.hand_over("b", "1")
        await conversation.until_quiet()
        assert "b" in [turn.member for turn in conversation.waiting]
        assert events_so_far(conversation, Dropped) == []


async def test_undecided_turns_survive_a_restart_and_are_told_again(relay: Stage) -> None:
    async with relay.open() as conversation:
        await tell(conversation, "Go [NEXT: a, b]")
    async with relay.open(conversation.id) as again:
        await again.until_quiet()
        assert [turn.id for turn in again.undecided] == ["1"]
        assert (await said(again))[1:] == []
        (told,) = events_so_far(again, Undecided)
        assert told.state == "failed"
        assert "no such luck" in told.text
        await again.retry()
        await again.until_quiet()
        assert (await said(again))[1:] == ["a: Now it works.", "b: I am b."]


async def test_several_failures_are_decided_one_by_one(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", FAIL, "a works.")
    stage.agent("b", FAIL, "b works.")
    stage.agent("c")
    async with stage.open() as conversation:
        await tell(conversation, "Go [NEXT: a & b, c]")
        assert {turn.member for turn in conversation.undecided} == {"a", "b"}
        await conversation.skip("1")
        await conversation.until_quiet()
        assert waiting(conversation) == ["c"], "b is not decided yet"
        await conversation.retry("2")
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["b: b works.", "c: I am c."]


async def test_cancel_keeps_the_queue_and_the_half_sentence_which_is_no_message(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c")
    stage.agent("a", HANG)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        (cancelled,) = await conversation.cancel()
        await conversation.until_quiet()
        assert cancelled.member == "a"
        assert conversation.paused == "Turn 1 of a was cancelled."
        assert (waiting(conversation), await said(conversation)) == (["b"], ["kim: Go [NEXT: a, b]"])
        turn = await turn_of(conversation, "1")
        assert (turn.state, turn.failure and turn.failure.partial_text) == ("cancelled", "half of it")
        await tell(conversation, "Something else [NEXT: c]")
        assert (await said(conversation))[-1] == "c: I am c."
        assert [turn.member for turn in conversation.held] == ["b"]
        assert [turn.member for turn in events_so_far(conversation, Held)[0].turns] == ["b"]
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "b: I am b."


async def test_after_a_cancel_the_queue_can_be_dropped(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c")
    stage.agent("a", HANG)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b, c]")
        await until_at_work(conversation, "a")
        await conversation.cancel("1")
        assert [turn.member for turn in await conversation.drop(member="b")] == ["b"]
        assert conversation.paused is not None
        with pytest.raises(TurnConflict, match="not waiting"):
            await conversation.drop(turn_ids=["1"])
        assert [turn.member for turn in await conversation.drop()] == ["c"]
        assert waiting(conversation) == []
        assert not conversation.paused
        assert (await turn_of(conversation, "2")).state == "dropped"


async def test_cancelling_one_of_two_lets_the_other_finish(stage: Stage) -> None:
    stage.people_and_agents("kim", "c")
    stage.agent("a", HANG)
    stage.agent("b", [{"say": "slow"}, GO])
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a & b, c]")
        await until_at_work(conversation, "a", "b")
        await conversation.cancel("1")
        stage.go()
        await conversation.until_quiet()
        assert (await said(conversation))[1:] == ["b: slow"]
        assert waiting(conversation) == ["c"]


async def test_a_turn_that_is_cancelled_before_it_began_is_cancelled(team: Stage) -> None:
    async with team.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        while not conversation.running:
            await asyncio.sleep(0)
        await conversation.cancel()
        await conversation.until_quiet()
        assert [turn.member for turn in conversation.undecided] == ["a"]
        assert waiting(conversation) == ["b"]
        assert (await turn_of(conversation, "1")).state == "cancelled"


async def test_nothing_runs_is_said(team: Stage) -> None:
    async with team.open() as conversation:
        with pytest.raises(NothingRuns):
            await conversation.cancel()
        with pytest.raises(NothingToDecide):
            await conversation.skip()
        with pytest.raises(NobodyToAsk, match="Nothing has been said"):
            await conversation.ask("a")
        with pytest.raises(NobodyToAsk, match="Nothing has been said"):
            await conversation.preview("a")
        assert await conversation.drop() == ()


async def test_nobody_is_asked_twice_about_one_message(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", HANG)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        for name in ("a", "b", "a & b"):
            with pytest.raises(NobodyToAsk, match="Already asked: "):
                await conversation.ask(name)
        with pytest.raises(NobodyToAsk, match="zzz"):
            await conversation.ask("zzz")
        assert waiting(conversation) == ["b"]


async def test_the_queue_can_be_put_in_another_order_which_a_restart_keeps(stage: Stage) -> None:
    stage.people_and_agents("kim", "b c d")
    stage.agent("a", HANG)
    stage.let_all_edit()
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await until_at_work(conversation, "a")
        for name in "bcd":
            await conversation.say(f"Go [NEXT: {name}]")
        await conversation.reorder(["4", "3"])
        assert waiting(conversation) == ["d", "c", "b"]
        with pytest.raises(TurnConflict, match="not waiting"):
            await conversation.reorder(["1"])
    async with stage.open(conversation.id) as again:
        assert waiting(again) == ["d", "c", "b"]
        assert again.paused == "3 turns were waiting when bullpen stopped."
        assert isinstance(events_so_far(again)[0], Paused)
        await again.skip()
        await again.continue_turns()
        await again.until_quiet()
        assert (await said(again))[-3:] == ["d: I am d.", "c: I am c.", "b: I am b."]


@pytest.mark.parametrize("decide", ["retry", "skip", "hand_over", "ask"])
async def test_a_decision_during_a_pause_lets_only_that_relay_continue(stage: Stage, decide: str) -> None:
    stage.people_and_agents("kim", "b c d")
    stage.agent("a", FAIL, "Now it works.")
    stage.agent("h", HANG)
    stage.let_all_edit()
    async with stage.open() as conversation:
        await tell(conversation, "Go [NEXT: a, b]")
        await conversation.say("Wait [NEXT: h]")
        await until_at_work(conversation, "h")
        await conversation.say("Later [NEXT: c]")
        await conversation.cancel()
        await conversation.until_quiet()
        assert waiting(conversation) == ["b", "c"]
        match decide:
            case "retry":
                await conversation.retry("1")
            case "skip":
                await conversation.skip("1")
            case "hand_over":
                await conversation.hand_over("d", "1")
            case _:
                await conversation.ask("d")
        await conversation.until_quiet()
        spoke = {line.partition(":")[0] for line in await said(conversation)} - {"kim"}
        assert spoke == {"retry": {"a", "b"}, "skip": {"b"}, "hand_over": {"d", "b"}, "ask": {"d", "c"}}[decide]
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert "c" in {line.partition(":")[0] for line in await said(conversation)}


async def test_a_reply_that_is_no_answer_is_a_failure(stage: Stage) -> None:
    stage.people_and_agents("kim", "b")
    stage.agent("a", [{"say": " \n"}])
    async with stage.open() as conversation:
        await tell(conversation, "Go [NEXT: a, b]")
        assert len(await said(conversation)) == 1
        assert [turn.member for turn in conversation.undecided] == ["a"]


async def test_timeouts_of_the_team_file_count(stage: Stage, clock: ManualClock) -> None:
    stage.person("kim")
    stage.agent("a", HANG, idle_timeout=30)
    stage.agent("b", HANG, total_timeout=40)
    async with stage.open() as conversation:
        telling = asyncio.ensure_future(tell(conversation, "Go [NEXT: a & b]"))
        await clock.until(telling.done)
        failures = [(await turn_of(conversation, id_)).failure for id_ in "12"]
        assert [(failure.kind, failure.message) for failure in failures if failure] == [
            ("timed_out", "It wrote nothing for 30 seconds."),
            ("timed_out", "It did not finish within 40 seconds."),
        ]


@pytest.fixture
def busy(stage: Stage) -> Stage:
    """A team whose first agent never ends."""
    stage.people_and_agents("kim", "b c")
    stage.agent("a", HANG)
    return stage


async def test_a_turn_that_is_named_twice_is_in_the_queue_once(busy: Stage) -> None:
    async with busy.open() as conversation:
        await conversation.say("Go [NEXT: a, b, c]")
        await until_at_work(conversation, "a")
        await conversation.reorder(["3", "3", "2"])
        assert [turn.id for turn in conversation.waiting] == ["3", "2"]


async def test_dropping_nothing_does_not_end_a_pause(busy: Stage) -> None:
    async with busy.open() as conversation:
        await conversation.say("Go [NEXT: a, b]")
        await until_at_work(conversation, "a")
        await conversation.cancel("1")
        assert await conversation.drop(turn_ids=[], member="c") == ()
        assert conversation.paused == "Turn 1 of a was cancelled."


async def test_what_a_person_cancelled_is_nothing_to_decide_and_can_be_retried(busy: Stage) -> None:
    busy.agent("d", HANG)
    async with busy.open() as conversation:
        await conversation.say("Go [NEXT: a & d]")
        await until_at_work(conversation, "a", "d")
        await conversation.cancel()
        await conversation.until_quiet()
        assert (conversation.paused, asked_so_far(conversation)) == (None, [])
        identity = conversation.id
    async with busy.open(resume=identity) as conversation:
        assert (conversation.paused, asked_so_far(conversation)) == (None, [])
        # Either may have ended first.
        await conversation.retry("2")
        await until_at_work(conversation, "d")
        await conversation.retry()
        await until_at_work(conversation, "a", "d")


async def test_what_failed_before_a_cancel_is_still_to_be_decided(busy: Stage) -> None:
    busy.agent("f", FAIL)
    async with busy.open() as conversation:
        await conversation.say("Go [NEXT: f]")
        await conversation.until_quiet()
        await conversation.say("Go [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.cancel()
        await conversation.until_quiet()
        assert [event.turn.id for event in events_so_far(conversation, Undecided)] == ["1"]
        assert [turn.id for turn in conversation.undecided] == ["1", "2"]


async def test_whoever_is_asked_answers_what_was_said_last(busy: Stage) -> None:
    async with busy.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await until_at_work(conversation, "a")
        said_later, (turn,) = await asyncio.gather(conversation.say("And this [NEXT: a]"), conversation.ask("b"))
        assert turn.message_id == said_later.message.id
