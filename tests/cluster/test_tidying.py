"""A worker removes what it keeps for conversations that are deleted, and nothing else."""

import asyncio
import time
from pathlib import Path

import msgspec
import pytest
from tests.cluster.files_stage import FilesStage, opened
from tests.cluster.processes import Processes
from tests.cluster.repositories import repository

from bullpen.cluster.file_desk import FileDesk
from bullpen.cluster.file_work import Compare, FileAnswer, FileWork, TakeSnapshot
from bullpen.cluster.kept_for import KeptFor
from bullpen.cluster.worker_file import WorkerFile
from bullpen.cluster.worktree_work import BringUpToDate, WorktreeWork
from bullpen.errors import FilesNotKept
from bullpen.file_changes import FolderChanges
from bullpen.files.own_workspace import own_workspaces
from bullpen.files.snapshot import Snapshot
from bullpen.files.workspace import FolderSnapshots
from bullpen.store.postgres.store import PostgresStore
from bullpen.view.listing import delete


class Machine:
    """A worker's machine with a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "app"
        self.folder.mkdir()
        repository(self.folder)
        self.home = folder / "kept"
        self.file = WorkerFile(folders={"app": str(self.folder)}, permissions="edit")
        self.desk = FileDesk(self.file, self.home, "here")

    def answer(self, conversation: str, work: FileWork | WorktreeWork) -> bytes:
        answer = msgspec.msgpack.decode(self.desk.answer(conversation, work), type=FileAnswer)
        assert answer.problem is None
        return answer.value

    def snapshot(self, conversation: str) -> str:
        packed = self.answer(conversation, FileWork(folder="app", ask=TakeSnapshot()))
        return msgspec.msgpack.decode(packed, type=Snapshot).id

    def overwrites(self, conversation: str, text: str) -> str:
        """Let a conversation change the file that is not committed, and return the blob of its earlier contents."""
        file = self.folder / "new.txt"
        file.write_text(text)
        before = self.snapshot(conversation)
        file.write_text("overwritten\n")
        ask = Compare(before, self.snapshot(conversation))
        changes = msgspec.msgpack.decode(self.answer(conversation, FileWork(folder="app", ask=ask)), type=FolderChanges)
        old = changes.files[0].old
        assert old is not None
        return old.blob

    def keeps(self, blob: str) -> bool:
        try:
            return bool(FolderSnapshots(self.home).workspace(self.folder).contents(blob))
        except FilesNotKept:
            return False


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_what_other_conversations_were_told_of_stays(machine: Machine) -> None:
    first, second = machine.overwrites("first", "earlier\n"), machine.overwrites("second", "two\n")
    machine.snapshot("third")

    assert machine.desk.remove_unneeded(["first"])

    assert (machine.keeps(first), machine.keeps(second)) == (False, True)
    assert set(machine.desk.kept.conversations()) == {"second", "third"}
    assert (machine.folder / "new.txt").read_text() == "overwritten\n"
    assert machine.keeps(machine.overwrites("second", "three\n")), "everything goes on"


def test_what_conversations_of_another_cluster_were_told_of_stays(machine: Machine) -> None:
    blob = machine.overwrites("first", "earlier\n")
    machine.desk = FileDesk(machine.file, machine.home, "there")
    machine.snapshot("first")
    assert machine.desk.kept.conversations() == ["first"]

    machine.desk.remove_unneeded(["first"])

    assert machine.keeps(blob)
    assert KeptFor(machine.home, "there").conversations() == []
    assert KeptFor(machine.home, "here").conversations() == ["first"]


def test_while_another_worker_uses_the_same_folder_nothing_is_removed(machine: Machine) -> None:
    blob = machine.overwrites("first", "earlier\n")
    other = FileDesk(machine.file, machine.home, "here")
    other.answer("second", FileWork(folder="app", ask=TakeSnapshot()))

    assert machine.desk.remove_unneeded(["first"]) is None

    assert machine.keeps(blob)
    assert "first" in machine.desk.kept.conversations()


def test_worktrees_are_removed_but_for_work_that_is_nowhere_else(machine: Machine) -> None:
    tree = machine.snapshot("first")
    for conversation in ("first", "second"):
        machine.answer(conversation, WorktreeWork(folder="app", member="max", ask=BringUpToDate(tree)))
    (own,) = own_workspaces(machine.home, "second")
    (own.path / "a.txt").write_text("work\n")
    del own

    machine.desk.remove_unneeded(["first", "second"])

    assert list(own_workspaces(machine.home, "first")) == []
    (own,) = own_workspaces(machine.home, "second")
    assert (own.path / "a.txt").read_text() == "work\n"
    assert machine.desk.kept.conversations() == ["second"]


async def test_a_worker_that_starts_again_forgets_what_was_deleted_meanwhile(
    tmp_path: Path, url: str, processes: Processes
) -> None:
    stage = FilesStage(tmp_path, url, processes)
    team = stage.prepare(workspace="own", max=[{"write_file": {"path": "b.txt", "text": "b\n"}}, {"say": "Done."}])
    worker = stage.start_worker()
    ids = []
    for _ in range(2):
        (stage.folder / "b.txt").unlink(missing_ok=True)
        async with opened(stage.url, team) as seen:
            await seen.talk()
            ids.append(seen.conversation.id)
    assert len(stage.worktrees()) == 2
    await asyncio.to_thread(worker.stop)
    with PostgresStore(stage.url) as store:
        delete(store, ids[0], at=round(time.time() * 1000))

    stage.start_worker()
    while len(stage.worktrees()) > 1:
        await asyncio.sleep(0.01)

    assert stage.worktrees() == [f"{ids[1]}.max"]
    async with opened(stage.url, team, ids[1]) as seen:
        await seen.conversation.until_quiet()
        await seen.conversation.undo()
    assert not (stage.folder / "b.txt").exists()
