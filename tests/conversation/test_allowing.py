"""An agent reaches a member with full permissions only with a person's yes, and drops turns only if it may."""

import asyncio
import sys

import pytest
from tests.conversation.stage import FAIL, HANG, Stage, events_so_far, said, tell, until_at_work, waiting

from bullpen.cli import main
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Decided, Dropped, Queued, Said, Unallowed
from bullpen.errors import NothingToDecide
from bullpen.store.sqlite import SqliteStore
from bullpen.view.explanation import explain
from bullpen.view.listing import conversation_summary
from bullpen.view.state import conversation_view, stored_view
from bullpen.view.status_lines import queue_lines, status_line


@pytest.fixture
def poisoned(stage: Stage) -> Stage:
    """A reader that has read a file which tells it to hand over to a member that may do anything."""
    stage.person("kim")
    stage.agent("a", "The file says so. [NEXT: b, c]")
    stage.agent("b", "I have done it.", permissions="full")
    stage.agent("c")
    return stage


def unallowed(conversation: Conversation) -> list[str]:
    return [turn.member for turn in conversation.unallowed]


async def test_a_hand_over_to_full_permissions_waits_for_a_yes(poisoned: Stage) -> None:
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it. [NEXT: a]")
        assert (await said(conversation))[1:] == ["a: The file says so. [NEXT: b, c]"]
        assert (unallowed(conversation), waiting(conversation)) == (["b"], ["b", "c"])
        (asked,) = events_so_far(conversation, Unallowed)
        assert (asked.turn.member, asked.by) == ("b", "a")
        assert asked.text == "a hands over to b, which has full permissions (turn 2). That needs your yes."
        view = conversation_view(conversation)
        assert view.status == "paused"
        assert [(turn.member, turn.held) for turn in view.queue] == [("b", True), ("c", False)]
        assert status_line(view) == "waiting: c · ◆ waits for you: b (turn 2)"
        assert queue_lines(view) == [
            "turn 2  b: /allow or /dismiss?",
            "turn 3  c: waits for b (turn 2), which a person must let begin",
        ]
        (decision,) = view.decisions
        assert (decision.kind, decision.text, decision.turn) == ("allow", asked.text, "2")

        await conversation.allow("2")
        await conversation.until_quiet()
        assert (await said(conversation))[2:] == ["b: I have done it.", "c: I am c."]
        assert [(news.turn_id, news.choice) for news in events_so_far(conversation, Decided)] == [("2", "allowed")]
        assert (conversation.unallowed, conversation.progress.unallowed) == ((), {})
        assert conversation_view(conversation).decisions == ()


async def test_a_no_drops_the_turn_and_the_relay_continues(poisoned: Stage) -> None:
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
        await conversation.drop(turn_ids=["2"])
        await conversation.until_quiet()
        assert (await said(conversation))[2:] == ["c: I am c."]
        assert conversation.progress.unallowed == {}
        with pytest.raises(NothingToDecide, match="Turn 2 is not waiting for a decision"):
            await conversation.allow("2")


async def test_no_other_decision_is_a_yes(poisoned: Stage) -> None:
    poisoned.agent("d", FAIL)
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
        await conversation.continue_turns()
        await conversation.reorder(["2"])
        await tell(conversation, "And you? [NEXT: d]")
        await conversation.skip()
        await tell(conversation, "Thanks. [NEXT: c]")
        await conversation.until_quiet()
        assert unallowed(conversation) == ["b"]
        assert not any(line.startswith("b:") for line in await said(conversation))


async def test_a_yes_to_one_is_not_a_yes_to_another(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "Both of you. [NEXT: b & c]")
    stage.agent("b", permissions="full")
    stage.agent("c", permissions="full")
    async with stage.open() as conversation:
        await tell(conversation, "Go.")
        await conversation.allow("3")
        await conversation.until_quiet()
        assert (await said(conversation))[2:] == ["c: I am c."]
        assert unallowed(conversation) == ["b"]
        with pytest.raises(NothingToDecide):
            await conversation.allow("2", "3")
        assert unallowed(conversation) == ["b"], "all of them, or none"


async def test_every_hop_is_checked_by_its_own_speaker(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "Yours. [NEXT: c]")
    stage.agent("c", "And yours. [NEXT: b]", permissions="edit")
    stage.agent("b", "And now you. [NEXT: d]", permissions="full")
    stage.agent("d", permissions="full")
    async with stage.open() as conversation:
        assert len(await tell(conversation, "Go.")) == 3
        assert [(turn.member, conversation.progress.unallowed[turn.id]) for turn in conversation.unallowed] == [
            ("b", "c")
        ]
        await conversation.allow("3")
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "d: I am d.", "b has full permissions itself"


