"""Budgets hold over the whole conversation: people are told at 80 %, and at the cap turns end or wait."""

import json
import os
import sys
from typing import Any

import pytest
from tests.conversation.stage import HANG, Script, Stage, events_so_far, said, tell, waiting

from bullpen.conversation.budget_events import BudgetRaised, BudgetReached
from bullpen.conversation.conversation import Conversation
from bullpen.errors import NothingToRaise
from bullpen.store.base import Decision
from bullpen.view.decided import decisions_in
from bullpen.view.state import conversation_view
from bullpen.view.status_lines import team_lines

PI = """\
import json, sys, time
from pathlib import Path

sys.stdin.read()
folder = Path(next(word for word in sys.argv if word.startswith("--turns=")).partition("=")[2])
turns = json.loads((folder / "pi.json").read_text())
number = len(list(folder.glob("began-*")))
(folder / f"began-{number}").touch()
message = {"role": "assistant", "content": [{"type": "text", "text": "All of it."}], "stopReason": "stop"}
print(json.dumps({"type": "session", "id": "s"}), flush=True)
for step in turns[min(number, len(turns) - 1)]:
    match step:
        case int(tokens):
            used = {"input": tokens, "output": 0, "cost": {"total": tokens / 1000}}
            print(json.dumps({"type": "message_end", "message": {**message, "usage": used}}), flush=True)
        case str(text):
            said = {"type": "text_delta", "delta": text}
            print(json.dumps({"type": "message_update", "assistantMessageEvent": said}), flush=True)
        case None:
            time.sleep(600)
print(json.dumps({"type": "agent_end"}), flush=True)
"""


def spending(stage: Stage, name: str, *turns: str, usage: int = 50, **keys: Any) -> None:
    """Add an agent whose turns say something, and use so many tokens and a thousandth of a dollar for each."""
    spent = {"usage": {"input": usage, "output": 0}, "cost": usage / 1000}
    scripts: list[Script] = [[{"say": turn}, spent] for turn in turns]
    stage.agent(name, *scripts, agent="claude", memory="shared", **keys)


def reporting(stage: Stage, name: str, *turns: list[int | str | None], **keys: Any) -> None:
    """Add an agent that reports while it works: numbers of tokens, words, and None for a long silence."""
    program = stage.folder / "bin" / "pi"
    if not program.exists():
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!{sys.executable}\n{PI}", encoding="utf-8")
        program.chmod(0o755)
    stage.agent(name, agent="pi", memory="shared", **keys)
    (stage.folder / "agents" / name / "pi.json").write_text(json.dumps(turns), encoding="utf-8")


