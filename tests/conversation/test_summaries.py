"""Summaries: asked for by a person or by itself, written once, given in the place of what is not shown, and dropped."""

import asyncio
from typing import Any

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import FAIL, HANG, Stage, events_so_far, said, until_at_work

from bullpen.cli.plain.explanation import print_explanation
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Said, SummaryDropped
from bullpen.errors import BullpenError, NothingToSumUp
from bullpen.routing.summaries import Summary, covered_by
from bullpen.testing.clock import ManualClock
from bullpen.view.decided import decisions_in
from bullpen.view.explanation import Explanation, explain

SUMMARY = "People said one, two and three (#1, #2, #3)."
STANDS = "(bullpen: Summary #{number} covers the messages #1 to #{last}.)"


@pytest.fixture
def old(stage: Stage) -> Stage:
    """A person, one who sums up, one who is shown three messages, and one who sees only what concerns it."""
    stage.person("kim")
    stage.agent("a", SUMMARY, window=3)
    stage.agent("b", "I am b.", window=3)
    stage.agent("c", "I am c.", window=3, visibility="addressed")
    return stage


async def notes(conversation: Conversation, *words: str) -> None:
    for word in words:
        await conversation.note(f"note {word}", sender="kim")


async def sum_up(conversation: Conversation, text: str = "[SUM UP]") -> None:
    await conversation.say(text, sender="kim")
    await conversation.until_quiet()


async def ask(conversation: Conversation, text: str) -> None:
    await conversation.say(text, sender="kim")
    await conversation.until_quiet()


def test_a_summary_stands_for_what_is_not_shown(old: Stage) -> None:
    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five", "six")
            await sum_up(conversation, "Above all the numbers. [SUM UP]")
            stored = await conversation.messages(limit=99)
            assert covered_by(stored[-1].message) is not None
            assert stored[-1].message.extra == {"summaryOf": {"first": 1, "last": 3}}
            assert conversation.progress.summaries == (
                Summary(number=8, member="a", first=1, last=3, size=len(SUMMARY)),
            )
            assert conversation.progress.summing == {}
            await ask(conversation, "@b hello")

    asyncio.run(play())
    given = old.prompt("a")
    assert "sum up the messages #1 to #3" in given
    assert "#1 kim:\n```text\nnote one\n```" in given
    assert "Above all the numbers." in given
    assert "note four" not in given
    shown = old.prompt("b")
    assert (
        f"(4 earlier messages are not shown.)\n{STANDS.format(number=8, last=3)}\na: {SUMMARY}\nkim: note five" in shown
    )
    assert "note one" not in shown


def test_the_transcript_says_who_sums_up_what(old: Stage) -> None:
    async def play() -> list[tuple[str, tuple[str, ...]]]:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four")
            await sum_up(conversation, "[SUM UP] [NEXT: b]")
            return [(said.reason, said.notes) for said in events_so_far(conversation, Said)[-2:]]

    assert asyncio.run(play()) == [
        (
            "a is asked to sum up #1.",
            ("[SUM UP] asks one agent for a summary, so hand-overs in the same message are not followed.",),
        ),
        ("Summary of #1.", ("This summary cites #2, #3, which are not in #1.",)),
    ]
    assert old.prompts("b") == []


def test_the_next_summary_continues_the_last_and_is_given_no_message_again(old: Stage) -> None:
    old.agent("a", SUMMARY, "All of it (#1, #9).", window=3)

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five", "six")
            await sum_up(conversation)
            await notes(conversation, "seven", "eight", "nine", "ten", "eleven")
            await sum_up(conversation)
            first, second = conversation.progress.summaries
            assert (first.covered.words, second.covered.words) == ("#1 to #3", "#1 to #10")
            await ask(conversation, "@b hello")

    asyncio.run(play())
    given = old.prompt("a")
    assert f"Summary #8, of #1 to #3:\n```text\n{SUMMARY}\n```" in given
    assert "note three" not in given
    assert "#4 kim:\n```text\nnote four\n```" in given
    # The earlier summary is no message to sum up.
    assert "#8 a:" not in given
    assert STANDS.format(number=15, last=10) in old.prompt("b")
    assert SUMMARY not in old.prompt("b")


