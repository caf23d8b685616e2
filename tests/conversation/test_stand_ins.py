"""Another program takes a member's role while its own cannot be used; if none can be, the conversation sleeps."""

import asyncio
import json
import re
from typing import Any

import pytest
from tests.conversation.stage import Script, Stage, events_so_far, said, tell, waiting

from bullpen.clock import milliseconds
from bullpen.conversation import stand_ins
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Decided, TurnBegan, TurnEnded
from bullpen.routing.rests import BACKOFF_SECONDS, LEAST_SECONDS, WHY_OF
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.clock import ManualClock
from bullpen.view.explanation import explain
from bullpen.view.state import conversation_view
from bullpen.view.usage import usage_table

ASKED = "Build it. [NEXT: max]"
LONG = "You've hit your limit, resets in 2h"
MOMENT = r"(?:\d{4}-\d\d-\d\d )?\d\d:\d\d"
"""With its date in the two hours before midnight."""
SHORT = "You've hit your limit, resets in 1s"


def out(message: str = LONG, status: int = 429) -> Script:
    return [{"error": status, "message": message}]


def touching(path: str) -> dict[str, Any]:
    runs = f"echo x > {path}" if path else "true"
    return {"tool": {"name": "Bash", "input": {"command": runs}, "output": "", "runs": runs}}