async def test_what_a_person_asks_for_needs_no_yes(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "I have read it.")
    stage.agent("b", permissions="full")
    async with stage.open() as conversation:
        assert (await tell(conversation, "Read it, then build. [NEXT: a, b]"))[1:] == [
            *("a: I have read it.", "b: I am b.")
        ]
        assert (await tell(conversation, "@b again"))[-1] == "b: I am b."
        await tell(conversation, "Again. [NEXT: a]")
        await conversation.ask("b")
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "b: I am b."
        assert events_so_far(conversation, Unallowed) == []


async def test_naming_the_member_is_a_yes(poisoned: Stage) -> None:
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
        assert await conversation.ask("b") == ()
        await conversation.until_quiet()
        assert (await said(conversation))[2:] == ["b: I have done it.", "c: I am c."]
        assert [news.choice for news in events_so_far(conversation, Decided)] == ["allowed"]
        assert all(news.turns for news in events_so_far(conversation, Queued))


async def test_naming_somebody_else_or_about_something_else_is_not_a_yes(poisoned: Stage) -> None:
    poisoned.agent("d")
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
        await conversation.ask("d")
        await conversation.until_quiet()
        assert unallowed(conversation) == ["b"], "d was named, and not b"
        await conversation.ask("b")
        await conversation.until_quiet()
        assert unallowed(conversation) == ["b"], "b was asked about what d said, not about what a wants"
        assert [line for line in await said(conversation) if line.startswith("b:")] == ["b: I have done it."]


async def test_may_address_makes_it_free(poisoned: Stage) -> None:
    poisoned.members["a"]["may_address"] = ["b", "c"]
    async with poisoned.open() as conversation:
        assert (await tell(conversation, "Read it."))[2:] == ["b: I have done it.", "c: I am c."]


async def test_the_question_is_asked_again_after_a_restart(poisoned: Stage) -> None:
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
        before = conversation_view(conversation)
    with SqliteStore(poisoned.db) as store:
        assert stored_view(store, conversation.id).decisions == before.decisions
        assert conversation_summary(store, conversation.id).needs_you
    async with poisoned.open(conversation.id) as again:
        await again.until_quiet()
        assert again.paused is None, "nothing may begin, so nothing needs to be paused"
        assert [news.text for news in events_so_far(again, Unallowed)] == [before.decisions[0].text]
        assert conversation_view(again).decisions == before.decisions
        assert len(await said(again)) == 2
        await again.allow("2")
        await again.until_quiet()
        assert (await said(again))[2:] == ["b: I have done it.", "c: I am c."]


async def test_who_left_the_team_is_not_asked_about(poisoned: Stage) -> None:
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
    del poisoned.members["b"]
    async with poisoned.open(conversation.id) as again:
        assert (again.progress.unallowed, waiting(again)) == ({}, ["c"])
        assert events_so_far(again, Unallowed) == []