def test_nothing_to_sum_up_is_refused_and_nothing_is_stored(old: Stage) -> None:
    async def play() -> list[str]:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three")
            with pytest.raises(NothingToSumUp, match="nothing to sum up: agents are shown all 3 messages"):
                await conversation.say("[SUM UP]", sender="kim")
            await notes(conversation, "four", "five")
            await sum_up(conversation)
            with pytest.raises(NothingToSumUp):
                # Only the request and the summary came since.
                await conversation.drop_summary(3)
            return await said(conversation)

    assert asyncio.run(play())[3:] == ["kim: note four", "kim: note five", "kim: [SUM UP]", f"a: {SUMMARY}"]


def test_only_one_is_written_at_a_time_also_after_a_restart(old: Stage) -> None:
    old.agent("a", HANG, SUMMARY, window=3)

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five")
            sent = await conversation.say("[SUM UP]", sender="kim", message_id="mine")
            assert (await conversation.say("[SUM UP]", sender="kim", message_id="mine")).sequence == sent.sequence
            await until_at_work(conversation, "a")
            with pytest.raises(NothingToSumUp, match="already, in turn 1"):
                await conversation.say("[SUM UP: b]", sender="kim")
            name = conversation.id
        async with old.open(resume=name) as conversation:
            with pytest.raises(NothingToSumUp, match="/retry"):
                await conversation.say("[SUM UP]", sender="kim")
            await conversation.retry()
            await conversation.until_quiet()
            assert [one.covered.words for one in conversation.progress.summaries] == ["#1 to #2"]

    asyncio.run(play())


def test_a_summary_that_failed_can_be_skipped_or_handed_to_another(old: Stage) -> None:
    old.agent("a", FAIL, window=3)
    old.agent("b", SUMMARY, window=3)

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five")
            await sum_up(conversation)
            assert list(conversation.progress.summing) == ["1"]
            await conversation.skip()
            assert conversation.progress.summing == {}
            await sum_up(conversation)
            await conversation.hand_over("b")
            await conversation.until_quiet()
            assert [(one.member, one.covered.words) for one in conversation.progress.summaries] == [("b", "#1 to #3")]

    asyncio.run(play())


def test_a_dropped_summary_is_in_no_prompt_and_the_earlier_one_is(old: Stage) -> None:
    old.agent("a", SUMMARY, "All wrong (#1).", window=3)

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five", "six")
            await sum_up(conversation)
            await notes(conversation, "seven", "eight", "nine")
            await sum_up(conversation)
            await conversation.drop_summary(by="kim")
            await ask(conversation, "@b hello")
            assert STANDS.format(number=8, last=3) in old.prompt("b")
            await conversation.drop_summary(8, by="kim")
            await ask(conversation, "@b hello")
            assert [event.number for event in events_so_far(conversation, SummaryDropped)] == [13, 8]
            told = "bullpen: kim dropped summary #13 of #1 to #8: no prompt contains it any more."
            assert told in await said(conversation)
            decided = await conversation.read(decisions_in)
            assert [(one.person, one.choice) for one in decided] == [("kim", "drop-summary")] * 2
            with pytest.raises(NothingToSumUp, match="no summary to drop"):
                await conversation.drop_summary()
            assert f"a: {SUMMARY}" in await said(conversation)

    asyncio.run(play())
    assert "Summary #" not in old.prompt("b")
    assert not any("All wrong" in prompt for prompt in old.prompts("b"))


def test_who_may_not_see_all_of_it_gets_no_summary(old: Stage) -> None:
    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one")
            await ask(conversation, "@b a secret")
            await notes(conversation, "three", "four", "five", "six")
            await sum_up(conversation)
            await ask(conversation, "@c hello")
            await conversation.ask("c", by="kim")
            await conversation.until_quiet()

    asyncio.run(play())
    assert not any(SUMMARY in prompt or "Summary #" in prompt for prompt in old.prompts("c"))


def test_an_agent_cannot_ask_for_one_and_who_may_not_see_everything_cannot_write_one(old: Stage) -> None:
    old.agent("b", "Too much. [SUM UP]", window=3)

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five")
            await ask(conversation, "@b hello")
            [told] = [event for event in events_so_far(conversation, Said) if event.turn_id == "1"]
            assert told.notes == ("b cannot ask for a summary: only people can. Its [SUM UP] is text.",)
            for name, why in (("c", "addressed"), ("kim", "is a person")):
                with pytest.raises(BullpenError, match=why):
                    await conversation.say(f"[SUM UP: {name}]", sender="kim")
            assert conversation.progress.summaries == ()

    asyncio.run(play())


