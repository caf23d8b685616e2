"""Best of several: candidates work apart, a person or a judge picks, one result is merged, nothing leaks."""

import asyncio
import shutil

import pytest
from tests.conversation.killed_rounds import settled
from tests.conversation.repository_stage import LINES, OwnProject, Repository, line, records, said
from tests.conversation.stage import Stage, events_so_far, until_at_work
from tests.conversation.stage import said as all_said

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Trouble, Unpicked
from bullpen.errors import NobodyToAsk, NothingToPick, NothingToUndo
from bullpen.store.base import Store
from bullpen.view.decided import decisions_in
from bullpen.view.explanation import RIVALS, explain, explain_now
from bullpen.view.state import conversation_view


@pytest.fixture
def project(stage: Stage) -> OwnProject:
    project = OwnProject(stage)
    for number, name in enumerate(("ann", "bob", "cyd"), start=1):
        project.agent(name, f"{line(number, f'of {name}')}; echo I am {name}.", workspace="shared")
    return project


def judge(project: OwnProject, verdict: str, name: str = "judy", **keys: str) -> None:
    project.agent(name, f"echo '{verdict}'", workspace="shared", **keys)


def states(conversation: Conversation) -> dict[str, str]:
    return {one.member: one.state for known in conversation.progress.rounds.values() for one in known.candidates}


async def test_each_works_apart_and_nothing_is_merged_until_one_is_picked(project: OwnProject) -> None:
    go = project.stage.folder / "go"
    for name in ("ann", "bob", "cyd"):
        project.agent(
            name,
            f"while [ ! -e {go} ]; do sleep 0.02; done; cat notes.txt > copy-{name}; sed -i 's/^line 1$/{name}/' a.txt",
            workspace="shared",
        )
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: ann | bob | cyd] Change line 1.")
        await until_at_work(conversation, "ann", "bob", "cyd")
        go.touch()
        await conversation.until_quiet()
        assert project.read("a.txt") == LINES, "nothing is merged"
        assert len(project.worktrees()) == 3
        (asked,) = events_so_far(conversation, Unpicked)
        assert [one.member for one in asked.candidates] == ["ann", "bob", "cyd"]
        assert conversation.waits_for == "kim"
        await conversation.pick("bob")
        await settled(conversation)
        assert project.read("a.txt") == LINES.replace("line 1", "bob")
        assert project.read("copy-bob") == "untracked\n"
        assert project.read("copy-ann") is None
        assert states(conversation) == {"ann": "done", "bob": "merged", "cyd": "done"}
        assert len(project.worktrees()) == 2, "the others stay"
        assert (await all_said(conversation))[-1] == (
            "bullpen: kim picked the result of bob (turn 2). Not picked: ann (turn 1) and cyd (turn 3). "
            "What was not picked stays until /discard."
        )
        await conversation.discard(by="kim")
        await settled(conversation)
        assert (project.worktrees(), conversation.progress.rounds) == ([], {})
        decided = await conversation.read(decisions_in)
        assert [(one.person, one.choice) for one in decided] == [("kim", "pick"), ("kim", "discard")]
        await conversation.undo()
        assert project.read("a.txt") == LINES
        with pytest.raises(NothingToUndo, match="was not picked"):
            await conversation.undo("1")
        with pytest.raises(NothingToUndo, match="was not picked"):
            await conversation.rewind("3")


