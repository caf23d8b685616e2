"""Every decision is stored with who made it, and with the turns that it is about."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.conversation.stage import FAIL, HANG, Stage, events_so_far, tell, until_at_work

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Decided
from bullpen.errors import UnknownSender
from bullpen.view.commands import ACTIONS
from bullpen.view.decided import Decision, decisions_in

Deciding = Callable[[Conversation], Awaitable[object]]


async def decided(conversation: Conversation) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return who decided what about which turns."""
    found = await conversation.read(decisions_in)
    return [(one.person, one.choice, one.turns) for one in found]


@pytest.fixture
def shop(stage: Stage) -> Stage:
    """Two people, an agent that fails twice, one that hangs, and one that answers."""
    stage.people_and_agents("kim lee", "c")
    stage.agent("a", FAIL, FAIL, "Now it works.")
    stage.agent("b", HANG)
    return stage


async def test_every_decision_has_its_person(shop: Stage) -> None:
    async with shop.open() as conversation:
        await tell(conversation, "[FROM: kim] Go [NEXT: a, c]")
        await conversation.retry(by="lee")
        await conversation.until_quiet()
        await conversation.hand_over("c", "3", by="kim")
        await conversation.until_quiet()
        await conversation.ask("b, a & c", by="lee")
        await until_at_work(conversation, "b")
        first, second = conversation.waiting
        await conversation.reorder([second.id], by="kim")
        await conversation.drop(turn_ids=[first.id], by="lee")
        await conversation.cancel(by="lee")
        (cancelled,) = conversation.undecided
        await conversation.skip(by="kim")
        await conversation.rename("The shop", by="lee")
        await conversation.set_task("Sell", by="kim")
        await conversation.continue_turns(by="lee")
        await conversation.until_quiet()
        expected = [
            ("lee", "retry", ("1", "3")),
            ("kim", "hand-over", ("3", "2", "4")),
            ("lee", "ask", (cancelled.id, first.id, second.id)),
            ("kim", "reorder", (second.id,)),
            ("lee", "drop", (first.id,)),
            ("lee", "cancel", (cancelled.id,)),
            ("kim", "skip", (cancelled.id,)),
            ("lee", "rename", ()),
            ("kim", "task", ()),
            ("lee", "continue", ()),
        ]
        assert await decided(conversation) == expected
    async with shop.open(conversation.id) as again:
        assert await decided(again) == expected
        times = [one.at for one in await again.read(decisions_in)]
        assert times == sorted(times)


async def test_without_a_name_it_was_the_owner_and_not_who_spoke_last(shop: Stage) -> None:
    async with shop.open() as conversation:
        await tell(conversation, "[FROM: lee] Go [NEXT: a]")
        await conversation.skip()
        assert await decided(conversation) == [("owner", "skip", ("1",))]
        assert [event.by for event in events_so_far(conversation, Decided)] == ["owner"]


async def test_what_changes_nothing_is_not_a_decision_and_nobody_decides_as_an_agent(shop: Stage) -> None:
    async with shop.open() as conversation:
        await tell(conversation, "[FROM: kim] Go [NEXT: c]")
        await conversation.drop(by="lee")
        for name in ("a", "eve"):
            with pytest.raises(UnknownSender):
                await conversation.continue_turns(by=name)
        assert await decided(conversation) == []


CONFLICTS = {"take", "keep", "resolve", "apart", "merge"}
SEVERAL = {"pick", "discard"}
QUESTIONS = {"yes", "no", "stop", "instead"}
REVIEWS = {"again", "end-review"}
SUMMARIES = {"sum-up", "drop-summary"}
FILES = {"undo", "redo", "rewind"}
MORE = {*QUESTIONS, *FILES, *CONFLICTS, *SEVERAL, *REVIEWS, *SUMMARIES}
ELSEWHERE = {"note", "tell", "allow", "dismiss", "forget", "raise", *MORE}


@pytest.mark.parametrize("action", sorted(set(ACTIONS) - ELSEWHERE))
async def test_every_action_says_who_decided(action: str, shop: Stage) -> None:
    """A note is a message and has its speaker; what an agent asks for is tested in test_allowing.py, what it forgets in
    test_forgetting.py, a budget that is raised in test_budgets.py, what is taken back in test_files.py, one of several
    results in test_best_of.py, reviews in test_reviews.py, summaries in test_summaries.py, what is answered to an agent
    in test_approvals.py."""
    given: dict[str, dict[str, Any]] = {
        "ask": {"names": "c"},
        "hand-over": {"member": "c"},
        "reorder": {"turns": ("2",)},
        "task": {"task": "Sell"},
        "rename": {"title": "The shop"},
    }
    failing = {"retry", "skip", "hand-over"}
    text = "[FROM: kim] Go [NEXT: a]" if action in failing else "[FROM: kim] Go [NEXT: b, c]"
    async with shop.open() as conversation:
        if action in failing:
            await tell(conversation, text)
        else:
            await conversation.say(text)
            await until_at_work(conversation, "b")
        if action == "ask":
            await conversation.drop(by="kim")
        command = ACTIONS[action]
        assert command.run is not None
        await command.run(conversation, command.takes(**given.get(action, {})), "lee")
        last: Decision = (await conversation.read(decisions_in))[-1]
        assert (last.person, last.choice) == ("lee", action)