def test_it_changes_nothing_hands_over_to_nobody_and_its_citations_are_checked(old: Stage) -> None:
    old.agent("a", "See #99. [NEXT: b] [TEAM_TASK] something else", window=3, permissions="edit")

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five")
            await sum_up(conversation)
            told = events_so_far(conversation, Said)[-1]
            assert told.notes == ("This summary cites #99, which is not in #1 to #2.",)
            assert conversation.team_task is None
            assert conversation.waits_for == "kim"
            # Who summed up has not spoken to anybody: a message that names nobody still goes to the lead.
            assert conversation.progress.handed_over == {}

    asyncio.run(play())
    assert old.prompts("b") == []


def test_more_than_fits_is_summed_up_in_parts_the_oldest_first(old: Stage) -> None:
    old.agent("a", SUMMARY, window=0, max_bytes=6_000)

    async def play() -> list[str]:
        async with old.open() as conversation:
            await notes(conversation, *(f"{number} {'x' * 500}" for number in range(10)))
            for _ in range(3):
                await sum_up(conversation)
            return [one.covered.words for one in conversation.progress.summaries]

    assert asyncio.run(play()) == ["#1 to #5", "#1 to #12", "#1 to #14"]


def test_a_long_summary_is_left_out_as_a_whole_and_the_report_says_so(old: Stage) -> None:
    old.agent("a", "#1 " + "long " * 400, window=3)
    old.agent("b", "I am b.", window=3, max_bytes=2_000)

    async def play() -> tuple[str, ...]:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five")
            await sum_up(conversation)
            return (await conversation.preview("b")).report.cuts

    assert asyncio.run(play()) == ("CONTEXT without summary #7 of #1 to #2, for lack of room",)


def by_itself(stage: Stage, **keys: Any) -> None:
    stage.limits = {**stage.limits, "turns_per_message": 20}
    stage.members["a"] |= keys
    stage.summaries = {"after_bytes": 500}


def test_one_is_asked_for_by_itself_once_and_never_silently(old: Stage) -> None:
    by_itself(old)

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, *("x" * 100 for _ in range(5)))
            await conversation.until_quiet()
            assert old.prompts("a") == []
            await notes(conversation, *("x" * 100 for _ in range(2)))
            await conversation.until_quiet()
            lines = await said(conversation)
            assert [line for line in lines if line.startswith("bullpen")] == [
                (
                    "bullpen: a is asked to sum up #1 to #4. a is not shown 548 B of messages, which is more than "
                    "500 B (after_bytes)."
                )
            ]
            assert [one.covered.words for one in conversation.progress.summaries] == ["#1 to #4"]
            # Who drops it is not given another one of the same messages.
            await conversation.drop_summary(by="kim")
            await conversation.until_quiet()
            assert len(old.prompts("a")) == 1

    asyncio.run(play())


def test_one_that_failed_is_not_asked_for_again_by_itself(old: Stage) -> None:
    old.agent("a", FAIL, window=3)
    by_itself(old)

    async def play() -> None:
        async with old.open() as conversation:
            for _ in range(12):
                await notes(conversation, "x" * 100)
                await conversation.until_quiet()
            name = conversation.id
        async with old.open(resume=name) as conversation:
            await notes(conversation, "x" * 100)
            await conversation.until_quiet()

    asyncio.run(play())
    assert len(old.prompts("a")) == 1


def test_nobody_is_asked_by_opening_a_conversation(old: Stage) -> None:
    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, *("x" * 100 for _ in range(12)))
            name = conversation.id
        by_itself(old)
        async with old.open(resume=name) as conversation:
            await conversation.until_quiet()
            assert (old.prompts("a"), conversation.message_count) == ([], 12)
            await notes(conversation, "more")
            await conversation.until_quiet()
            assert len(old.prompts("a")) == 1

    asyncio.run(play())


@pytest.mark.parametrize("obstacle", ["budget", "limit"])
def test_none_is_asked_for_by_itself_that_could_not_begin(old: Stage, obstacle: str) -> None:
    by_itself(old)
    if obstacle == "budget":
        old.agent("a", "Hello.", SUMMARY, window=3, budget={"turns": 1})
    else:
        old.limits["turns_per_message"] = 1

    async def play() -> None:
        async with old.open() as conversation:
            await ask(conversation, "[NEXT: a] Hello.")
            await notes(conversation, *("x" * 100 for _ in range(12)))
            await conversation.until_quiet()
            assert (conversation.waiting, conversation.paused) == ((), None)
            if obstacle == "budget":
                await conversation.raise_budgets(by="kim")
                await notes(conversation, "more")
            else:
                await ask(conversation, "Never mind. [NEXT: kim]")
            await conversation.until_quiet()
            assert len(conversation.progress.summaries) == 1

    asyncio.run(play())


