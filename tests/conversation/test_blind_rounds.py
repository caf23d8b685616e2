"""Blind rounds: who judges is not told whose replies are whose, in no way, and people see it afterwards."""

import asyncio
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.conversation.repository_stage import said
from tests.conversation.stage import FAIL, Stage

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.visible_history import VisibleHistory
from bullpen.errors import StoreFull
from bullpen.routing.blind import NOBODY_JUDGES, BlindRound, judged_steps
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Store
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.played import played
from bullpen.view.explanation import explain

ASK = "[NEXT: max & sarah, carol] blind"


@pytest.fixture
def team(stage: Stage) -> Stage:
    stage.person("kim")
    stage.agent("max", "I am max, and I say tabs.", "Tabs, says Max.", display_name="Maximilian")
    stage.agent("sarah", "Sarah here: spaces.", "Spaces.")
    stage.agent("carol", "B is better.", "Still B.")
    return stage


async def texts(conversation: Conversation) -> list[str]:
    return [one.message.content for one in await conversation.messages(limit=100)]


async def test_who_judges_gets_the_replies_without_names(team: Stage) -> None:
    async with team.open() as conversation:
        await said(conversation, f"Max and Sarah, tabs or spaces? {ASK}")
        *_, told = await texts(conversation)
        assert conversation.progress.blind == {}
        explained = await conversation.read(explain, "3")
    (prompt,) = team.prompts("carol")
    assert re.search(r"\bmax|sarah|maximilian", prompt, re.IGNORECASE) is None, prompt
    assert "2 members have answered this message" in prompt
    assert {"I am A, and I say tabs.", "I am B, and I say tabs."} & set(prompt.splitlines())
    letter = "A" if "I am A" in prompt else "B"
    other = "AB".replace(letter, "")
    assert set(re.findall(r"\w was \w+ \(turn \d\)", told)) == {
        f"{letter} was max (turn 1)",
        f"{other} was sarah (turn 2)",
    }
    assert told.startswith("Names were hidden from who judged: A was ")
    assert any(remark.startswith("NAMES hidden: A was ") for remark in explained.remarks)


async def test_what_was_said_before_is_masked_too_and_later_turns_are_not(team: Stage) -> None:
    async with team.open() as conversation:
        await said(conversation, "[NEXT: max] Hello.")
        await said(conversation, f"And now? {ASK}")
        await said(conversation, "[NEXT: carol] And who was it?")
    blind, after = team.prompts("carol")
    assert re.search(r"\bmax|sarah|maximilian", blind, re.IGNORECASE) is None, blind
    assert "and I say tabs." in blind, "the history is there, without names"
    assert "was max" in after


async def test_the_order_is_random_and_stays(team: Stage) -> None:
    rounds = [BlindRound(seed=str(seed), step=0, judged_at=1) for seed in range(40)]
    assert {tuple(one.in_order(["1", "2"])) for one in rounds} == {("1", "2"), ("2", "1")}
    assert all(one.in_order(["1", "2", "3"]) == one.in_order(["3", "2", "1"]) for one in rounds)


async def test_a_group_whose_turns_are_retried_or_handed_to_others_is_still_hidden(team: Stage) -> None:
    team.agent("max", FAIL, "I say tabs.")
    team.agent("dave", "Dave says both.")
    async with team.open() as conversation:
        await said(conversation, f"Tabs? {ASK}")
        assert conversation.progress.blind
        await conversation.hand_over("dave")
        await conversation.until_quiet()
        *_, told = await texts(conversation)
    (prompt,) = team.prompts("carol")
    assert re.search(r"\bmax\b|sarah|dave", prompt, re.IGNORECASE) is None, prompt
    assert "dave" in told
    assert "max" not in told


async def test_an_agent_that_asks_judges_itself(team: Stage) -> None:
    team.agent("carol", "What do you think? [NEXT: max & sarah] blind", "A is better.")
    async with team.open() as conversation:
        await said(conversation, "[NEXT: carol] Decide.")
        assert [one.message.speaker.role_id for one in await conversation.messages(limit=9)][-2:] == [
            "carol",
            "bullpen",
        ]
    assert re.search(r"\bmax|sarah", team.prompts("carol")[1], re.IGNORECASE) is None


async def test_without_anybody_to_judge_it_says_so(team: Stage) -> None:
    async with team.open() as conversation:
        route = conversation.route_of("[NEXT: max & sarah] blind")
        assert route.notes == (NOBODY_JUDGES,)
        await said(conversation, "[NEXT: max & sarah] blind")
        assert conversation.progress.blind == {}


