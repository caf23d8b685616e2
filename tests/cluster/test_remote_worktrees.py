"""Agents with workspaces of their own, and best of several, on workers: worktrees are made, merged, removed there."""

import asyncio
import json
import sys
from pathlib import Path

import pytest
from tests.cluster.files_stage import OWNER, FilesStage, Opened, opened, until_there
from tests.cluster.processes import Processes
from tests.cluster.repositories import git
from tests.cluster.stage import Script
from tests.conversation.killed_rounds import settled

from bullpen.errors import WorkerAway

SAYS: Script = [{"say": "Done."}]


def writes(name: str, text: str, *others: dict[str, object]) -> Script:
    return [{"write_file": {"path": name, "text": text}}, *others, *SAYS]


@pytest.fixture
def stage(tmp_path: Path, url: str, processes: Processes) -> FilesStage:
    return FilesStage(tmp_path, url, processes)


async def test_a_turn_works_in_a_worktree_on_the_worker_and_is_merged_when_it_ends(stage: FilesStage) -> None:
    (stage.folder / "new.txt").write_text("not committed\n")
    team = stage.prepare(workspace="own", max=writes("a.txt", "one\ntwo\n"), eva=writes("b.txt", "b\n"))
    stage.start_worker()
    await until_there(stage.url)
    async with opened(stage.url, team) as seen:
        await seen.talk("[NEXT: max] [NEXT: eva] Go.")

        conversation_id = seen.conversation.id
        assert seen.troubles == []
        assert stage.text == "one\ntwo\n"
        assert (stage.folder / "b.txt").read_text() == "b\n"
        assert stage.worktrees() == [f"{conversation_id}.eva", f"{conversation_id}.max"]
        own = stage.home / "worktrees" / conversation_id / f"{conversation_id}.max"
        assert (own / "new.txt").read_text() == "not committed\n"
        records = stage.records(conversation_id)
        kinds = sorted((record.kind, record.member, record.changes.folder) for record in records)
        shared, place = f"gpu-box@box:{stage.folder}", f"gpu-box@box:{own.parent}/{conversation_id}"
        assert kinds == [
            ("merge", "eva", shared),
            ("merge", "max", shared),
            ("turn", "eva", f"{place}.eva"),
            ("turn", "max", f"{place}.max"),
        ]
        await seen.conversation.undo()
        await seen.conversation.undo()
        assert stage.text == "one\n"
        assert not (stage.folder / "b.txt").exists()
        await seen.conversation.redo()
        await seen.conversation.redo()
        assert stage.text == "one\ntwo\n"
        git(stage.folder, "status")


async def test_a_conflict_on_a_worker_is_decided_by_a_person(stage: FilesStage) -> None:
    merged = stage.go.with_name("merged")
    ours, theirs = writes("a.txt", "max\n", stage.waits), writes("a.txt", "eva\n", {"wait_for": str(merged)})
    team = stage.prepare(workspace="own", max=ours, eva=theirs)
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.conversation.say("[NEXT: max & eva] Go.")
        for name in ("max", "eva"):
            await until_written(stage, seen.conversation.id, name, name)
        stage.go.touch()
        while stage.text != "max\n" or len(stage.records(seen.conversation.id)) < 2:
            await asyncio.sleep(0.01)
        merged.touch()
        await seen.conversation.until_quiet()
        assert stage.text == "max\n"
        ((turn_id, conflict),) = seen.conversation.progress.conflicts.items()
        assert conflict.member == "eva"
        conversation_id = seen.conversation.id

    async with opened(stage.url, team, conversation_id) as seen:
        assert list(seen.conversation.progress.conflicts) == [turn_id]
        await seen.conversation.settle("take", turn_id)
        assert stage.text == "eva\n"
        assert seen.conversation.progress.conflicts == {}


async def test_best_of_several_on_a_worker(stage: FilesStage) -> None:
    team = stage.prepare(max=writes("a.txt", "max\n"), eva=writes("a.txt", "eva\n"))
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk("[NEXT: max | eva] Go.")
        assert stage.text == "one\n"
        assert len(stage.worktrees()) == 2
        conversation_id = seen.conversation.id

    async with opened(stage.url, team, conversation_id) as seen:
        await seen.conversation.pick("eva")
        await settled(seen.conversation)
        assert stage.text == "eva\n"
        await seen.conversation.discard(by="kim")
        await settled(seen.conversation)
        assert stage.worktrees() == []
        assert list((stage.home / "worktrees" / conversation_id).glob("*.json")) == []
        await seen.conversation.undo()
        assert stage.text == "one\n"