@pytest.fixture
def team(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage.put_claude_on_the_path(monkeypatch)
    stage.person("kim")
    return stage


def member(stage: Stage, name: str, *turns: str | Script, **keys: Any) -> None:
    """Add an agent with a quota of its own."""
    stage.agent(name, *turns, agent="claude", model=name, **keys)


async def test_a_stand_in_takes_the_turn_in_the_role_of_the_member(team: Stage) -> None:
    member(team, "max", out(), stand_in=["eva"], system_instruction="You are the builder.", permissions="edit")
    member(team, "eva", "Built.", system_instruction="You are the reviewer.")
    async with team.open() as conversation:
        asked, told, answered = await tell(conversation, ASKED)
        assert (asked, answered) == (f"kim: {ASKED}", "max: Built.")
        assert re.fullmatch(rf"bullpen: eva stands in for max until {MOMENT}: its quota is used up\.", told)

        (decided,) = events_so_far(conversation, Decided)
        assert re.fullmatch(rf"eva takes over until {MOMENT}, since max's quota is used up", decided.choice)
        assert not conversation.undecided
        assert not conversation.progress.stand_ins
        assert not conversation.progress.tried
        turns = await conversation.read(lambda store, id_: store.turns(id_))
        assert [(turn.member, turn.state, turn.retry_of) for turn in turns] == [
            ("max", "failed", None),
            ("max", "done", "1"),
        ]
    assert team.prompts("eva") == team.prompts("max"), "the role is the same, and so is what it is given"


@pytest.mark.parametrize(
    ("is_installed", "why"), [(True, "gemini is not signed in"), (False, "gemini's program is not installed")]
)
async def test_a_stand_in_that_is_not_ready_is_not_tried(
    team: Stage, is_installed: bool, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    if is_installed:
        team.put_on_the_path("gemini", monkeypatch)
    member(team, "max", out(), stand_in=["gemini", "eva"])
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        _, told, answered = await tell(conversation, ASKED)
        turns = await conversation.read(lambda store, id_: store.turns(id_))
        rests = conversation.progress.rests

    assert told.startswith("bullpen: eva stands in for max until ")
    assert answered == "max: Built."
    assert [turn.state for turn in turns] == ["failed", "done"], "nothing was run to find that out"
    assert WHY_OF[rests["gemini"].why].format("gemini") == why


async def test_a_stand_in_whose_program_does_not_say_whether_it_is_signed_in_is_tried(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(stand_ins, "why_not_ready", never)
    monkeypatch.setattr(stand_ins, "MOST_PROBE_SECONDS", 0.001)
    member(team, "max", out(), stand_in=["eva"])
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        assert (await tell(conversation, ASKED))[-1] == "max: Built."


async def test_nobody_asks_a_program_again_before_its_quota_is_back(team: Stage) -> None:
    member(team, "max", out(), stand_in=["eva"])
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        await tell(conversation, ASKED)
    async with team.open(conversation.id) as conversation:
        lines = await tell(conversation, ASKED)
        assert lines[-1] == "max: Built."
        assert len([line for line in lines if line.startswith("bullpen: ")]) == 1, "it is said once"
    assert (len(team.prompts("max")), len(team.prompts("eva"))) == (1, 3)


async def test_the_role_goes_back_by_itself(team: Stage, clock: ManualClock) -> None:
    member(team, "max", out(SHORT), "I am back.", stand_in=["eva"])
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        clock.advance(LEAST_SECONDS + 1)
        again = ["bullpen: max is back: eva no longer stands in for it.", "max: I am back."]
        assert (await tell(conversation, ASKED))[-2:] == again


async def test_a_member_is_told_what_its_stand_in_said(team: Stage, clock: ManualClock) -> None:
    member(team, "max", "One.", out(SHORT), "Three.", stand_in=["eva"])
    member(team, "eva", "Two, by the stand-in.")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        await tell(conversation, ASKED)
        clock.advance(LEAST_SECONDS + 1)
        assert (await tell(conversation, ASKED))[-1] == "max: Three."
    assert "Two, by the stand-in." in team.prompt("max")


async def test_if_all_are_out_it_sleeps_until_the_first_is_back_and_asks_nobody(
    team: Stage, clock: ManualClock
) -> None:
    member(team, "max", out(SHORT), "I am back.", stand_in=["eva", "ida"])
    member(team, "eva", out())
    member(team, "ida", out(status=529, message="Overloaded"))
    async with team.open() as conversation:
        await conversation.say(ASKED)
        await until_asleep(conversation, 3)
        (queued,) = conversation_view(conversation).queue
        assert queued.waits_for.startswith("sleeps until ")
        assert [len(team.prompts(name)) for name in ("max", "eva", "ida")] == [1, 1, 1]

        clock.advance(LEAST_SECONDS - 1)
        assert waiting(conversation) == ["max"]
        clock.advance(2)
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "max: I am back."
        assert [len(team.prompts(name)) for name in ("max", "eva", "ida")] == [2, 1, 1]


async def until_asleep(conversation: Conversation, turns: int) -> None:
    """Wait until that many turns have ended, and the next one sleeps."""
    while len(events_so_far(conversation, TurnEnded)) < turns or conversation.running or not waiting(conversation):
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("status", "message", "is_taken_over"),
    [(429, LONG, True), (529, "Overloaded", True), (401, "Invalid API key", True), (400, "prompt is too long", False)],
)
async def test_only_what_has_nothing_to_do_with_the_work(
    team: Stage, status: int, message: str, is_taken_over: bool
) -> None:
    member(team, "max", out(message, status), stand_in=["eva"])
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        assert bool(conversation.undecided) is not is_taken_over
    assert len(team.prompts("eva")) == int(is_taken_over)


@pytest.mark.parametrize(("path", "is_taken_over"), [("made.txt", False), ("", True)], ids=["changed", "unchanged"])
async def test_nobody_takes_over_what_may_have_changed_files(team: Stage, path: str, is_taken_over: bool) -> None:
    (team.folder / "work").mkdir()
    member(team, "max", [touching(path), *out()], stand_in=["eva"], permissions="edit", cwd="work")
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        assert bool(conversation.undecided) is not is_taken_over
        if path:
            why = "bullpen: eva does not stand in for max by itself: max may have changed files. /retry lets it."
            assert (await said(conversation))[-1] == why
            assert (team.folder / "work" / path).exists()
            await conversation.retry()
            await conversation.until_quiet()
            assert (await said(conversation))[-1] == "max: Built.", "a person's yes lets the stand-in begin"


@pytest.mark.parametrize("retries", [1, 2])
async def test_an_overloaded_vendor_is_tried_again_with_growing_pauses(
    team: Stage, clock: ManualClock, retries: int
) -> None:
    busy = out("Overloaded", 529)
    team.limits.update(overload_retries=retries)
    member(team, "max", busy, busy, "At last.")
    async with team.open() as conversation:
        await conversation.say(ASKED)
        for number, seconds in enumerate(BACKOFF_SECONDS[:retries], start=1):
            await until_asleep(conversation, number)
            clock.advance(seconds - 1)
            assert (waiting(conversation), conversation.running) == (["max"], {})
            clock.advance(2)
        await conversation.until_quiet()
        assert bool(conversation.undecided) is (retries == 1)
        assert ((await said(conversation))[-1] == "max: At last.") is (retries == 2)
        assert not conversation.progress.tried
    assert len(team.prompts("max")) == 1 + retries


async def test_only_overload_is_tried_again(team: Stage) -> None:
    team.limits.update(overload_retries=3)
    member(team, "max", out())
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        assert [turn.member for turn in conversation.undecided] == ["max"]
    assert len(team.prompts("max")) == 1


async def test_without_a_stand_in_a_person_decides(team: Stage) -> None:
    member(team, "max", out())
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        assert [turn.member for turn in conversation.undecided] == ["max"]
        assert not conversation.progress.rests


@pytest.mark.usefixtures("commands_are_watched")
@pytest.mark.parametrize("has_written", [True, False])
async def test_a_command_that_has_changed_files_is_not_run_again_by_itself(team: Stage, has_written: bool) -> None:
    # Its output is text: there are no events that say what it used.
    writes: Script = [{"write_file": {"path": "made.txt", "text": "x"}}] if has_written else []
    failing = [*writes, {"stderr": "503\n"}, {"exit": 1}]
    (team.folder / "work").mkdir()
    team.agent("max", failing, stand_in=["eva"], cwd="work")
    team.agent("eva", "Built.")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        if has_written:
            assert [turn.member for turn in conversation.undecided] == ["max"]
            assert (await said(conversation))[-1] == (
                "bullpen: eva does not stand in for max by itself: max may have changed files. /retry lets it."
            )
            assert not team.prompts("eva")
            await conversation.retry()
            await conversation.until_quiet()
        assert (await said(conversation))[-1] == "max: Built."


async def test_who_sleeps_keeps_nobody_else_from_the_same_folder(team: Stage) -> None:
    member(team, "max", out(), stand_in=["eva"], permissions="edit")
    member(team, "eva", out())
    member(team, "ida", "I can.", permissions="edit")
    async with team.open() as conversation:
        await conversation.say(ASKED)
        while not team.prompts("eva") or conversation.running:
            await asyncio.sleep(0.02)
        await conversation.say("And you? [NEXT: ida]")
        while (await said(conversation))[-1] != "ida: I can.":
            await asyncio.sleep(0.02)
        assert waiting(conversation) == ["max"]
        await conversation.continue_turns()
        assert not conversation.progress.rests, "a person wants them to be tried again"


async def test_what_a_stand_in_uses_is_its_programs(team: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    team.put_on_the_path("codex", monkeypatch)
    member(team, "max", out(), stand_in=["eva"])
    team.agent("eva", [{"say": "Built."}, {"usage": {"input": 1000, "output": 100}}], agent="codex", model="gpt-5.1")
    async with team.open() as conversation:
        await tell(conversation, ASKED)
        began = events_so_far(conversation, TurnBegan)
        assert [one.stand_in for one in began] == ["", "eva"]
    with SqliteStore(team.db) as store:
        explained = [explain(store, conversation.id, turn) for turn in ("1", "2")]
        assert [(one.member, one.stand_in, one.agent_type) for one in explained] == [
            ("max", "", "claude-code"),
            ("max", "eva", "openai-codex"),
        ]
        by_agent, by_model, by_member = (usage_table(store, by).rows for by in ("agent", "model", "member"))
    assert {(row.name, row.turns, row.failures, row.is_estimate) for row in by_agent} == {
        ("codex", 1, 0, True),
        ("claude", 1, 1, False),
    }
    assert "gpt-5.1" in {row.name for row in by_model}
    assert [(row.name, row.turns) for row in by_member] == [("max", 2)]


async def test_a_stand_in_has_its_own_variables_and_none_of_the_member(
    team: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_MAX", "max-key")
    monkeypatch.setenv("KEY_OF_EVA", "eva-key")
    runs = f'echo "$KEY_OF_MAX,$KEY_OF_EVA" > {team.folder}/seen'
    tool = {"tool": {"name": "Bash", "input": {"command": runs}, "output": "", "runs": runs}}
    member(team, "max", out(), stand_in=["eva"], env=["KEY_OF_MAX"])
    member(team, "eva", [tool, {"say": "Built."}], env=["KEY_OF_EVA"])
    async with team.open() as conversation:
        assert (await tell(conversation, ASKED))[-1] == "max: Built."
    assert (team.folder / "seen").read_text(encoding="utf-8") == ",eva-key\n"


async def test_a_stand_in_may_begin_before_the_quota_is_used_up(team: Stage) -> None:
    windows = {"five_hour": {"utilization": 0.93, "resetsAt": milliseconds() // 1000 + 7200}}
    report = json.dumps({"type": "rate_limit_event", "rate_limit_info": {"unifiedWindows": windows}})
    member(team, "max", [{"raw": f"{report}\n"}, {"say": "Mine."}], stand_in=["eva"], stand_in_at=0.9)
    member(team, "eva", "Built.", out())
    async with team.open() as conversation:
        assert (await tell(conversation, ASKED))[-1] == "max: Mine."
        *_, told, answered = await tell(conversation, ASKED)
        assert re.fullmatch(rf"bullpen: eva stands in for max until {MOMENT}: 93 % of its quota is used\.", told)
        assert answered == "max: Built."
        *_, told, answered = await tell(conversation, ASKED)
        assert (told, answered) == ("bullpen: max is back: eva no longer stands in for it.", "max: Mine.")
    assert (len(team.prompts("max")), len(team.prompts("eva"))) == (2, 2), "it is spared, not used up"


async def test_a_stand_in_may_begin_before_the_budget_is_used_up(team: Stage) -> None:
    member(team, "max", "Mine.", stand_in=["eva"], stand_in_at=0.1, budget={"turns": 10})
    member(team, "eva", "Built.")
    async with team.open() as conversation:
        assert (await tell(conversation, ASKED))[-1] == "max: Mine."
        told, answered = (await tell(conversation, ASKED))[-2:]
        assert (told, answered) == ("bullpen: eva stands in for max: 10 % of its budget is used.", "max: Built.")
        for _ in range(2):
            assert (await tell(conversation, ASKED))[-1] == "max: Built."


@pytest.mark.parametrize("words", ["Thank you, max!", "Understood.", "I failed: 429, its quota is used up."])
async def test_nobody_is_woken_by_a_failure_or_a_thank_you(team: Stage, words: str) -> None:
    member(team, "max", out(), stand_in=["eva"])
    member(team, "eva", words)
    member(team, "ida", words)
    async with team.open() as conversation:
        await tell(conversation, "[NEXT: max & ida] Build it.")
        turns = await conversation.read(lambda store, id_: store.turns(id_))
        assert [turn.member for turn in turns] == ["max", "ida", "max"]
        assert not conversation.waiting
    assert [len(team.prompts(name)) for name in ("max", "eva", "ida")] == [1, 1, 1]
