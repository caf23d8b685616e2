"""A fork with files: its agents work in a worktree with the files of that moment; nothing of it is lost or left."""

import asyncio
import os
from pathlib import Path

import pytest
from tests.conversation.killed_merges import DEAD, die_at, steps_in
from tests.conversation.repository_stage import OwnProject, records, said
from tests.conversation.stage import Stage

from bullpen.conversation.forked_files import forked_files
from bullpen.errors import BullpenError
from bullpen.exchange.forking import UNFINISHED, Fork, fork_conversation
from bullpen.files.own_workspace import unmerged_work
from bullpen.store.sqlite import SqliteStore
from bullpen.view.listing import delete


class Forks:
    """A repository in which ann writes the number of her turn into a file."""

    def __init__(self, stage: Stage) -> None:
        self.project, self.stage = OwnProject(stage), stage
        counts = "n=$(cat n.txt 2> /dev/null || echo 0); echo $((n + 1)) > n.txt; pwd > pwd.txt"
        self.project.agent("ann", counts, workspace="shared")
        self.project.agent("bob", "cat n.txt; pwd", permissions="read-only", workspace="shared")
        self.home = self.stage.db.with_name(f"{self.stage.db.name}-files")

    async def talk(self, *names: str, resume: str | None = None) -> str:
        async with self.stage.open(resume) as conversation:
            for name in names:
                await said(conversation, f"[NEXT: {name}] Go.")
            return conversation.id

    def fork(self, conversation_id: str, at: int | None = None) -> Fork:
        with SqliteStore(self.stage.db) as store:
            return fork_conversation(store, conversation_id, at, with_files=True)

    def delete(self, conversation_id: str, *, force: bool = False) -> None:
        with SqliteStore(self.stage.db) as store:
            delete(store, conversation_id, at=1, force=force)

    def last_words(self, conversation_id: str) -> str:
        with SqliteStore(self.stage.db) as store:
            return store.messages(conversation_id)[-1].message.content


@pytest.fixture
def forks(stage: Stage) -> Forks:
    return Forks(stage)


async def test_its_agents_work_in_a_worktree_with_the_files_of_that_moment(forks: Forks) -> None:
    first = await forks.talk("ann", "ann", "ann")
    forks.project.write("notes.txt", "changed later\n")
    fork = forks.fork(first, at=4)
    (folder,) = map(Path, fork.folders)
    assert forks.project.read("n.txt", folder) == "2\n"
    assert forks.project.read("notes.txt", folder) == "untracked\n", "also a file that git does not track"
    assert f"{forks.project.folder} is here: {folder}" in forks.last_words(fork.id)
    assert len(forks.project.worktrees()) == 1
    before = forks.project.git("status", "--porcelain")
    await forks.talk("ann", "bob", resume=fork.id)
    assert forks.last_words(fork.id) == f"Begun.\n3\n{folder}\nDone."
    assert forks.project.read("pwd.txt", folder) == f"{folder}\n"
    assert (forks.project.read("n.txt"), forks.project.git("status", "--porcelain")) == ("3\n", before)
    assert forks.project.read("pwd.txt") == f"{forks.project.folder}\n"


async def test_what_was_done_before_the_fork_is_taken_back_in_its_own_files(forks: Forks) -> None:
    first = await forks.talk("ann", "ann")
    fork = forks.fork(first)
    (folder,) = map(Path, fork.folders)
    async with forks.stage.open(fork.id) as conversation:
        await conversation.undo("2")
        assert (await records(conversation))[-1].changes.folder == str(folder)
    assert (forks.project.read("n.txt", folder), forks.project.read("n.txt")) == ("1\n", "2\n")


async def test_a_fork_of_a_fork_and_agents_with_workspaces_of_their_own(forks: Forks) -> None:
    first = await forks.talk("ann", "ann")
    fork = forks.fork(first, at=2)
    (folder,) = map(Path, fork.folders)
    forks.project.agent("ann", "n=$(cat n.txt); echo $((n + 10)) > n.txt", workspace="own")
    await forks.talk("ann", resume=fork.id)
    assert (forks.project.read("n.txt", folder), forks.project.read("n.txt")) == ("11\n", "2\n")
    second = forks.fork(fork.id)
    forks.delete(fork.id, force=True)
    (other,) = map(Path, second.folders)
    assert forks.project.read("n.txt", other) == "11\n"
    forks.delete(second.id)
    assert forks.project.worktrees() == []


