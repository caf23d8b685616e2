"""A preview for agents in worktrees of their own: what they will be given, and nothing is made for it."""

import asyncio
from pathlib import Path

import pytest
from tests.conversation.repository_stage import LINES, OwnProject, line, said
from tests.conversation.stage import Stage, until_at_work

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import load_team
from bullpen.view.preview import Supposed, new_conversation, preview


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OwnProject:
    return OwnProject(Stage(tmp_path))


def previewed(project: OwnProject, conversation_id: str, member: str, text: str) -> str:
    with SqliteStore(project.stage.db) as store:
        loaded = load_team(project.stage.path)
        return preview(store, conversation_id, loaded, member, Supposed(text=text)).output.prompt


async def open_conflict(project: OwnProject, conversation: Conversation) -> None:
    """Let ann and kim change the same line, after kim has taken back what bob did."""
    go = project.stage.folder / "go"
    await said(conversation, "[NEXT: bob] Go.")
    await conversation.undo()
    await conversation.say("[NEXT: ann] Go.")
    await until_at_work(conversation, "ann")
    project.write("a.txt", LINES.replace("line 4", "of kim"))
    go.touch()
    await conversation.until_quiet()
    assert conversation.progress.conflicts


@pytest.mark.parametrize("member", ["ann", "bob", "reader"])
def test_conflicts_files_and_diffs_are_in_it_as_in_what_is_sent(project: OwnProject, member: str) -> None:
    go = project.stage.folder / "go"
    project.agent("ann", f"while [ ! -e {go} ]; do sleep 0.02; done; {line(4, 'of ann')}")
    project.agent("bob", line(7, "of bob"), workspace="shared")
    text = f"[NEXT: {member}] Well? [DIFF]"

    async def talk() -> tuple[str, str]:
        async with project.stage.open() as conversation:
            await open_conflict(project, conversation)
        seen = await asyncio.to_thread(previewed, project, conversation.id, member, text)
        async with project.stage.open(conversation.id) as again:
            await said(again, text)
        return seen, project.prompt_of(member).read_text(encoding="utf-8")

    seen, sent = asyncio.run(talk())

    assert seen == sent
    assert "Between turns, a person or another program changed 'a.txt'." in seen
    assert "What ann did in turn 2 is not in the shared folder yet" in seen
    assert ("You continue in your own workspace." in seen) == (member == "ann")
    assert "kim took back what" in seen
    assert "+of ann" in seen


def test_no_worktree_is_made_for_it(project: OwnProject) -> None:
    project.agent("ann", "true")
    project.write("CLAUDE.md", "Of the project.\n")
    project.stage.write()

    with new_conversation(load_team(project.stage.path)) as (store, conversation_id):
        shown = preview(store, conversation_id, load_team(project.stage.path), "ann", Supposed(text="Hello"))

    assert "Hello" in shown.output.prompt
    assert project.worktrees() == []
    assert not list(project.stage.folder.glob("data/*-files"))


def test_it_is_shown_while_an_agent_is_at_work_in_its_worktree(project: OwnProject) -> None:
    go = project.stage.folder / "go"
    project.agent("ann", f"while [ ! -e {go} ]; do sleep 0.02; done; {line(4, 'of ann')}")

    async def talk() -> str:
        async with project.stage.open() as conversation:
            await conversation.say("[NEXT: ann] Go.")
            await until_at_work(conversation, "ann")
            shown = await asyncio.to_thread(previewed, project, conversation.id, "ann", "And then?")
            with pytest.raises(BullpenError, match="a person"):
                await asyncio.to_thread(previewed, project, conversation.id, "kim", "And then?")
            go.touch()
            await conversation.until_quiet()
            return shown

    assert "And then?" in asyncio.run(talk())
    assert project.read("a.txt") == LINES.replace("line 4", "of ann")


def test_what_others_said_who_do_the_same_task_is_hidden_as_in_what_is_sent(project: OwnProject) -> None:
    for number, name in enumerate(("ann", "bob"), start=1):
        project.agent(name, f"{line(number, f'of {name}')}; echo I am {name}.", workspace="shared")
    text = "[NEXT: ann] Well? [DIFF: 2] [CHECKS: 2]"

    async def talk() -> tuple[str, str]:
        async with project.stage.open() as conversation:
            await said(conversation, "[NEXT: ann | bob] Go.")
        seen = await asyncio.to_thread(previewed, project, conversation.id, "ann", text)
        with SqliteStore(project.stage.db) as store:
            last = preview(store, conversation.id, load_team(project.stage.path), "ann", None).output
        async with project.stage.open(conversation.id) as again:
            await said(again, text)
        assert "I am bob." not in last.prompt
        return seen, project.prompt_of("ann").read_text(encoding="utf-8")

    seen, sent = asyncio.run(talk())

    assert seen == sent
    assert "I am ann." in seen
    assert "bob" not in seen


def test_one_of_several_and_its_judge(project: OwnProject) -> None:
    for number, name in enumerate(("ann", "bob"), start=1):
        project.agent(name, line(number, f"of {name}"), workspace="shared")
    text = "[NEXT: ann | bob -> reader] Go."

    async def talk() -> tuple[str, str]:
        async with project.stage.open() as conversation:
            await conversation.note("Nothing yet.")
        seen = await asyncio.to_thread(previewed, project, conversation.id, "ann", text)
        with pytest.raises(BullpenError, match="reader is to judge"):
            await asyncio.to_thread(previewed, project, conversation.id, "reader", text)
        async with project.stage.open(conversation.id) as again:
            await said(again, text)
        return seen, project.prompt_of("ann").read_text(encoding="utf-8")

    seen, sent = asyncio.run(talk())

    assert seen == sent
    assert "You are one of several who do this task" in seen
    assert project.worktrees()