async def test_nobody_sees_what_the_others_do_until_it_is_decided(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Change a line.")
        for asked in ("[NEXT: ann] [DIFF] And now?", "[NEXT: ann] [DIFF: 2] And now?"):
            await said(conversation, asked)
            prompt = project.prompt_of("ann").read_text(encoding="utf-8")
            assert "I am ann." in prompt
            assert "I am bob." not in prompt
            assert "of bob" not in prompt
        await conversation.pick("bob")
        await settled(conversation)
        await said(conversation, "[NEXT: ann] And now?")
        prompt = project.prompt_of("ann").read_text(encoding="utf-8")
        assert "I am bob." in prompt
        assert "kim picked the result of bob (turn 2)" in prompt


async def test_who_is_asked_about_the_last_message_is_not_shown_what_others_said(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Change a line.")
        for name, other in (("ann", "bob"), ("bob", "ann")):
            explained = await explain_now(conversation, name)
            assert f"I am {other}." not in str(explained.prompt)
            assert f"I am {other}." not in explained.answers.first_words
        last = (await conversation.messages(limit=1))[0].message.speaker.role_id
        name = "ann" if last == "bob" else "bob"
        await conversation.ask(name)
        await conversation.until_quiet()
        prompt = project.prompt_of(name).read_text(encoding="utf-8")
        assert f"I am {last}." not in prompt
        assert "Change a line." in prompt


async def test_why_a_turn_was_not_offered_what_others_said(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Change a line.")
        await said(conversation, "[NEXT: ann] And now?")
        ann, later = [await conversation.read(explain, turn) for turn in ("1", "3")]
        assert (ann.session, ann.turn and ann.turn.state) == (None, "done")
        assert "You are one of several who do this task" in str(ann.prompt)
        (left_out,) = later.not_offered
        assert left_out.sentence == f"1 message (#{left_out.first}) was not offered: {RIVALS}."
        of_bob = [one.sequence for one in await conversation.messages() if one.message.speaker.role_id == "bob"]
        assert of_bob == [left_out.first]
        assert "CONTEXT without 1 reply of others who do the same task" in later.remarks


def check(project: OwnProject, commands: str, name: str = "tests", **keys: object) -> None:
    project.stage.checks.append({"name": name, "command": ["sh", "-c", commands], "cwd": "repo", **keys})


async def test_nobody_sees_what_checks_said_about_the_others_until_it_is_decided(project: OwnProject) -> None:
    check(project, "cat a.txt; touch checked-$(grep -c 'of c' a.txt); exit 1")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | cyd] Change a line.")
        for asked in ("[NEXT: ann] [CHECKS] And now?", "[NEXT: ann] [CHECKS: 2] And now?"):
            await said(conversation, asked)
            prompt = project.prompt_of("ann").read_text(encoding="utf-8")
            assert "of cyd" not in prompt
            assert "checked-1" not in prompt
        assert "nobody who does the same task may see it yet" in prompt
        await said(conversation, "[NEXT: reader] [CHECKS] And now?")
        prompt = project.prompt_of("reader").read_text(encoding="utf-8")
        assert "of cyd" not in prompt, "it is not in the folder that reader sees"
        await said(conversation, "[NEXT: ann] [CHECKS: 1] And now?")
        assert "What checks said after turn 1 of ann" in project.prompt_of("ann").read_text(encoding="utf-8")
        await conversation.pick("cyd")
        await settled(conversation)
        await said(conversation, "[NEXT: ann] [CHECKS: 2] And now?")
        prompt = project.prompt_of("ann").read_text(encoding="utf-8")
        assert "What checks said after turn 2 of cyd" in prompt
        assert "of cyd" in prompt


async def test_a_red_check_does_not_go_back_to_one_of_several(project: OwnProject) -> None:
    check(project, "exit 1", on_red="return")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Change a line.")
        assert [event.text for event in events_so_far(conversation, Unpicked)], "a person is asked, nobody else"
        assert conversation.progress.turns_made == 2
        assert not [text for text in await all_said(conversation) if text.startswith("bullpen:")]


async def test_a_judge_is_shown_what_checks_said_under_neutral_names(project: OwnProject) -> None:
    check(project, "pwd; cat a.txt | grep '^of '; grep -q 'of bob' a.txt")
    judge(project, "[PICK: A]")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Go.")
        await settled(conversation)
        (one,) = conversation.progress.rounds.values()
    prompt = project.prompt_of("judy").read_text(encoding="utf-8")
    red = one.letter_of("1")
    assert f"Result {red}: what checks said\n\nThe check 'tests' is red (exit 1)" in prompt
    assert f"Result {one.letter_of('2')}: what checks said\n\nThe check 'tests' is green" in prompt
    assert f"```\n.\nof {red}\n```" in prompt, "neither its name nor its folder"
    assert "ann" not in prompt.split("what checks said", 1)[1].replace("of ann", "").replace("+of ann", "")


async def test_a_judge_can_look_up_nothing_that_came_after_the_task(project: OwnProject) -> None:
    judge(project, "[PICK: A]")
    wait = f"while [ ! -e {project.stage.folder / 'go'} ]; do sleep 0.02; done"
    project.agent("bob", f"{wait}; echo I am bob.", workspace="shared")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: ann | bob -> judy] Go.")
        await conversation.note("Bob is slow, as always.")
        project.stage.go()
        await settled(conversation)
        (one,) = conversation.progress.rounds.values()
        messages = await conversation.messages()

        def look(store: Store, conversation_id: str) -> tuple[str, str]:
            turn = store.turn(conversation_id, one.judge_turn).waiting
            candidates = [candidate.turn for candidate in one.candidates]
            prompts = conversation._turns._prompts
            member = conversation.team.member("judy")
            return prompts.visible_in(turn, member, candidates, is_judges=True).read(None, None, None)

        text, _ = await conversation.read(look)

    task = next(stored for stored in messages if stored.message.id == one.message_id)
    assert f"#{task.sequence} " in text
    assert f"#{task.sequence + 1} " not in text
    assert "Bob is slow" not in text
    assert "I am" not in text


async def test_one_that_fails_or_is_cancelled_does_not_stop_the_others(project: OwnProject) -> None:
    project.agent("ann", "echo half > half.txt; exit 3", workspace="shared")
    project.agent("bob", "sleep 60", workspace="shared")
    async with project.stage.open() as conversation:
        await conversation.say("[NEXT: ann | bob | cyd] Go.")
        await until_at_work(conversation, "bob")
        with pytest.raises(NothingToPick, match="Not everybody is done"):
            await conversation.pick("cyd")
        while states(conversation) != {"ann": "failed", "bob": "waiting", "cyd": "done"}:
            await asyncio.sleep(0.01)
        await conversation.cancel()
        await conversation.until_quiet()
        assert states(conversation) == {"ann": "failed", "bob": "failed", "cyd": "done"}
        with pytest.raises(NothingToPick, match="ann has no result"):
            await conversation.pick("ann")
        project.agent("ann", line(4, "of ann"), workspace="shared")
        await conversation.pick("cyd")
        await settled(conversation)
        assert not conversation.undecided, "what failed is settled with it"
        assert project.read("a.txt") == LINES.replace("line 3", "of cyd")
        assert states(conversation) == {"ann": "failed", "bob": "failed", "cyd": "merged"}
        await conversation.discard("ann")
        await conversation.discard("bob")
        await settled(conversation)
        assert (project.worktrees(), conversation.progress.rounds) == ([], {})


async def test_failed_experiments_are_left_all_at_once(project: OwnProject) -> None:
    for name in ("ann", "bob"):
        project.agent(name, "exit 3", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        await said(conversation, "[NEXT: ann | bob] Again.")
        first, *others = [turn.id for turn in conversation.undecided]
        await conversation.skip(first)
        assert [one.kind for one in conversation_view(conversation).decisions].count("pick") == 2
        for turn in others:
            await conversation.skip(turn)
        await conversation.until_quiet()
        assert conversation_view(conversation).decisions == ()
        assert [one.state for one in conversation.progress.rounds.values()] == ["decided", "decided"]
        assert (await all_said(conversation))[-1].startswith("bullpen: No result was picked.")


async def test_a_retry_continues_in_its_worktree(project: OwnProject) -> None:
    project.agent("ann", "test -e once && echo Twice. || { touch once; exit 3; }", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        assert states(conversation) == {"ann": "failed", "bob": "done"}
        await conversation.retry()
        await conversation.until_quiet()
        assert states(conversation) == {"ann": "done", "bob": "done"}
        assert len(project.worktrees()) == 2
        await conversation.pick("ann")
        await settled(conversation)
        assert project.read("once") == ""


async def test_another_member_in_the_place_of_one_that_failed(project: OwnProject) -> None:
    project.agent("ann", "exit 3", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        with pytest.raises(NobodyToAsk, match="takes part in this already"):
            await conversation.hand_over("bob")
        await conversation.hand_over("cyd")
        await conversation.until_quiet()
        assert states(conversation) == {"ann": "failed", "bob": "done", "cyd": "done"}
        assert project.read("a.txt") == LINES
        await conversation.discard()
        await settled(conversation)
        assert (project.worktrees(), conversation.progress.rounds) == ([], {})
        assert (await all_said(conversation))[-1].startswith("bullpen: No result was picked.")


async def test_a_conflict_is_the_same_decision_as_with_own_workspaces(project: OwnProject) -> None:
    project.agent("ann", f"{line(7, 'own')}", workspace="own")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        project.write("a.txt", LINES.replace("line 2", "of kim"))
        await conversation.pick("bob")
        await settled(conversation)
        assert conversation.progress.conflicts["2"].member == "bob"
        assert project.read("a.txt") == LINES.replace("line 2", "of kim")
        with pytest.raises(NothingToPick, match="/take"):
            await conversation.pick("bob")
        await conversation.settle("apart")
        assert states(conversation)["bob"] == "apart"
        await conversation.pick("bob")
        await settled(conversation)
        await conversation.settle("take")
        await settled(conversation)
        assert project.read("a.txt") == LINES.replace("line 2", "of bob")
        assert states(conversation) == {"ann": "done", "bob": "merged"}
        assert len(project.worktrees()) == 1
        await conversation.pick("ann")
        await settled(conversation)
        assert project.read("a.txt") == LINES.replace("line 2", "of bob").replace("line 7", "own")
        assert (project.worktrees(), conversation.progress.rounds) == ([], {})


async def test_who_only_reads_may_be_one_of_several(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: reader | ann] What do you think?")
        assert len(project.worktrees()) == 1
        await conversation.pick("reader")
        await settled(conversation)
        assert states(conversation) == {"reader": "merged", "ann": "done"}
        assert project.read("a.txt") == LINES


async def test_a_judge_gets_neutral_names_and_picks(project: OwnProject) -> None:
    project.agent(
        "ann", f"{line(1, 'first')}; echo ann and Bob differ, says Ann the Builder in $PWD.", workspace="shared"
    )
    judge(project, "The first. [PICK: a]", permissions="full")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Change a line.")
        await settled(conversation)
        prompt = project.prompt_of("judy").read_text(encoding="utf-8")
        everything = await all_said(conversation)
        merged = [record for record in await records(conversation) if record.kind == "merge"]
        kept = project.read("a.txt")
    assert "Result A" in prompt
    assert "Result B" in prompt
    asked = prompt[prompt.index("members have done this task") :]
    assert "ann" not in asked.casefold().replace("annot", "")
    assert "bob" not in asked.replace("of bob", "")
    assert "+first" in asked
    assert everything[-1].startswith("bullpen: judy picked the result of ")
    (merge,) = merged
    assert f"{merge.member} (turn {merge.turn_id}, it was A)" in everything[-1]
    assert kept == LINES.replace(*(("line 1", "first") if merge.member == "ann" else ("line 2", "of bob")))


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        ("I cannot say.", "did not write"),
        ("[PICK: C]", "'C', which is not one of A and B"),
        ("[PICK: ann]", "not one of"),
    ],
)
async def test_a_judge_that_does_not_pick_leaves_it_to_a_person(project: OwnProject, verdict: str, why: str) -> None:
    judge(project, verdict)
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Go.")
        (asked,) = events_so_far(conversation, Unpicked)
        assert why in asked.text
        assert project.read("a.txt") == LINES
        await conversation.pick("ann")
        await settled(conversation)
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")
        assert "it was" in (await all_said(conversation))[-1]


async def test_a_judge_that_fails_can_be_tried_again_or_replaced(project: OwnProject) -> None:
    judge(project, "x' && exit 3 || echo 'x")
    judge(project, "[PICK: B]", name="jim")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Go.")
        assert "judy did not pick: its turn 3 has no reply" in events_so_far(conversation, Unpicked)[0].text
        await conversation.hand_over("jim")
        await settled(conversation)
        assert (await all_said(conversation))[-1].startswith("bullpen: jim picked the result of ")
        assert not conversation.undecided


async def test_only_the_judge_picks(project: OwnProject) -> None:
    project.agent("ann", "echo '[PICK: A] [NEXT: cyd] [TEAM_TASK: mine]'", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        assert states(conversation) == {"ann": "done", "bob": "done"}
        assert conversation.team_task is None
        assert not any("cyd" in text.partition(":")[0] for text in await all_said(conversation))
        project.agent("cyd", "echo '[PICK: A]'", workspace="shared")
        await said(conversation, "[NEXT: cyd] Pick.")
        assert states(conversation) == {"ann": "done", "bob": "done"}


async def test_a_judge_changes_no_files_and_leaves_no_memory(project: OwnProject) -> None:
    judge(project, "[PICK: A]", permissions="edit")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Go.")
        await settled(conversation)
        # A command is looked at, since nobody can restrict it.
        assert {record.member for record in await records(conversation) if record.changes.files} <= {"ann", "bob"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[NEXT: ann | bob, cyd] Go.", "stands alone"),
        ("[NEXT: ann | bob & cyd] Go.", "stands alone"),
        ("[NEXT: ann | bob] [NEXT: cyd] Go.", "stands alone"),
        ("[NEXT: ann | nobody] Go.", "at least two"),
        ("[NEXT: ann | kim | bob] Go.", "kim is a person"),
        ("[NEXT: ann | bob -> ann] Go.", "cannot judge its own work"),
        ("[NEXT: ann | bob -> kim] Go.", "picks with /pick"),
        ("[NEXT: ann | bob -> who] Go.", "Nobody here is called 'who'"),
    ],
)
async def test_what_cannot_be_meant_asks_nobody(project: OwnProject, text: str, why: str) -> None:
    async with project.stage.open() as conversation:
        route = conversation.route_of(text)
        assert any(why in note for note in route.notes), route.notes
        await said(conversation, text)
        assert not conversation.progress.turns_made
        with pytest.raises(NobodyToAsk, match="stands alone"):
            await conversation.ask("ann | bob, cyd")


async def test_where_there_can_be_no_worktree_nobody_is_asked(stage: Stage) -> None:
    repository = Repository(stage)
    stage.people_and_agents("kim", "")
    for name in ("ann", "bob"):
        repository.agent(name, "true", workspace="shared")
    async with stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        assert not conversation.progress.turns_made
        (note, *_) = conversation.route_of("[NEXT: ann | bob] Go.").notes
        assert "ann cannot do the task apart from the others: the repository" in note
        assert "has no commit yet. Commit something first." in note
        shutil.rmtree(repository.folder / ".git")
        (note, *_) = conversation.route_of("[NEXT: ann | bob] Go.").notes
        assert "Make it one with `git init`" in note


async def test_asked_about_the_last_message(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await conversation.note("Change a line.")
        await conversation.ask("ann | bob")
        await conversation.until_quiet()
        assert states(conversation) == {"ann": "done", "bob": "done"}


async def test_an_agent_may_ask_for_it(project: OwnProject) -> None:
    project.agent("reader", "echo '[NEXT: ann | bob -> cyd]'", permissions="read-only")
    project.agent("cyd", "echo '[PICK: B]'", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: reader] Let them compete.")
        await settled(conversation)
        assert (await all_said(conversation))[-1].startswith("bullpen: cyd picked the result of ")


async def test_a_round_survives_and_what_a_crash_left_is_completed(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        known = conversation.id
    async with project.stage.open(resume=known) as conversation:
        assert states(conversation) == {"ann": "done", "bob": "done"}
        assert [event.text for event in events_so_far(conversation, Unpicked)]
        # As if it had died right after it was stored what was picked.
        conversation._best_of._tried.update(
            one
            for known in conversation.progress.rounds.values()
            for one in known.with_candidate("1", "picked").candidates
        )
        conversation._best_of.try_again = lambda: None  # type: ignore[method-assign]
        await conversation.pick("ann")
        await conversation.until_quiet()
        assert project.read("a.txt") == LINES
    async with project.stage.open(resume=known) as conversation:
        await settled(conversation)
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")
        assert states(conversation) == {"ann": "merged", "bob": "done"}
        assert not events_so_far(conversation, Trouble)
        await conversation.discard("bob")
        await settled(conversation)
    assert project.worktrees() == []