@pytest.fixture
def team(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage.put_claude_on_the_path(monkeypatch)
    monkeypatch.setenv("PATH", f"{stage.folder / 'bin'}:{os.environ['PATH']}")
    stage.person("kim")
    return stage


def budget(**amounts: float) -> dict[str, float]:
    return amounts


def asked(conversation: Conversation) -> list[tuple[str, list[str]]]:
    """Return what people are asked about budgets, and what they can type."""
    found = [one for one in conversation_view(conversation).decisions if one.kind == "budget"]
    return [(one.text, [choice.typed for choice in one.choices]) for one in found]


async def test_a_members_budget_holds_its_turns_while_others_go_on(team: Stage) -> None:
    spending(team, "a", "One. [NEXT: b]", "Two. [NEXT: b]", "Three.", budget=budget(tokens=100))
    spending(team, "b", "Your turn. [NEXT: a]", "Yours again. [NEXT: a]", "And mine.")
    async with team.open() as conversation:
        assert (await tell(conversation, "Go. [NEXT: a]"))[-1] == "b: Yours again. [NEXT: a]"
        assert waiting(conversation) == ["a"]
        up = "a has used 100 tokens: its budget of 100 tokens is used up."
        assert asked(conversation) == [(up, ["/raise once", "/raise always", "/drop a"])]
        assert events_so_far(conversation, BudgetReached) == [BudgetReached(member="a", text=up)]
        view = conversation_view(conversation)
        assert (view.status, view.paused) == ("paused", None)
        assert [(one.member, one.waits_for) for one in view.queue] == [
            ("a", "waits until its budget is raised: /raise")
        ]

        assert (await tell(conversation, "Meanwhile. [NEXT: b]"))[-1] == "b: And mine."
        assert waiting(conversation) == ["a"]

        await conversation.raise_budgets("a")
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "a: Three."
        assert asked(conversation) == []
        assert events_so_far(conversation, BudgetRaised) == [
            BudgetRaised(member="a", text="The budget of a was raised: 100 tokens more.", by="kim")
        ]
        (decided,) = await conversation.read(decisions_in)
        assert decided == Decision(at=decided.at, person="kim", choice="raise once", turns=())
        assert "  a has used 150 tokens of its budget of 200 tokens (75 %)." in team_lines(
            conversation_view(conversation)
        )


async def test_people_are_told_once_when_most_of_it_is_used(team: Stage) -> None:
    spending(team, "a", "One. [NEXT: b]", "Two. [NEXT: b]", usage=30)
    spending(team, "b", "Go on. [NEXT: a]", "Done.", usage=30)
    team.settings["budget"] = budget(cost_usd=0.11)
    async with team.open() as conversation:
        assert await tell(conversation, "Go. [NEXT: a]") == [
            "kim: Go. [NEXT: a]",
            "a: One. [NEXT: b]",
            "b: Go on. [NEXT: a]",
            "a: Two. [NEXT: b]",
            "bullpen: The agents have used $0.0900 of the conversation's budget of $0.11 (81 %).",
            "b: Done.",
        ]
        assert asked(conversation) == [], "nobody is asked before somebody wants a turn"
        await tell(conversation, "More. [NEXT: a]")
        up = "The agents have used $0.12: the conversation's budget of $0.11 is used up."
        assert asked(conversation) == [(up, ["/raise once", "/raise always", "/drop"])]
        assert (await said(conversation))[-1] == "kim: More. [NEXT: a]", "they were told already"


async def test_a_turn_whose_program_is_not_installed_does_not_count(team: Stage) -> None:
    team.agent("max", command=["no-such-program"], budget={"turns": 2}, stand_in=["eva"])
    team.agent("eva", "Built.")
    async with team.open() as conversation:
        assert (await tell(conversation, "Build it. [NEXT: max]"))[-1] == "max: Built."
        turns = await conversation.read(lambda store, id_: store.turns(id_))
        assert [turn.state for turn in turns] == ["failed", "done"]
        (used,) = conversation.budget_uses
        assert used.sentence == "max has taken 1 turn of its budget of 2 turns (50 %)."


async def test_a_budget_of_turns_lets_no_more_begin_together_than_are_left(team: Stage) -> None:
    for name in "abc":
        spending(team, name, f"I am {name}.")
    team.settings["budget"] = budget(turns=2)
    async with team.open() as conversation:
        await tell(conversation, "All of you. [NEXT: a & b & c]")
        assert sorted(waiting(conversation)) == ["c"]
        assert (
            asked(conversation)[0][0]
            == "The agents have taken 2 turns: the conversation's budget of 2 turns is used up."
        )
        await conversation.raise_budgets(always=True)
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "c: I am c."
        await tell(conversation, "Again. [NEXT: a & b & c]")
        assert waiting(conversation) == []
        assert asked(conversation) == []


async def test_a_turn_that_reports_too_much_is_cancelled_with_what_it_had_done(team: Stage) -> None:
    reporting(team, "a", [60, "I have begun. ", 60, "And go on. ", None], ["x"], budget=budget(tokens=100))
    async with team.open() as conversation:
        await tell(conversation, "Go. [NEXT: a]")
        (ended,) = conversation.undecided
        assert ended.state == "cancelled"
        assert ended.reason == (
            "The turn was cancelled. a has used 120 tokens: its budget of 100 tokens is used up. "
            "What it had said and done is kept."
        )
        assert ended.failure is not None
        assert ended.failure.partial_text == "I have begun. And go on. "
        assert conversation.progress.used["a"].tokens == 120
        kinds = [one.kind for one in conversation_view(conversation).decisions]
        assert kinds == ["budget", "failed"]
        assert asked(conversation)[0][1] == ["/raise once", "/raise always"], "no turn waits that could be dropped"

        await conversation.retry()
        await conversation.until_quiet()
        assert waiting(conversation) == ["a"], "a retry does not get around it"
        await conversation.raise_budgets()
        await conversation.until_quiet()
        assert (await said(conversation))[-1].startswith("a: ")


async def test_a_last_report_does_not_take_the_reply_away(team: Stage) -> None:
    reporting(team, "a", ["Here it is.", 500], budget=budget(tokens=100, cost_usd=0.1))
    async with team.open() as conversation:
        await tell(conversation, "Go. [NEXT: a]")
        assert (await said(conversation))[-2:] == [
            "a: Here it is.\n\nAll of it.",
            (
                "bullpen: a has used 500 tokens: its budget of 100 tokens is used up. "
                "a has used $0.50: its budget of $0.10 is used up."
            ),
        ]
        assert not conversation.undecided


async def test_others_end_with_the_one_that_uses_up_what_all_share(team: Stage) -> None:
    reporting(team, "a", [40, "Still at it. ", None])
    reporting(team, "b", [20, "So am I. ", 80, "Too much. ", None])
    team.settings["budget"] = budget(tokens=100)
    async with team.open() as conversation:
        await tell(conversation, "Go. [NEXT: a & b]")
        assert sorted((one.member, one.state) for one in conversation.undecided) == [
            ("a", "cancelled"),
            ("b", "cancelled"),
        ]
        assert conversation.progress.used["b"].tokens <= 100
        assert conversation_view(conversation).total.tokens <= 100 + 100


async def test_minutes_of_work_end_a_turn_that_says_nothing(team: Stage) -> None:
    team.agent("a", HANG, budget=budget(minutes=0.01))
    async with team.open() as conversation:
        await tell(conversation, "Go. [NEXT: a]")
        (ended,) = conversation.undecided
        assert ended.state == "cancelled"
        assert "its budget of 0.6 s is used up. What it had said and done is kept." in ended.reason
        assert conversation.progress.used["a"].seconds >= 0.6


@pytest.mark.parametrize("way", ["raise", "drop"])
async def test_a_restart_changes_nothing(team: Stage, way: str) -> None:
    spending(team, "a", "One. [NEXT: b]", "Two.", budget=budget(tokens=50))
    spending(team, "b", "Back. [NEXT: a]")
    async with team.open() as conversation:
        await tell(conversation, "Go. [NEXT: a]")
        before = asked(conversation)
        assert before
    async with team.open(resume=conversation.id) as conversation:
        await conversation.until_quiet()
        assert asked(conversation) == before
        assert events_so_far(conversation, BudgetReached) == [BudgetReached(member="a", text=before[0][0])]
        assert conversation.paused is None
        assert waiting(conversation) == ["a"]
        if way == "drop":
            await conversation.drop(member="a")
            await conversation.until_quiet()
            assert asked(conversation) == []
            assert conversation.progress.spent == ()
            await tell(conversation, "And now? [NEXT: a]")
            assert asked(conversation) == before, "it is as used up as before"
            return
        await conversation.raise_budgets()
        await conversation.until_quiet()
        assert (await said(conversation))[-2:] == [
            "a: Two.",
            "bullpen: a has used 100 tokens: its budget of 100 tokens is used up.",
        ]
    async with team.open(resume=conversation.id) as conversation:
        await tell(conversation, "Again. [NEXT: a]")
        assert asked(conversation)[0][0] == "a has used 100 tokens: its budget of 100 tokens is used up."


async def test_what_is_not_used_up_cannot_be_raised(team: Stage) -> None:
    spending(team, "a", "One.", "Two.", budget=budget(tokens=60))
    spending(team, "b", "Three.")
    async with team.open() as conversation:
        with pytest.raises(NothingToRaise, match="No budget is used up, or nearly so"):
            await conversation.raise_budgets()
        await tell(conversation, "Go. [NEXT: a]")
        with pytest.raises(NothingToRaise, match="No budget of b is used up"):
            await conversation.raise_budgets("b")
        with pytest.raises(NothingToRaise, match="No budget of the conversation"):
            await conversation.raise_budgets("")
        await conversation.raise_budgets("a")
        assert [one.cap for one in conversation.budget_uses] == [120], "50 of 60 is nearly all of it"


async def test_what_a_stand_in_uses_counts_for_the_role(team: Stage) -> None:
    roles = {"stand_in": ["b"], "stand_in_at": 0.5, "model": "large"}
    spending(team, "a", "Mine.", usage=60, budget=budget(tokens=100), **roles)
    spending(team, "b", "In its name.", usage=60, model="small")
    async with team.open() as conversation:
        await tell(conversation, "Go. [NEXT: a]")
        assert await tell(conversation, "Go. [NEXT: a]") == [
            "kim: Go. [NEXT: a]",
            "a: Mine.",
            "kim: Go. [NEXT: a]",
            "bullpen: b stands in for a: 60 % of its budget is used.",
            "a: In its name.",
            "bullpen: a has used 120 tokens: its budget of 100 tokens is used up.",
        ]
        await tell(conversation, "And now? [NEXT: a]")
        assert waiting(conversation) == ["a"]
        assert asked(conversation)[0][1] == ["/raise once", "/raise always", "/drop a"]


async def test_a_notice_is_not_what_somebody_is_asked_about(team: Stage) -> None:
    spending(team, "a", "One.", usage=90, budget=budget(tokens=100))
    spending(team, "b", "I agree.")
    async with team.open() as conversation:
        assert (await tell(conversation, "Go. [NEXT: a]"))[-1].startswith("bullpen: a has used 90 tokens")
        (turn,) = await conversation.ask("b")
        await conversation.until_quiet()
        last = await conversation.read(lambda store, id_: store.message(id_, turn.message_id))
        assert last.message.content == "One."


async def test_a_team_file_without_the_budget_asks_nobody_about_it(team: Stage) -> None:
    spending(team, "a", "One.", "Two.", budget=budget(tokens=50))
    async with team.open() as conversation:
        await tell(conversation, "Go. [NEXT: a]")
        await tell(conversation, "Go. [NEXT: a]")
        assert conversation.progress.spent == ("a",)
    del team.members["a"]["budget"]
    async with team.open(resume=conversation.id) as conversation:
        assert (asked(conversation), conversation.progress.spent) == ([], ())
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "a: Two."