async def test_it_is_not_deleted_with_work_that_is_nowhere_else(forks: Forks) -> None:
    first = await forks.talk("ann")
    fork = forks.fork(first)
    (folder,) = map(Path, fork.folders)
    (folder / "new.txt").write_text("work", encoding="utf-8")
    with pytest.raises(BullpenError, match="have work that is nowhere else"):
        forks.delete(fork.id)
    assert folder.is_dir()
    forks.delete(fork.id, force=True)
    assert not folder.exists()
    assert forks.project.worktrees() == []


async def test_without_git_or_a_known_state_it_is_refused(forks: Forks) -> None:
    asked = await forks.talk("bob")
    with pytest.raises(BullpenError, match="so there are no files to fork"):
        forks.fork(asked)
    plain = forks.stage.folder / "plain"
    plain.mkdir()
    forks.stage.members["ann"]["cwd"] = "plain"
    first = await forks.talk("ann")
    with pytest.raises(BullpenError, match="is not in a git repository"):
        forks.fork(first)
    with SqliteStore(forks.stage.db) as store:
        assert {one.id for one in store.conversations()} == {asked, first}


def test_killed_at_any_step_there_is_no_half_fork_and_no_worktree_is_left(forks: Forks) -> None:
    first = asyncio.run(forks.talk("ann", "ann"))
    steps = steps_in(lambda: forks.fork(first, at=2))
    assert steps > 20
    (made,) = (one for one in _ids(forks) if one != first)
    forks.delete(made)
    for step in range(0, steps, max(1, steps // 12)):
        child = os.fork()
        if child == 0:
            try:
                die_at(step)
                forks.fork(first, at=2)
                os._exit(0)
            finally:
                os._exit(1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, DEAD)
        with SqliteStore(forks.stage.db) as store:
            half = [one for one in store.conversations() if one.id != first]
            assert all(one.paused == (UNFINISHED if code == DEAD else None) for one in half), step
        for one in half:
            moved = forked_files(forks.home, one.id).place(forks.project.folder)
            assert one.messages == 0 or moved != forks.project.folder, "nobody works in the other one's folder"
            assert not unmerged_work(forks.home, one.id)
            forks.delete(one.id)
        assert forks.project.worktrees() == []
        assert not list((forks.home / "worktrees").glob("*"))


def _ids(forks: Forks) -> list[str]:
    with SqliteStore(forks.stage.db) as store:
        return [one.id for one in store.conversations()]


async def test_an_undo_in_a_fork_leaves_the_worktrees_of_the_other_conversation_alone(forks: Forks) -> None:
    forks.project.agent("ann", "n=$(cat n.txt || echo 0); echo $((n + 1)) > n.txt; [ $n = 0 ] || exit 3")
    first = await forks.talk("ann", "ann")
    theirs = forks.home / "worktrees" / first / f"{first}.ann"
    assert forks.project.read("n.txt", theirs) == "2\n", "it failed, so that is not merged"
    fork = forks.fork(first)
    async with forks.stage.open(fork.id) as conversation:
        with pytest.raises(BullpenError):
            await conversation.undo("2")
        with pytest.raises(BullpenError):
            await conversation.rewind("2")
        await conversation.undo()
    assert forks.project.read("n.txt", theirs) == "2\n"
    assert forks.project.read("n.txt", Path(fork.folders[0])) is None


async def test_an_undo_in_a_fork_of_a_fork_changes_only_its_own_files(forks: Forks) -> None:
    fork = forks.fork(await forks.talk("ann"))
    await forks.talk("ann", resume=fork.id)
    second = forks.fork(fork.id)
    async with forks.stage.open(second.id) as conversation:
        await conversation.undo()
    files = [forks.project.read("n.txt", Path(folder)) for folder in (*fork.folders, *second.folders)]
    assert files == ["2\n", "1\n"]
