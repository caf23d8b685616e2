"""Turns of different messages run at the same time, unless both may edit one workspace or are of one member."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from tests.conversation.remembering import RememberingStage
from tests.conversation.stage import (
    FAIL,
    GO,
    HANG,
    Script,
    Stage,
    events_so_far,
    said,
    tell,
    until_at_work,
    until_said,
    waiting,
)

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Paused, Quiet, TurnBegan
from bullpen.conversation.workspaces import workspace_of, workspaces
from bullpen.team.team import Member


def waits_for_file(stage: Stage, name: str, **keys: str) -> Path:
    """Add an agent that says something, and ends when a file is there; return which."""
    file = stage.folder / f"{name} may end"
    script = f'cat > /dev/null; echo "I am at it."; until [ -e "{file}" ]; do sleep 0.01; done; echo "It is built."'
    stage.members[name] = {"name": name, "command": ["sh", "-c", script], **keys}
    return file


async def until(conversation: Conversation, speaker: str, times: int = 1) -> None:
    """Wait until a member has spoken that often."""
    while sum(line.startswith(f"{speaker}:") for line in await said(conversation)) < times:
        await asyncio.sleep(0.005)


async def test_a_question_is_answered_while_a_builder_works(stage: Stage) -> None:
    stage.people_and_agents("kim", "reader")
    built = waits_for_file(stage, "builder", permissions="edit")
    async with stage.open() as conversation:
        await conversation.say("Build it. [NEXT: builder]")
        await until_at_work(conversation, "builder")
        await conversation.say("What is this? [NEXT: reader]")
        await until(conversation, "reader")
        assert [running.turn.member for running in conversation.running.values()] == ["builder"]
        assert not events_so_far(conversation, Quiet), "somebody still works"
        built.touch()
        await conversation.until_quiet()
        assert [line.partition(":")[0] for line in await said(conversation)] == ["kim", "kim", "reader", "builder"]


async def test_two_that_may_edit_one_folder_work_one_after_the_other(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("second", permissions="full")
    stage.agent("reader")
    built = waits_for_file(stage, "builder", permissions="edit")
    async with stage.open() as conversation:
        await conversation.say("Build it. [NEXT: builder]")
        await conversation.say("Build that. [NEXT: second]")
        await conversation.say("And this? [NEXT: reader]")
        await until(conversation, "reader")
        assert waiting(conversation) == ["second"]
        built.touch()
        await conversation.until_quiet()
        assert (await said(conversation))[3:] == [
            "reader: I am reader.",
            "builder: I am at it.\nIt is built.",
            "second: I am second.",
        ]


async def test_in_folders_of_their_own_builders_work_at_the_same_time(stage: Stage) -> None:
    for folder in ("one", "two"):
        (stage.folder / folder).mkdir()
    stage.person("kim")
    stage.agent("a", HANG, permissions="edit", cwd="one")
    stage.agent("b", HANG, permissions="edit", cwd="two")
    async with stage.open() as conversation:
        await conversation.say("Build it. [NEXT: a]")
        await conversation.say("Build that. [NEXT: b]")
        await until_at_work(conversation, "a", "b")


async def test_folders_of_one_repository_are_one_workspace(stage: Stage) -> None:
    subprocess.run(["git", "init", "-q", stage.folder / "repo"], check=True)
    for folder in ("one", "two"):
        (stage.folder / "repo" / folder).mkdir()
    stage.people_and_agents("kim", "r")
    stage.agent("a", HANG, permissions="edit", cwd="repo/one")
    stage.agent("b", permissions="edit", cwd="repo/two")
    async with stage.open() as conversation:
        await conversation.say("Build it. [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.say("Build that. [NEXT: b]")
        await conversation.say("And this? [NEXT: r]")
        await until(conversation, "r")
        assert waiting(conversation) == ["b"]


def test_where_a_workspace_is(tmp_path: Path) -> None:
    repository, worktree, link = tmp_path / "repo", tmp_path / "tree", tmp_path / "link"
    (repository / "deep" / "down").mkdir(parents=True)
    git = ["git", "-C", str(repository), "-c", "user.name=kim", "-c", "user.email=kim@localhost"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"], ["worktree", "add", "-q", worktree]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (worktree / "in").mkdir()
    link.symlink_to(repository / "deep")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    (tmp_path / ".git").mkdir()

    assert workspace_of(repository / "deep" / "down") == str(repository)
    assert workspace_of(worktree / "in") == str(worktree), "a worktree is a workspace of its own"
    assert workspace_of(link / "down") == str(repository)
    assert workspace_of(tmp_path / "not there") == str(tmp_path / "not there"), "an empty .git is no repository"
    assert workspace_of(tmp_path / "circle").startswith(str(tmp_path))
    members = [
        Member(name="a", type="ai", permissions="edit", cwd="repo/deep"),
        Member(name="b", type="ai", permissions="full"),
        Member(name="c", type="ai"),
        Member(name="kim", type="human"),
    ]
    assert workspaces(members, tmp_path) == {"a": str(repository), "b": str(tmp_path)}


async def test_a_member_answers_one_question_at_a_time(stage: Stage) -> None:
    stage.people_and_agents("kim", "r")
    done = waits_for_file(stage, "a")
    async with stage.open() as conversation:
        await conversation.say("One [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.say("Two [NEXT: a]")
        await conversation.say("Three [NEXT: r]")
        await until(conversation, "r")
        assert (waiting(conversation), len(conversation.running)) == (["a"], 1)
        done.touch()
        await conversation.until_quiet()
        assert [line.partition(":")[0] for line in await said(conversation)][3:] == ["r", "a", "a"]


async def test_a_relay_keeps_its_order_while_others_are_answered(stage: Stage) -> None:
    stage.people_and_agents("kim", "b r")
    done = waits_for_file(stage, "a")
    async with stage.open() as conversation:
        await conversation.say("Relay [NEXT: a, b]")
        await until_at_work(conversation, "a")
        await conversation.say("Meanwhile [NEXT: r]")
        await conversation.say("You too [NEXT: b]")
        await until(conversation, "r")
        await until(conversation, "b")
        done.touch()
        await conversation.until_quiet()
        lines = await said(conversation)
    assert lines[-2:] == ["a: I am at it.\nIt is built.", "b: I am b."]
    assert stage.prompt("b").endswith("a: I am at it.\nIt is built.")
    assert "I am r." in stage.prompt("b"), "it was said before the reply that is answered"


async def test_who_begins_beside_another_sees_what_was_said_before_its_message(stage: Stage) -> None:
    stage.people_and_agents("kim", "r s")
    done = waits_for_file(stage, "a")
    async with stage.open() as conversation:
        await conversation.say("One [NEXT: a]")
        await until_at_work(conversation, "a")
        await conversation.say("Two [NEXT: r]")
        await until(conversation, "r")
        await conversation.say("Three [NEXT: s]")
        await until(conversation, "s")
        done.touch()
        await conversation.until_quiet()
        await tell(conversation, "Four [NEXT: s]")
    assert "One" in stage.prompt("r")
    first, second = stage.prompts("s")
    assert ("Two" in first, "I am r." in first, "I am at it." in first) == (True, True, False)
    assert "I am at it." in second


async def test_a_failure_holds_up_its_own_relay_only(stage: Stage) -> None:
    stage.people_and_agents("kim", "b r")
    stage.agent("a", FAIL, "Now it works.")
    built = waits_for_file(stage, "builder", permissions="edit")
    async with stage.open() as conversation:
        await conversation.say("Build it. [NEXT: builder]")
        await until_at_work(conversation, "builder")
        await conversation.say("Relay [NEXT: a, b]")
        while not conversation.undecided:
            await asyncio.sleep(0.005)
        await conversation.say("Still there? [NEXT: r]")
        await until(conversation, "r")
        assert waiting(conversation) == ["b"]
        await conversation.retry()
        await until(conversation, "b")
        assert [running.turn.member for running in conversation.running.values()] == ["builder"]
        built.touch()
        await conversation.until_quiet()


async def test_what_failed_is_retried_beside_those_who_answer_the_same(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", FAIL, "Now it works.")
    done = waits_for_file(stage, "b")
    async with stage.open() as conversation:
        await conversation.say("Both [NEXT: a & b]")
        while not conversation.undecided:
            await asyncio.sleep(0.005)
        await conversation.retry()
        await until(conversation, "a")
        assert conversation.running
        done.touch()
        await conversation.until_quiet()
    assert "I am at it." not in stage.prompt("a")


async def test_a_pause_lets_nothing_begin_beside_what_runs(stage: Stage) -> None:
    stage.people_and_agents("kim", "r")
    stage.agent("h", HANG)
    built = waits_for_file(stage, "builder", permissions="edit")
    stage.agent("second", permissions="edit")
    async with stage.open() as conversation:
        await conversation.say("Build it. [NEXT: builder]")
        await conversation.say("Hang [NEXT: h]")
        await conversation.say("Then [NEXT: second]")
        await until_at_work(conversation, "builder", "h")
        (hanging,) = [turn_id for turn_id, running in conversation.running.items() if running.turn.member == "h"]
        await conversation.cancel(hanging)
        assert conversation.paused == "Turn 2 of h was cancelled."
        built.touch()
        await conversation.until_quiet()
        assert waiting(conversation) == ["second"]
        await conversation.say("And you? [NEXT: r]")
        await conversation.until_quiet()
        assert waiting(conversation) == ["second"], "what waited in the pause is held"
        await conversation.continue_turns()
        await conversation.until_quiet()
        assert (await said(conversation))[-1] == "second: I am second."


async def test_a_limit_on_turns_counts_those_that_run(stage: Stage) -> None:
    stage.person("kim")
    stage.limits["turns_per_message"] = 2
    stage.agent("a", "All of you. [NEXT: b & c & d]")
    for name in "bcd":
        stage.agent(name, HANG)
    async with stage.open() as conversation:
        await conversation.say("Go [NEXT: a]")
        await until_at_work(conversation, "b")
        while conversation.paused is None:
            await asyncio.sleep(0.005)
        assert [began.turn.member for began in events_so_far(conversation, TurnBegan)] == ["a", "b"]
        assert waiting(conversation) == ["c", "d"]
        assert [paused.kind for paused in events_so_far(conversation, Paused)] == ["cap"]
        assert not events_so_far(conversation, Quiet), "b still works"
        await conversation.cancel()
        await conversation.until_quiet()
        assert events_so_far(conversation, Quiet)


async def test_at_a_limit_people_are_told_although_a_builder_works(stage: Stage) -> None:
    stage.person("kim")
    stage.limits["back_and_forth"] = 2
    stage.agent("a", "One. [NEXT: b]", "Three. [NEXT: b]")
    stage.agent("b", "Two. [NEXT: a]")
    built = waits_for_file(stage, "builder", permissions="edit")
    async with stage.open() as conversation:
        await conversation.say("Build it. [NEXT: builder]")
        await until_at_work(conversation, "builder")
        await conversation.say("Talk [NEXT: a]")
        while conversation.paused is None:
            await asyncio.sleep(0.005)
        assert conversation.running
        built.touch()
        await conversation.until_quiet()
        assert conversation.paused == "a and b have handed over to each other 2 times in a row."
        assert waiting(conversation) == ["a"]


async def test_what_ran_side_by_side_when_it_closed_is_asked_about(stage: Stage) -> None:
    stage.person("kim")
    stage.agent("a", HANG, "Done.", permissions="edit")
    stage.agent("b", permissions="edit")
    stage.agent("r", HANG, "Read.")
    async with stage.open() as conversation:
        for name in "abr":
            await conversation.say(f"Go [NEXT: {name}]")
        await until_at_work(conversation, "a", "r")
    async with stage.open(conversation.id) as again:
        assert sorted(ended.member for ended in again.undecided) == ["a", "r"]
        assert again.paused == "1 turn was waiting when bullpen stopped."
        await again.retry("1")
        await again.retry("3")
        await again.continue_turns()
        await again.until_quiet()
        assert sorted((await said(again))[3:]) == ["a: Done.", "b: I am b.", "r: Read."]


SLOW: Script = [{"say": "half of it\n"}, GO, {"say": "all of it"}]


@pytest.mark.parametrize("cli", ["claude", "codex"])
async def test_who_remembers_is_given_everything_once(remembering: RememberingStage, cli: str) -> None:
    """While it works, others are asked and answer; all of that is new to it in its next turn, and only then."""
    stage = remembering
    stage.person("kim")
    stage.remembering("m", SLOW, cli=cli)
    stage.agent("r", "r says so.")
    stage.agent("s", "s says so.")
    async with stage.open() as conversation:
        await conversation.say("one [NEXT: m]")
        await until_said(conversation, "half of it")
        await conversation.say("two [NEXT: r]")
        await conversation.say("three [NEXT: m]")
        await conversation.say("four [NEXT: s]")
        await until(conversation, "s")
        stage.go()
        await conversation.until_quiet()
        await tell(conversation, "five [NEXT: m]")
    assert stage.origins("m") == ["new", "resumed", "resumed"]
    (asked,) = stage.asked(cli)[-1:]
    everything = "\n".join(asked)
    for text in ("one", "two", "three", "four", "five", "r says so.", "s says so."):
        assert everything.count(text) == 1, f"{text} in {everything}"
