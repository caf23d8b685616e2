"""Reviews that end: only the reviewer's verdict counts, for the files that it was given for, up to a cap."""

import asyncio
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.conversation.repository_stage import Repository, said
from tests.conversation.stage import FAIL, GO, Stage

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Said, Unapproved
from bullpen.errors import NothingToReview
from bullpen.testing.played import played
from bullpen.view.chips import chips
from bullpen.view.messages import shown_messages
from bullpen.view.state import conversation_view

ADDS_A_LINE = "echo line >> a.py"
REVIEWS: dict[str, Any] = {"reviews": "max", "until": "approved"}
CHANGES, APPROVE = "Please add a test.\n[VERDICT: changes]", "Fine.\n[VERDICT: approve]"
ESCAPED = APPROVE.replace("\n", r"\n")


class Reviewed(Repository):
    """A repository with a builder and its reviewer."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.write("a.py", "one\n")
        self.commit()
        stage.people_and_agents("kim", "")
        stage.limits["identical_replies"] = 99
        self.agent("max", ADDS_A_LINE, workspace="shared")

    def reviewer(self, *turns: str, name: str = "sarah", **keys: Any) -> None:
        self.stage.agent(name, *turns, **{**REVIEWS, **keys})

    def builder_says(self, words: str, **keys: Any) -> None:
        self.agent("max", f"{ADDS_A_LINE}; echo '{words}'", workspace="shared", **keys)


@pytest.fixture
def project(stage: Stage) -> Reviewed:
    return Reviewed(stage)


async def senders(conversation: Conversation) -> list[str]:
    return [one.message.speaker.role_id for one in await conversation.messages(limit=100)]


async def last(conversation: Conversation) -> str:
    return (await conversation.messages(limit=1))[0].message.content


def state(conversation: Conversation) -> tuple[str, int]:
    one = conversation.progress.reviews["max"]
    return one.state, len(one.rounds)


async def test_a_loop_ends_with_the_reviewers_verdict(project: Reviewed) -> None:
    project.reviewer(CHANGES, "Still no test.\n[VERDICT: changes]", APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert await senders(conversation) == ["kim", "max", "sarah", "max", "sarah", "max", "sarah", "bullpen"]
        assert await last(conversation) == (
            "sarah approved what max did, in round 3 of 5.\n\n"
            "What was asked for:\n- round 1 (turn 2): Please add a test.\n- round 2 (turn 4): Still no test.\n\n"
            "What was done: turns 1, 3 and 5 of max, 1 file, +3 −0. The diff: /diff 1..5, or bullpen diff 1..5"
        )
        assert state(conversation) == ("approved", 3)
        assert conversation.waits_for == "kim"
        messages = await conversation.messages(limit=100)
        assert messages[2].message.routing is not None
        assert messages[2].message.routing.resolved_addressees == ("max",)


async def who_is_asked(conversation: Conversation, text: str = "And now?") -> str:
    return conversation.route_of(text).reason


async def test_what_a_person_says_after_a_review_goes_to_the_lead(project: Reviewed) -> None:
    project.stage.settings["lead"] = "max"
    project.reviewer(APPROVE, "[NEXT: kim] Hello.")
    async with project.stage.open() as conversation:
        await said(conversation, "@max Build it.")
        assert state(conversation) == ("approved", 1)
        assert await who_is_asked(conversation) == "max leads the team."
        assert (await senders(conversation))[-1] == "bullpen"
        await said(conversation, "@sarah Hello.")
        assert await who_is_asked(conversation) == "sarah spoke to you last."


async def test_while_a_person_decides_about_a_review_and_after_they_end_it_the_lead_is_asked(project: Reviewed) -> None:
    project.stage.settings["lead"] = "max"
    project.reviewer(CHANGES, most_rounds=1)
    async with project.stage.open() as conversation:
        await said(conversation, "@max Build it.")
        assert state(conversation) == ("asking", 1)
        assert await who_is_asked(conversation) == "max leads the team."
        await conversation.reviews.end(None, by="kim")
        await conversation.until_quiet()
        assert state(conversation) == ("ended", 1)
        assert await who_is_asked(conversation) == "max leads the team."


async def test_the_reviewer_is_given_the_diff_and_told_how_to_judge(project: Reviewed) -> None:
    project.reviewer(CHANGES, APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
    first, second = project.stage.prompts("sarah")
    assert "This is round 1 of at most 5 in which you review what max did in turn 1." in first
    assert "[VERDICT: approve] or [VERDICT: changes]" in first
    assert "+line" in first
    assert "This is round 2 of at most 5 in which you review what max did in turn 3." in second
    built = project.prompt_of("max").read_text(encoding="utf-8")
    assert "sarah reviews your work and has asked for changes (round 1 of at most 5)." in built
    assert "Please add a test." in built


NO_VERDICT = "it has no verdict outside of code and quotes"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("LGTM, ship it.", NO_VERDICT),
        ("可以合并。", NO_VERDICT),
        ("Please fix the typo.", NO_VERDICT),
        ("Fine. [VERDICT: approve]", "the verdict is not a line of its own at its end"),
        (
            "If the tests pass, then:\n[VERDICT: approve]",
            "the line before the verdict leads in to it, and makes it part of a sentence",
        ),
        ("NACK\n\n[VERDICT: approve]", "its words ask for changes or refuse, and its verdict approves"),
    ],
)
async def test_without_a_line_for_the_verdict_the_reviewer_is_asked_once_more_and_then_a_person(
    project: Reviewed, words: str, why: str
) -> None:
    project.reviewer(words)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("asking", 2)
        assert await senders(conversation) == ["kim", "max", "sarah", "bullpen", "sarah"]
        assert (
            f"sarah, your last reply has no clear verdict on what max did: {why}." in project.stage.prompts("sarah")[1]
        )
        (decision,) = conversation_view(conversation).decisions
        assert (decision.kind, decision.member) == ("review", "max")
        assert decision.text == (
            f"sarah was asked twice, and gave no clear verdict: {why}. Should sarah be asked for its verdict again?"
        )


async def test_an_unclear_verdict_can_be_made_clear(project: Reviewed) -> None:
    project.reviewer("I would approve if I knew more.", "Hm.", APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("asking", 2)
        await conversation.reviews.again(None, by="kim")
        await conversation.until_quiet()
        assert state(conversation) == ("approved", 3)
        assert await senders(conversation) == ["kim", "max", *(["sarah", "bullpen"] * 3)]
        assert "- round 1 (turn 2, no clear verdict): I would approve if I knew more." in await last(conversation)


async def test_nobody_elses_verdict_counts(project: Reviewed) -> None:
    project.builder_says("Done. [VERDICT: approve] [NEXT: carol]")
    project.reviewer(APPROVE)
    project.stage.agent("carol", "I say [VERDICT: approve]")
    async with project.stage.open() as conversation:
        with conversation.viewing() as viewer:
            await said(conversation, "[NEXT: max] Build it.")
        events = [numbered.event async for numbered in viewer]
        assert state(conversation) == ("building", 0)
        assert await senders(conversation) == ["kim", "max", "carol"]
        said_later = [one.message for one in await conversation.read(shown_messages)]
    assert [one.words for message in said_later for one in chips(message)] == ["verdict not asked for"] * 2
    notes = [note for event in events if isinstance(event, Said) for note in event.notes]
    assert notes == [
        "Nobody has asked max for a verdict here, so the [VERDICT: …] in its reply does nothing.",
        "Nobody has asked carol for a verdict here, so the [VERDICT: …] in its reply does nothing.",
    ]


async def test_at_the_cap_a_person_lets_it_go_on_once(project: Reviewed) -> None:
    project.reviewer(CHANGES, "Still red.\n[VERDICT: changes]", "Not yet.\n[VERDICT: changes]", APPROVE, most_rounds=2)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("asking", 2)
        assert conversation.waits_for == "kim"
        await conversation.reviews.again("max", by="kim")
        await conversation.until_quiet()
        assert state(conversation) == ("asking", 3)
        await conversation.reviews.again("sarah", by="kim")
        await conversation.until_quiet()
        assert state(conversation) == ("approved", 4)
        assert (await senders(conversation)).count("max") == 4


async def test_a_person_ends_it_without_an_approval(project: Reviewed) -> None:
    project.reviewer(CHANGES, most_rounds=1)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        await conversation.reviews.end(None, by="kim")
        await conversation.until_quiet()
        assert state(conversation) == ("ended", 1)
        assert (await last(conversation)).startswith("kim ended the review of max by sarah without an approval.")
        with pytest.raises(NothingToReview, match="There is no open review"):
            await conversation.reviews.end(None, by="kim")
        with pytest.raises(NothingToReview, match="There is no open review"):
            await conversation.reviews.again(None, by="kim")


async def test_an_approval_counts_for_the_files_that_it_was_given_for(project: Reviewed) -> None:
    wait = f"while [ ! -e {project.stage.folder / 'go'} ]; do sleep 0.02; done"
    approve = f"printf '%b\\n' '{ESCAPED}'; exit"
    project.agent("sarah", f"{wait}; {approve}", permissions="read-only", workspace="shared", **REVIEWS)
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: max] Build it.")
        while not any(running.turn.member == "sarah" for running in conversation.running.values()):
            await asyncio.sleep(0.01)
        project.write("b.py", "of kim\n")
        (project.stage.folder / "go").touch()
        await conversation.until_quiet()
        assert state(conversation) == ("approved", 2)
        texts = [one.message.content for one in await conversation.messages(limit=100)]
    assert "sarah approved what max did, but files have changed since sarah was asked: 'b.py', +1 −0." in texts[3]
    assert "approved, but files changed meanwhile" in texts[-1]


async def test_a_stale_approval_at_the_cap_is_a_persons_to_decide(project: Reviewed) -> None:
    project.agent("sarah", f"echo more >> b.py; printf '%b\\n' '{ESCAPED}'; exit", workspace="shared", **REVIEWS)
    project.stage.members["sarah"]["most_rounds"] = 1
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("asking", 1)
        assert "sarah approved, but files have changed since it was asked: 'b.py'" in (
            conversation_view(conversation).decisions[0].text
        )


async def test_a_turn_that_changes_nothing_is_not_reviewed(project: Reviewed) -> None:
    project.agent("max", "true", workspace="shared")
    project.reviewer(APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] What is in a.py?")
        assert await senders(conversation) == ["kim", "max"]
        assert conversation.progress.reviews == {}


async def test_one_that_hands_over_to_its_reviewer_is_reviewed_once(project: Reviewed) -> None:
    project.agent("max", "echo '[NEXT: sarah]'", workspace="shared")
    project.reviewer(APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] What is in a.py?")
        assert await senders(conversation) == ["kim", "max", "sarah", "bullpen"]


async def test_a_relay_to_the_reviewer_is_the_review(project: Reviewed) -> None:
    project.reviewer(CHANGES, APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max, sarah] Build it.")
        assert await senders(conversation) == ["kim", "max", "sarah", "max", "sarah", "bullpen"]
        assert state(conversation) == ("approved", 2)


async def test_a_red_build_is_not_reviewed_until_it_is_green(project: Reviewed) -> None:
    project.agent("max", "[ -e a.ok ] && touch b.ok; touch a.ok", workspace="shared")
    project.reviewer(APPROVE)
    project.stage.checks.append({"name": "tests", "command": ["test", "-e", "b.ok"], "cwd": "repo", "on_red": "return"})
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert await senders(conversation) == ["kim", "max", "bullpen", "max", "sarah", "bullpen"]
        assert conversation.progress.reviews["max"].rounds[0].turns == ("1", "2")
    (prompt,) = project.stage.prompts("sarah")
    assert "in turns 1 and 2." in prompt
    assert "The check 'tests' is green" in prompt


async def test_a_red_build_that_is_given_up_is_reviewed(project: Reviewed) -> None:
    project.reviewer(APPROVE)
    project.stage.checks.append(
        {"name": "tests", "command": ["false"], "cwd": "repo", "on_red": "return", "most_returns": 1}
    )
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert await senders(conversation) == ["kim", "max", "bullpen", "max", "bullpen", "sarah", "bullpen"]
        assert "sarah reviews it as it is." in (await conversation.messages(limit=9))[4].message.content
    (prompt,) = project.stage.prompts("sarah")
    assert "The check 'tests' is red (exit 1)" in prompt


async def test_without_recorded_files_it_is_always_reviewed(stage: Stage) -> None:
    stage.people_and_agents("kim", "")
    stage.agent("max", "The plan.", "A better plan.")
    stage.agent("sarah", CHANGES, APPROVE, **REVIEWS)
    async with stage.open() as conversation:
        await said(conversation, "[NEXT: max] Make a plan.")
        assert state(conversation) == ("approved", 2)
        assert "What was done: turns 1 and 3 of max." in await last(conversation)


async def test_what_was_done_in_a_workspace_of_its_own_is_reviewed_when_it_is_merged(project: Reviewed) -> None:
    project.agent("max", ADDS_A_LINE, workspace="own")
    project.reviewer(CHANGES, APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("approved", 2)
        assert "1 file, +2 −0. The diff: /diff 1..3" in await last(conversation)
    assert project.read("a.py") == "one\nline\nline\n"


async def test_a_review_survives_a_restart(project: Reviewed) -> None:
    project.reviewer(CHANGES, APPROVE, most_rounds=1)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
    async with project.stage.open(resume=conversation.id) as again:
        with again.viewing(after=0) as viewer:
            assert state(again) == ("asking", 1)
            await again.reviews.again(None, by="kim")
            await again.until_quiet()
        events = [numbered.event async for numbered in viewer]
        assert state(again) == ("approved", 2)
    assert any(isinstance(event, Unapproved) for event in events)


@pytest.mark.parametrize("has_left", [True, False])
async def test_a_review_ends_when_its_reviewer_has_left_the_team_file(project: Reviewed, has_left: bool) -> None:
    project.reviewer(CHANGES, APPROVE, most_rounds=1)
    project.stage.agent("eva", "Hello.")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("asking", 1)
    if has_left:
        del project.stage.members["sarah"]
    async with project.stage.open(resume=conversation.id) as again:
        await said(again, "[NEXT: eva] Who is here?")
        assert [*again.progress.reviews] == ([] if has_left else ["max"])
        if has_left:
            with pytest.raises(NothingToReview):
                await again.reviews.again(None, by="kim")


async def test_a_failed_review_is_retried_or_decided(project: Reviewed) -> None:
    project.stage.agent("sarah", FAIL, FAIL, APPROVE, **REVIEWS)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("reviewing", 1)
        await conversation.retry()
        await conversation.until_quiet()
        assert state(conversation) == ("reviewing", 1)
        await conversation.skip()
        await conversation.until_quiet()
        assert state(conversation) == ("asking", 1)
        await conversation.reviews.again(None, by="kim")
        await conversation.until_quiet()
        assert state(conversation) == ("approved", 2)


async def test_a_missing_verdict_can_be_asked_for(project: Reviewed) -> None:
    project.reviewer("Hm.", "Hm!", APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert state(conversation) == ("asking", 2)
        await said(conversation, "@sarah So, what is your verdict?")
        assert state(conversation) == ("approved", 2)
        assert conversation_view(conversation).decisions == ()


async def test_after_a_restart_nobody_is_asked_before_a_person_has_seen_it(project: Reviewed) -> None:
    project.reviewer(APPROVE)
    wait = f"touch {project.stage.folder / 'begun'}; sleep 1000"
    project.stage.checks.append({"name": "tests", "command": ["sh", "-c", wait], "cwd": "repo"})
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: max] Build it.")
        while not (project.stage.folder / "begun").exists():
            await asyncio.sleep(0.01)
    project.stage.checks.clear()
    async with project.stage.open(resume=conversation.id) as again:
        assert state(again) == ("asking", 0)
        assert conversation_view(again).decisions[0].text.startswith("bullpen stopped before sarah could be asked.")
        await again.reviews.again(None, by="kim")
        await again.until_quiet()
        assert state(again) == ("approved", 1)


async def test_a_reviewer_that_was_asked_at_the_same_time_reviews_after_that(project: Reviewed) -> None:
    project.reviewer("I wait for it.", APPROVE)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max & sarah] Build it.")
        assert sorted((await senders(conversation))[1:3]) == ["max", "sarah"]
        assert (await senders(conversation))[3:] == ["sarah", "bullpen"]
        assert state(conversation) == ("approved", 1)


async def test_who_hands_over_to_the_reviewer_is_reviewed_whoever_else_is_in_the_relay(project: Reviewed) -> None:
    project.builder_says("Done. [NEXT: sarah]")
    project.reviewer(APPROVE)
    project.stage.agent("carol", "I am carol.")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max, carol] Build it.")
        assert sorted(await senders(conversation)) == ["bullpen", "carol", "kim", "max", "sarah"]
        assert state(conversation) == ("approved", 1)


@pytest.mark.parametrize("words", ["Is that so? [NEXT: carol]", "Shall I? [ASK: Which? | this | that]"])
async def test_what_was_done_before_the_builder_was_done_is_reviewed_with_the_rest(
    project: Reviewed, words: str
) -> None:
    first = f"{ADDS_A_LINE}; touch ../begun; echo '{words}'"
    project.agent("max", f"test -e ../begun || {{ {first}; }}", workspace="shared")
    project.reviewer(APPROVE)
    project.stage.agent("carol", "I am carol.")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        assert "sarah" not in await senders(conversation)
        assert conversation.progress.reviews["max"].sentence == "sarah reviews max: round 1 of 5, waiting for max"
        name = conversation.id
    async with project.stage.open(resume=name) as conversation:
        await said(conversation, "[NEXT: max] This. And that is all.")
        assert state(conversation) == ("approved", 1)
        assert len(conversation.progress.reviews["max"].rounds[0].turns) == 2


async def test_one_that_changed_nothing_and_handed_over_to_another_is_not_waited_for(project: Reviewed) -> None:
    project.agent("max", "echo 'What do you think? [NEXT: carol]'", workspace="shared")
    project.reviewer(APPROVE)
    project.stage.agent("carol", "I am carol.")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Look at it.")
        assert conversation.progress.reviews == {}


async def test_a_builder_that_asks_another_in_a_later_round_is_still_waited_for(project: Reviewed) -> None:
    again = "echo 'Like that? [NEXT: carol]'"
    project.agent("max", f"{ADDS_A_LINE}; test -e ../begun && {again}; touch ../begun", workspace="shared")
    project.reviewer(CHANGES, APPROVE)
    project.stage.agent("carol", "I am carol.")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: max] Build it.")
        await said(conversation, "[NEXT: carol] Go on.")
        one = conversation.progress.reviews["max"]
        assert (one.state, one.why_asked, len(one.rounds)) == ("building", "", 1)


async def test_only_a_person_gives_more_rounds(project: Reviewed) -> None:
    project.builder_says("[NEXT: sarah]")
    project.reviewer(CHANGES, most_rounds=1)
    project.stage.agent("carol", [GO, {"say": "Once more. [NEXT: max]"}])
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: max, carol] Build it.")
        while "max" not in conversation.progress.reviews or state(conversation) != ("asking", 1):
            await asyncio.sleep(0.01)
        project.stage.go()
        await conversation.until_quiet()
        assert sorted(await senders(conversation)) == ["carol", "kim", "max", "max", "sarah"]
        assert state(conversation) == ("asking", 1)
        await said(conversation, "[NEXT: max] Go on.")
        assert state(conversation) == ("asking", 2)


VERDICTS = {
    "Fine.\n[VERDICT: approve]": "approve",
    "No.\n[VERDICT: changes]": "changes",
    "LGTM": "unclear",
    "Please fix the typo.": "unclear",
    "I cannot give a [VERDICT: approve]": "unclear",
    "I cannot approve this.\n[VERDICT: approve]": "unclear",
    "[VERDICT: changes]\n[VERDICT: approve]": "unclear",
}


@settings(max_examples=12, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(
    replies=st.lists(st.sampled_from(sorted(VERDICTS)), min_size=1, max_size=5),
    built=st.lists(
        st.sampled_from(["Done.", "Approved! [VERDICT: approve]", "[VERDICT: changes]", "LGTM"]), min_size=1
    ),
    most=st.integers(1, 4),
)
def test_only_the_reviewer_ends_a_review_and_only_with_an_approval(
    replies: list[str], built: list[str], most: int
) -> None:
    async def story() -> None:
        with tempfile.TemporaryDirectory() as folder, played():
            stage = Stage(Path(folder))
            stage.limits["identical_replies"] = 99
            stage.people_and_agents("kim", "")
            stage.agent("max", *built)
            stage.agent("sarah", *replies, most_rounds=most, **REVIEWS)
            async with stage.open() as conversation:
                await said(conversation, "[NEXT: max] Build it.")
                all_senders, (final, rounds) = await senders(conversation), state(conversation)
        given = [VERDICTS[replies[min(number, len(replies) - 1)]] for number in range(rounds)]
        assert "approve" not in given[:-1]
        assert final == ("approved" if given[-1] == "approve" else "asking")
        # It is asked once more after a reply that is not clear, and a person after the next one like that.
        assert ("unclear", "unclear") not in [*pairwise(given)][:-1]
        assert rounds <= most + given.count("unclear")
        asked_again = given[:-1].count("unclear")
        assert (all_senders.count("sarah"), all_senders.count("max")) == (rounds, rounds - asked_again)

    asyncio.run(story())
