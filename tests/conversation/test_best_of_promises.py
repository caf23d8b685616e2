"""Best of several: results are shown as a whole, nobody sees or picks what is not meant, and nothing is only said."""

import asyncio
from pathlib import Path

import pytest
from tests.conversation.killed_rounds import settled
from tests.conversation.repository_stage import LINES, OwnProject, line, records, said
from tests.conversation.stage import Stage, events_so_far, until_at_work
from tests.conversation.stage import said as all_said

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Trouble, Unpicked
from bullpen.errors import NothingToPick
from bullpen.files.own_paths import candidate_path
from bullpen.store.base import Store
from bullpen.view.best_of import result_changes, results_of

TWO_TRIES = "test -e once && echo second > twice || { echo first > once; exit 3; }"


@pytest.fixture
def project(stage: Stage) -> OwnProject:
    project = OwnProject(stage)
    for number, name in zip((1, 4, 7), ("ann", "bob", "cyd"), strict=True):
        project.agent(name, f"{line(number, f'of {name}')}; echo I am {name}.", workspace="shared")
    return project


def worktree(project: OwnProject, conversation: Conversation, member: str, turn: str) -> Path:
    home = project.stage.db.with_name(f"{project.stage.db.name}-files")
    return candidate_path(home, conversation.id, member, turn)


def shown(store: Store, conversation_id: str) -> list[list[str]]:
    """Return the files of each result as a person compares them."""
    results = results_of(store, conversation_id).results
    records = [result_changes(store, conversation_id, one) for one in results]
    return [[file.path for record in one for file in record.changes.files] for one in records]


def judged(project: OwnProject) -> str:
    """Return the results that the judge was given."""
    prompt = project.prompt_of("judy").read_text(encoding="utf-8")
    return prompt[prompt.index("members have done this task") :]


async def test_a_result_is_all_that_is_in_the_worktree_also_after_a_retry(project: OwnProject) -> None:
    project.agent("ann", TWO_TRIES, workspace="shared")
    project.agent("bob", TWO_TRIES, workspace="shared")
    project.agent("judy", "echo '[PICK: A]'", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Go.")
        for ended in conversation.undecided:
            await conversation.retry(ended.turn.id)
        await settled(conversation)
        assert await conversation.read(shown) == [["once", "twice"], ["once", "twice"]]
        assert judged(project).count("+first") == 2
        assert (project.read("once"), project.read("twice")) == ("first\n", "second\n")


async def test_nothing_of_an_earlier_try_is_shown_to_the_others(project: OwnProject) -> None:
    project.agent("ann", TWO_TRIES, workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        await conversation.retry()
        await said(conversation, "[NEXT: bob] [DIFF: 1] Look.")
        assert "first" not in project.prompt_of("bob").read_text(encoding="utf-8")


async def test_nobody_is_told_what_a_check_changed_in_the_worktree_of_another(project: OwnProject) -> None:
    tidies = ["sh", "-c", "touch tidied"]
    project.stage.checks.append({"name": "lint", "command": tidies, "cwd": "repo"})
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        assert "check" in {record.kind for record in await records(conversation)}
        await said(conversation, "[NEXT: bob] And now?")
        assert "itself changed" not in project.prompt_of("bob").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "verdict", ["[PICK: B] The other one says: [PICK: A]", "[PICK: A], or else [PICK: B]", "[PICK: A] [PICK: Z]"]
)
async def test_a_pick_that_a_judge_repeats_of_a_result_does_not_count(project: OwnProject, verdict: str) -> None:
    project.agent("judy", f"echo '{verdict}'", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Go.")
        await settled(conversation)
        assert [event.text for event in events_so_far(conversation, Unpicked) if "more than one" in event.text]
        assert project.read("a.txt") == LINES


async def test_the_same_pick_twice_is_one(project: OwnProject) -> None:
    project.agent("judy", "echo 'I pick [PICK: a]. **[PICK: A]**'", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob -> judy] Go.")
        await settled(conversation)
        assert (await all_said(conversation))[-1].startswith("bullpen: judy picked")


async def test_names_in_chinese_text_are_neutral_for_a_judge(project: OwnProject) -> None:
    project.agent("小明", "echo 我是小明，不是bob写的。", workspace="shared")
    project.agent("judy", "echo '[PICK: A]'", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: 小明 ｜ bob → judy] Go.")
        await settled(conversation)
    assert "小明" not in judged(project)
    assert "bob写" not in judged(project)


async def test_who_names_a_member_means_its_newest_result(project: OwnProject) -> None:
    go = project.stage.folder / "go"
    project.agent("cyd", f"while [ ! -e {go} ]; do sleep 0.02; done; echo Done.", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] One.")
        await conversation.pick("bob")
        await settled(conversation)
        await conversation.say("[NEXT: ann | cyd] Two.")
        await until_at_work(conversation, "cyd")
        for decide in (conversation.pick, conversation.discard):
            with pytest.raises(NothingToPick, match="Not everybody is done"):
                await decide("ann")
        assert len(project.worktrees()) >= 2
        await conversation.pick("1")
        go.touch()
        await settled(conversation)
        assert project.read("a.txt") == LINES.replace("line 1", "of ann").replace("line 4", "of bob")


async def test_who_picks_the_same_twice_says_it_once(project: OwnProject) -> None:
    go = project.stage.folder / "go"
    project.agent("cyd", f"while [ ! -e {go} ]; do sleep 0.02; done", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        await conversation.say("[NEXT: cyd] Edit.")
        await until_at_work(conversation, "cyd")
        await conversation.pick("ann")
        while not all(one.is_told for one in conversation.progress.rounds.values()):
            await asyncio.sleep(0.01)
        await conversation.pick("ann")
        assert project.read("a.txt") == LINES, "cyd may be editing"
        go.touch()
        await settled(conversation)
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")
        assert sum("picked the result" in text for text in await all_said(conversation)) == 1


async def test_a_judge_that_is_asked_again_is_not_shown_what_was_dropped(project: OwnProject) -> None:
    project.agent("judy", "exit 3", workspace="shared")
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob | cyd -> judy] Go.")
        assert "of ann" in judged(project)
        await conversation.discard("ann")
        await conversation.retry()
        await settled(conversation)
        assert "2 members" in project.prompt_of("judy").read_text(encoding="utf-8")
        assert "of ann" not in judged(project)
        assert judged(project).count("what was said") == 2


async def test_a_result_whose_worktree_is_lost_does_not_count_as_merged(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        own = worktree(project, conversation, "ann", "1")
        own.with_name(f"{own.name}.json").unlink()
        await conversation.pick("ann")
        await settled(conversation)
        (trouble,) = events_so_far(conversation, Trouble)
        assert "ann's result cannot be merged" in trouble.text
        (known,) = conversation.progress.rounds.values()
        assert [one.state for one in known.candidates] == ["gone", "done"]


async def test_what_was_taken_back_after_a_pick_is_redone(project: OwnProject) -> None:
    async with project.stage.open() as conversation:
        await said(conversation, "[NEXT: ann | bob] Go.")
        await conversation.pick("ann")
        await settled(conversation)
        await conversation.undo()
        with pytest.raises(NothingToPick, match="/redo"):
            await conversation.pick("ann")
        await conversation.redo()
        assert project.read("a.txt") == LINES.replace("line 1", "of ann")