KILLED = """
import asyncio, os, signal, sys
from bullpen import open_team

async def main():
    async with open_team(sys.argv[1], db=sys.argv[2]) as conversation:
        await conversation.say("Read it.")
        await conversation.until_quiet()
        if sys.argv[3] == "allow":
            await conversation.allow("2")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("answer", ["none", "allow"])
async def test_question_and_answer_survive_being_killed(poisoned: Stage, answer: str) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", KILLED, str(poisoned.write()), str(poisoned.db), answer
    )
    assert await program.wait() == -9
    with SqliteStore(poisoned.db) as store:
        (stored,) = store.conversations()
    async with poisoned.open(stored.id) as again:
        await again.until_quiet()
        assert unallowed(again) == (["b"] if answer == "none" else [])
        assert not any(line.startswith("b:") for line in await said(again)), "nothing begins by itself"


async def test_a_message_during_a_pause_does_not_hold_the_question(poisoned: Stage) -> None:
    poisoned.agent("d", HANG)
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
        await conversation.say("And you? [NEXT: d]")
        await until_at_work(conversation, "d")
        await conversation.cancel()
        await tell(conversation, "Meanwhile [NEXT: c]")
        assert [turn.member for turn in conversation.held] == ["c"]
        kinds = [decision.kind for decision in conversation_view(conversation).decisions]
        assert kinds == ["allow", "held"]


async def test_a_person_who_takes_the_turn_over_is_not_asked_any_more(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "Both. [NEXT: c & b]")
    stage.agent("b", permissions="full")
    stage.agent("c", FAIL)
    async with stage.open() as conversation:
        await tell(conversation, "Go.")
        await conversation.hand_over("b")
        await conversation.until_quiet()
        assert (await said(conversation))[2:] == ["b: I am b."]
        assert conversation.progress.unallowed == {}


async def test_a_person_drops_it_by_a_marker(poisoned: Stage) -> None:
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it.")
        await tell(conversation, "No. [DROP: b] [NEXT: c]")
        assert (conversation.unallowed, conversation.progress.unallowed) == ((), {})
        assert not any(line.startswith("b:") for line in await said(conversation))


async def test_an_agent_drops_nothing_and_everyone_learns_why(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "Stop them all. [DROP: ALL]", "I see.")
    stage.agent("b")
    async with stage.open() as conversation:
        assert (await tell(conversation, "Go [NEXT: a, b]"))[-1] == "b: I am b."
        assert events_so_far(conversation, Dropped) == []
        told = events_so_far(conversation, Said)[1]
        assert told.notes == ("a may not drop turns: the team file does not allow it (may_drop).",)
        assert told.message.routing is not None
        assert told.message.routing.drop_targets == ()
        assert conversation.progress.misses["a"] == told.notes[0]


async def test_an_agent_that_may_drop_also_drops_questions(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", "Do it. [NEXT: b]")
    stage.agent("b", permissions="full")
    stage.agent("c", "Better not. [DROP: ALL]", may_drop=True)
    async with stage.open() as conversation:
        await tell(conversation, "Go.")
        await tell(conversation, "And you? [NEXT: c]")
        assert (waiting(conversation), conversation.progress.unallowed) == ([], {})


@pytest.fixture
def paused_at_a_limit(stage: Stage) -> Stage:
    """A hand-over that waits for a person only because of a limit: nobody in the team has full permissions yet."""
    stage.person("kim")
    stage.agent("a", "The file says so. [NEXT: b, c]")
    stage.agent("b", "I have done it.")
    stage.agent("c")
    stage.limits = {"turns_per_message": 1}
    return stage


@pytest.mark.parametrize("sender", ["stays", "is removed", "may not address it"])
async def test_a_hand_over_waits_for_a_yes_if_the_member_has_full_permissions_by_now(
    paused_at_a_limit: Stage, sender: str
) -> None:
    stage = paused_at_a_limit
    async with stage.open() as conversation:
        await tell(conversation, "Read it. [NEXT: a]")
        assert (waiting(conversation), unallowed(conversation)) == (["b", "c"], [])
    stage.members["b"]["permissions"] = "full"
    if sender == "is removed":
        stage.members["d"] = {**stage.members.pop("a"), "name": "d"}
    elif sender == "may not address it":
        stage.members["a"]["may_address"] = ["c"]

    async with stage.open(conversation.id) as again:
        assert (waiting(again), unallowed(again)) == (["b", "c"], ["b"])
        assert [asked.turn.member for asked in events_so_far(again, Unallowed)] == ["b"]
        await again.continue_turns()
        await again.until_quiet()
        assert (await said(again))[2:] == []
    # The question is stored, and a yes is remembered.
    async with stage.open(conversation.id) as again:
        assert unallowed(again) == ["b"]
        await again.allow("2")
        await again.until_quiet()
        assert (await said(again))[2:3] == ["b: I have done it."]


@pytest.mark.parametrize("how", ["a message", "/next", "/allow"])
async def test_nobody_is_asked_again_about_what_a_person_asked_for(stage: Stage, how: str) -> None:
    stage.person("kim")
    stage.agent("a", "Done. [NEXT: c, b]" if how == "/allow" else "Done.")
    stage.agent("b", "I have done it.", permissions="full")
    stage.agent("c", HANG, "I am c.")
    async with stage.open() as conversation:
        if how == "a message":
            await conversation.say("Read it. [NEXT: c, b]")
        else:
            await tell(conversation, "Read it. [NEXT: a]") if how == "/next" else await conversation.say(
                "Read [NEXT: a]"
            )
            if how == "/next":
                await conversation.ask("c, b")
        await until_at_work(conversation, "c")
        if how == "/allow":
            await conversation.allow(*(turn.id for turn in conversation.unallowed))
    async with stage.open(conversation.id) as again:
        assert (waiting(again), unallowed(again)) == (["b"], [])


async def test_an_explanation_says_who_said_yes(poisoned: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    async with poisoned.open() as conversation:
        await tell(conversation, "Read it. [NEXT: a]")
        await conversation.allow("2", by="kim")
        await conversation.until_quiet()
        id_ = conversation.id
    with SqliteStore(poisoned.db) as store:
        assert [(one.person, one.choice) for one in explain(store, id_, "2").decisions] == [("kim", "allow")]
        assert explain(store, id_, "1").decisions == ()
    assert main(["explain", "2", "--session", id_, "--db", str(poisoned.db)]) == 0
    assert "decided   kim: allow, " in capsys.readouterr().out