def test_explain_says_which_summary_a_turn_was_given(old: Stage, clock: ManualClock) -> None:
    # The clock stands still: a turn and its reply are in the same millisecond.
    async def play() -> Explanation:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five", "six")
            await sum_up(conversation)
            await ask(conversation, "@b hello")
            return await conversation.read(explain, "2")

    explained = asyncio.run(play())
    assert "CONTEXT: summary #8 covers #1 to #3" in explained.remarks
    assert [(one.first, one.last, one.why) for one in explained.not_offered] == [
        (1, 4, "its window is 3"),
        (8, 8, "it is a summary, which is given only in the place of what it covers"),
    ]


@pytest.mark.parametrize(("named", "text"), [("", "Please sum up. [SUM UP]"), ("b", "Please sum up. [SUM UP: b]")])
def test_the_command_says_the_marker_that_a_person_would_write(old: Stage, named: str, text: str) -> None:
    async def play() -> str:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four")
            return (await conversation.sum_up(named, by="kim")).message.content

    assert asyncio.run(play()) == text


def test_explain_says_what_was_given_to_be_summed_up(old: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    async def play() -> tuple[Explanation, Explanation]:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four", "five", "six")
            await sum_up(conversation)
            await notes(conversation, "seven", "eight", "nine", "ten")
            await sum_up(conversation)
            return await conversation.read(explain, "1"), await conversation.read(explain, "2")

    first, second = asyncio.run(play())
    assert first.summed_up == "Summed up: #1 to #3"
    assert [one.sentence for one in first.not_offered] == [
        "3 messages (#4 to #6) were not offered: it was asked to sum up #1 to #3."
    ]
    assert second.summed_up == "Summed up: #4 to #9, and the summary #8 of #1 to #3"
    assert [one.sentence for one in second.not_offered] == [
        "3 messages (#10 to #12) were not offered: it was asked to sum up #1 to #9."
    ]
    print_explanation(second)
    assert f"What it saw\n  {second.summed_up}.\n  #13 kim" in capsys.readouterr().out


def test_what_several_did_is_not_summed_up_before_one_result_is_picked(old: Stage) -> None:
    """A rival, or the judge, could read in a summary what it may not see yet."""

    async def play() -> list[str]:
        async with old.open() as conversation:
            await notes(conversation, "one", "two")
            await ask(conversation, "[NEXT: b | c] Do it.")
            await notes(conversation, "six", "seven", "eight", "nine")
            await sum_up(conversation)
            await conversation.pick("b", by="kim")
            await conversation.until_quiet()
            await sum_up(conversation)
            return [one.covered.words for one in conversation.progress.summaries]

    first, second = asyncio.run(play())
    assert first == "#1 to #3"
    assert int(second.removeprefix("#1 to #")) >= 5


def test_who_remembers_by_itself_gets_a_summary_when_its_session_is_rebuilt(remembering: RememberingStage) -> None:
    remembering.person("kim")
    remembering.remembering("a", window=2)
    remembering.agent("s", SUMMARY, window=2)

    async def play() -> tuple[str, str]:
        async with remembering.open() as conversation:
            await notes(conversation, "one", "two", "three", "four")
            await ask(conversation, "@a hello")
            await sum_up(conversation, "[SUM UP: s]")
            await notes(conversation, "five")
            continued = (await conversation.preview("a")).prompt
            await conversation.forget("a", by="kim")
            return continued, (await conversation.preview("a")).prompt

    continued, rebuilt = asyncio.run(play())
    assert SUMMARY not in continued
    assert SUMMARY in rebuilt


def test_a_summary_answers_nothing_and_hides_nothing_from_who_wrote_it(old: Stage) -> None:
    old.agent("a", "Well? [ASK: yes | no]", FAIL, SUMMARY, "Done.", window=3)

    async def play() -> None:
        async with old.open() as conversation:
            await notes(conversation, "one", "two", "three", "four")
            await ask(conversation, "@a go")
            assert list(conversation.progress.asks) == ["1"]
            await conversation.ask("a", by="kim")
            await conversation.until_quiet()
            await conversation.skip()
            await sum_up(conversation)
            assert list(conversation.progress.asks) == ["1"]
            await ask(conversation, "@a and now?")

    asyncio.run(play())
    # In the turn in which it summed up, it was not told that the one before had failed.
    summed_up, after = old.prompts("a")[-2:]
    assert "turn 2" not in summed_up
    assert "turn 2" in after