async def test_what_a_killed_worker_left_in_a_worktree_is_found_again(stage: FilesStage) -> None:
    team = stage.prepare(workspace="own", max=writes("a.txt", "one\ntwo\n", {"hang": True}), eva=SAYS)
    worker = stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.conversation.say("[NEXT: max] Go.")
        await until_written(stage, seen.conversation.id, "max", "two")
        await asyncio.to_thread(stage.lose, worker)
        await seen.until_told("What turn 1 changed is not known yet")
        await seen.conversation.until_quiet()
        assert stage.text == "one\n"

        stage.start_worker()
        await until_there(stage.url)
        await _merged(seen, "max")

        assert stage.text == "one\ntwo\n"
        first = stage.records(seen.conversation.id)[0]
        assert [file.path for file in first.changes.files] == ["a.txt"]
        assert "bullpen stopped during this turn. Without a reply, this stayed in max's worktree" in first.changes.note


async def until_written(stage: FilesStage, conversation_id: str, member: str, text: str) -> None:
    """Wait until a member has written something in its worktree."""
    own = stage.home / "worktrees" / conversation_id / f"{conversation_id}.{member}" / "a.txt"
    while not own.exists() or text not in own.read_text():
        await asyncio.sleep(0.01)


async def _merged(seen: Opened, member: str) -> None:
    """Merge what a member left, as soon as its worker can be reached."""
    while True:
        try:
            await seen.conversation.merge(member)
            return
        except WorkerAway:
            await asyncio.sleep(0.01)


async def test_who_adopts_a_turn_merges_it(stage: FilesStage, processes: Processes) -> None:
    team = stage.prepare(workspace="own", max=writes("a.txt", "one\ntwo\n", stage.waits))
    stage.start_worker()
    node = processes.start(OWNER, stage.url, str(team), "new", "Go.")
    conversation_id = node.line()
    await until_written(stage, conversation_id, "max", "two")

    node.kill()
    async with opened(stage.url, team, conversation_id) as seen:
        stage.go.touch()
        await seen.conversation.until_quiet()

    assert [record.kind for record in stage.records(conversation_id)] == ["turn", "merge"]
    assert stage.text == "one\ntwo\n"
    assert stage.started() == ["max"]


async def test_where_there_can_be_no_worktree_the_turn_says_why(stage: FilesStage) -> None:
    team = stage.prepare(workspace="own", max=SAYS)
    for file in sorted((stage.folder / ".git").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (stage.folder / ".git").rmdir()
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()

        (ended,) = seen.conversation.undecided
        assert f"{stage.folder} is not in a git repository. Make it one with `git init`" in ended.reason
    assert stage.started() == []


async def test_what_is_left_on_a_worker_that_was_away_is_merged_there(stage: FilesStage, tmp_path: Path) -> None:
    team = stage.prepare(workspace="own", max=writes("a.txt", "one\ntwo\n", {"hang": True}), eva=SAYS)
    worker = stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.conversation.say("[NEXT: max] Go.")
        await until_written(stage, seen.conversation.id, "max", "two")
        await seen.conversation.cancel()
        await seen.conversation.until_quiet()
        await asyncio.to_thread(worker.stop)
        first = stage.file
        stage.file = first.with_name("other.toml")
        stage.file.write_text(first.read_text().replace('"box"', '"other"'))
        stage.start_worker(BULLPEN_HOME=str(tmp_path / "other-home"))
        await until_there(stage.url)
        await seen.talk("[NEXT: eva] Go.")
        assert "gpu-box@other:" in stage.records(seen.conversation.id)[-1].changes.folder
        with pytest.raises(WorkerAway):
            await seen.conversation.merge("max")

        stage.file = first
        stage.start_worker()
        await until_there(stage.url, 2)
        await _merged(seen, "max")

        assert stage.text == "one\ntwo\n"


async def test_a_check_runs_in_the_worktree_before_it_is_merged(stage: FilesStage) -> None:
    command = [sys.executable, "-c", "import os; print(os.getcwd(), open('a.txt').read())"]
    check = f'[[check]]\nname = "tests"\ncwd = "project"\ncommand = {json.dumps(command)}'
    team = stage.prepare(workspace="own", checks=check, allowed=[command], max=writes("a.txt", "two\n"))
    stage.start_worker()
    async with opened(stage.url, team) as seen:
        await seen.talk()
        conversation_id = seen.conversation.id

    (result,) = stage.results(conversation_id)
    own = stage.home / "worktrees" / conversation_id / f"{conversation_id}.max"
    assert (result.state, result.output) == ("green", f"{own} two\n\n")
    assert stage.text == "two\n"
