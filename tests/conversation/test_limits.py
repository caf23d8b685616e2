"""Loops end: at a cap the conversation pauses and says why; a person goes on or stops it; a restart changes nothing."""

import re
from typing import Any

import pytest
from tests.conversation.stage import HANG, Stage, events_so_far, said, tell, until_at_work, waiting

from bullpen.conversation.events import Paused, Quiet


def talkers(stage: Stage) -> None:
    """Two agents that never stop, each time with other words."""
    words = [
        "red apples fall",
        "blue rivers run",
        "green hills stand",
        "grey clouds rain",
        "white snow melts",
        "so be it",
    ]
    stage.person("kim")
    stage.agent("a", *(f"{word} today [NEXT: b]" for word in words), *(f"{word} again [NEXT: b]" for word in words))
    stage.agent(
        "b", *(f"{word} tonight [NEXT: a]" for word in words), *(f"{word} once more [NEXT: a]" for word in words)
    )


async def test_turns_are_capped_and_a_person_goes_on_or_speaks(stage: Stage) -> None:
    talkers(stage)
    stage.limits.update(turns_per_message=3, back_and_forth=100)
    async with stage.open() as conversation:
        assert len(await tell(conversation, "Talk")) == 1 + 3
        assert conversation.paused == "The agents have taken 3 turns since you last spoke."
        assert events_so_far(conversation)[-2:] == [
            Paused(kind="cap", text=conversation.paused),
            Quiet(waits_for=conversation.waits_for),
        ]
        await conversation.continue_turns()
        assert conversation.paused is None
        await conversation.until_quiet()
        assert len(await said(conversation)) == 1 + 3 + 3
        await tell(conversation, "Stop and think [NEXT: a]")
        assert len(await said(conversation)) == 1 + 3 + 3 + 1 + 3
        assert [turn.member for turn in conversation.held] == ["a"], "what waited before the word stands still"


async def test_the_same_pair_is_capped(stage: Stage) -> None:
    talkers(stage)
    async with stage.open() as conversation:
        assert len(await tell(conversation, "Talk")) == 1 + 6
        assert conversation.paused == "a and b have handed over to each other 6 times in a row."
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert len(await said(conversation)) == 1 + 12


async def test_nearly_identical_replies_are_capped(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", *(f"Please review change {number}, it is ready. [NEXT: b]" for number in range(9)))
    stage.agent("b", *(f"{word} comes to mind. [NEXT: a]" for word in ["tea", "oak", "fir", "elm", "ash"]))
    async with stage.open() as conversation:
        await tell(conversation, "Talk")
        assert conversation.paused == "a has said nearly the same 3 times in a row."
        await conversation.drop()
        assert not conversation.paused
        assert waiting(conversation) == []


async def test_minutes_are_capped(stage: Stage) -> None:
    talkers(stage)
    stage.limits.update(minutes=0.000001)
    async with stage.open() as conversation:
        await tell(conversation, "Talk")
        assert conversation.paused is not None
        assert re.fullmatch(r"The agents have worked for [0-9.]+ s since you last spoke\.", conversation.paused)


@pytest.mark.parametrize(
    ("limit", "reason"), [({"tokens": 200}, "200 tokens"), ({"cost_usd": 0.05}, r"\$0.06")], ids=["tokens", "money"]
)
async def test_tokens_and_money_are_capped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, limit: dict[str, float], reason: str
) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.person("kim")
    stage.limits.update(limit)
    for name, other in ("ab", "ba"):
        spent: dict[str, Any] = {"usage": {"input": 60, "output": 40}, "cost": 0.03}
        turns = [[{"say": f"{word} [NEXT: {other}]"}, spent] for word in ("sun", "moon", "star")]
        stage.agent(name, *turns, agent="claude")
    async with stage.open() as conversation:
        await tell(conversation, "Talk")
        assert len(await said(conversation)) == 3
        with pytest.raises(AssertionError, match=reason):
            raise AssertionError(conversation.paused)
        assert conversation.progress.tokens == 200


async def test_what_failed_turns_took_counts_too(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.people_and_agents("kim", "b")
    stage.limits.update(tokens=100)
    stage.agent("a", [{"usage": {"input": 60, "output": 40}}, {"error": 500}], agent="claude")
    async with stage.open() as conversation:
        await tell(conversation, "Talk [NEXT: a & b]")
        turn = await conversation.read(lambda store, id_: store.turn(id_, "1"))
        assert turn.state == "failed"
        assert turn.usage is not None
        assert (conversation.progress.turns, conversation.progress.tokens) == (
            2,
            turn.usage.input_tokens + turn.usage.output_tokens,
        )


async def test_caps_survive_closing_and_opening_again(stage: Stage) -> None:
    talkers(stage)
    stage.limits.update(turns_per_message=4, back_and_forth=100)
    async with stage.open() as conversation:
        await tell(conversation, "Talk")
        paused = conversation.paused
    async with stage.open(conversation.id) as again:
        assert again.paused == paused
        assert again.progress == conversation.progress
        assert events_so_far(again)[0] == Paused(kind="left_over", text=str(paused))
        await again.until_quiet()
        assert len(await said(again)) == 5
        await again.continue_turns()
        await again.until_quiet()
        assert len(await said(again)) == 9


async def test_what_was_counted_before_a_restart_still_counts(stage: Stage) -> None:
    talkers(stage)
    stage.agent("b", HANG)
    async with stage.open() as conversation:
        await conversation.say("Talk")
        await until_at_work(conversation, "b")
    async with stage.open(conversation.id) as again:
        assert [turn.member for turn in again.undecided] == ["b"]
        assert again.progress.turns == 2, "opening is no word of a person"


@pytest.mark.parametrize("cost", ["-5", "true", "1e308"])
async def test_a_cost_that_is_none_harms_nobody(stage: Stage, monkeypatch: pytest.MonkeyPatch, cost: str) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.limits.update(cost_usd=1.0)
    stage.people_and_agents("kim", "b")
    result = f'{{"type":"result","subtype":"success","is_error":false,"result":"ok","total_cost_usd":{cost},'
    result += '"modelUsage":{"m":{"inputTokens":99999999999999999999999,"outputTokens":-7}}}\n'
    stage.agent("a", [{"raw": result}, {"exit": 0}], agent="claude")
    async with stage.open() as conversation:
        await tell(conversation, "Go [NEXT: a & b]")
        await tell(conversation, "Go [NEXT: a]")
        assert [line for line in await said(conversation) if line.startswith("a:")] == ["a: ok", "a: ok"]
        assert conversation.progress.cost_usd >= 0
        assert await conversation.read(lambda store, _: store.fsck()) == []


async def test_the_money_of_a_cli_that_reports_tokens_only_is_estimated_and_capped(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.put_claude_on_the_path(monkeypatch)
    stage.limits.update(cost_usd=1.0)
    stage.people_and_agents("kim", "b")
    began = '{"type":"system","subtype":"init","session_id":"s","model":"gpt-5"}\n'
    result = '{"type":"result","subtype":"success","is_error":false,"result":"ok [NEXT: b]",'
    result += '"modelUsage":{"gpt-5":{"inputTokens":800000,"outputTokens":20000}}}\n'
    stage.agent("a", [{"raw": began + result}, {"exit": 0}], agent="claude")
    async with stage.open() as conversation:
        await tell(conversation, "Go [NEXT: a]")
        assert conversation.paused == "The agents have spent ~$1.20 since you last spoke."
        used = conversation.progress.used["a"]
        assert (used.turns, used.is_estimate) == (1, True)
        assert used.cost_usd == pytest.approx(0.8 * 1.25 + 0.02 * 10)