async def test_a_dropped_judge_leaves_nothing_behind(team: Stage) -> None:
    team.agent("max", FAIL)
    async with team.open() as conversation:
        await said(conversation, f"Tabs? {ASK}")
        await conversation.drop()
        await conversation.skip()
        await conversation.until_quiet()
        assert conversation.progress.blind == {}
        assert not any("Names were hidden" in text for text in await texts(conversation))


async def test_a_restart_in_between_keeps_the_order(team: Stage) -> None:
    team.agent("carol", FAIL, "A.")
    async with team.open() as conversation:
        await said(conversation, f"Tabs? {ASK}")
        before = conversation.progress.blind
    async with team.open(resume=conversation.id) as again:
        assert again.progress.blind == before != {}
        await again.retry()
        await again.until_quiet()
        assert again.progress.blind == {}
    first, second = team.prompts("carol")
    assert first == second


async def test_names_that_cannot_be_stored_are_told_later_and_nothing_hangs(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failures = SqliteStore.append, ["once"]

    def failing(store: SqliteStore, *args: Any, **kwargs: Any) -> Any:
        if failures and "Names were hidden" in f"{args}{kwargs}":
            raise StoreFull(failures.pop())
        return append(store, *args, **kwargs)

    monkeypatch.setattr(SqliteStore, "append", failing)
    async with team.open() as conversation:
        await said(conversation, f"Tabs? {ASK}")
        await asyncio.wait_for(said(conversation, "And now? [NEXT: carol]"), 60)
        assert failures == []
        assert conversation.progress.blind == {}
        assert sum("Names were hidden" in text for text in await texts(conversation)) == 1


@pytest.mark.parametrize(
    ("steps", "expected"), [([0, 0, 1], (0, 1)), ([0, 1, 1, 3], (1, 3)), ([0, 0], None), ([0, 1], None), ([], None)]
)
def test_which_group_is_judged(steps: list[int], expected: tuple[int, int] | None) -> None:
    assert judged_steps(steps) == expected


# Information flow

NAMES = st.lists(
    st.text(alphabet="abcdexyzß李é", min_size=2, max_size=6).map(lambda name: f"q{name}"),
    min_size=3,
    max_size=5,
    unique=True,
)


@settings(max_examples=10, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(names=NAMES, data=st.data())
def test_no_way_leads_from_the_judge_to_the_names(names: list[str], data: st.DataObject) -> None:
    *authors, judge = [name.casefold() for name in names]
    displayed = {name: f"Dr {name.upper()}x" for name in authors}
    words = data.draw(
        st.sampled_from(["I am {0}.", "{1} says so.", "As {0} I disagree with {other}.", "不，我是{0}。", "Plain."])
    )

    async def story() -> None:
        with tempfile.TemporaryDirectory() as folder, played():
            stage = Stage(Path(folder))
            stage.person("kim")
            for name in authors:
                text = words.format(name, displayed[name], other=authors[0])
                stage.agent(name, text, text, display_name=displayed[name])
            stage.agent(judge, "A.")
            async with stage.open() as conversation:
                group = " & ".join(authors)
                await said(conversation, f"[NEXT: {group}] Hello {authors[0]}.")
                await conversation.say(f"[NEXT: {group}, {judge}] blind\n{displayed[authors[0]]}?")
                await conversation.until_quiet()
                turn, blind = conversation_turn(conversation, judge), BlindRound(seed="s", step=0, judged_at=1)
                seen = await conversation.read(looked_up, conversation, turn, blind, authors[0])
            (prompt,) = stage.prompts(judge)
            for name in [*authors, *displayed.values()]:
                assert name.casefold() not in prompt.casefold(), (name, prompt)
                assert name.casefold() not in seen.casefold(), (name, seen)

    asyncio.run(story())


def conversation_turn(conversation: Conversation, judge: str) -> WaitingTurn:
    number = conversation.progress.turns_made
    return WaitingTurn(id=str(number), member=judge, message_id="", step=1)


def looked_up(
    store: Store, conversation_id: str, conversation: Conversation, turn: WaitingTurn, blind: BlindRound, name: str
) -> str:
    """Return all that an agent is answered that looks everything up."""
    asked = store.turn(conversation_id, turn.id).message_id
    turn = WaitingTurn(id=turn.id, member=turn.member, message_id=asked, step=1)
    history: VisibleHistory = conversation._turns._prompts.visible_in(
        turn, conversation.member(turn.member), (), is_judges=False, blind=blind
    )
    answers = [history.read(None, None, None), history.read(1, 99, None), history.found(name), history.found("am")]
    answers += [history.message(number, offset) for number in range(1, history.last + 3) for offset in (0, 1, 3)]
    answers += [history.diff(str(number), None) for number in range(1, int(turn.id) + 1)]
    return "\n".join(f"{text} {what}" for text, what in answers)
