"""A worker makes worktrees of the folders of its own file, where it wants, and touches no others that a node names."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cluster.repositories import git, repository

from bullpen.cluster.file_desk import FileDesk
from bullpen.cluster.file_work import FileAnswer, FileWork, FindPlaces, FindRoot, TakeSnapshot
from bullpen.cluster.orders import Work
from bullpen.cluster.worker_file import WorkerFile
from bullpen.cluster.worktree_work import (
    BringUpToDate,
    FindMarked,
    FindWorktree,
    FoundWorktree,
    ListWorktrees,
    MakeFork,
    NoteState,
    RemoveWorktree,
    WorktreeAsk,
    WorktreeWork,
)
from bullpen.errors import NotAllowedHere
from bullpen.files.snapshot import Snapshot

OAK = "calm-oak"


class Machine:
    """A worker's machine with a repository in its only folder."""

    def __init__(self, folder: Path, **others: Any) -> None:
        self.folder = folder / "app"
        (self.folder / "sub").mkdir(parents=True)
        repository(self.folder)
        file = WorkerFile(**({"folders": {"app": str(self.folder)}, "permissions": "edit"} | others))
        self.home = folder / "kept"
        self.desk = FileDesk(file, self.home)

    def ask(self, ask: WorktreeAsk, *, member: str = "max", turn: str = "", folder: str = "app") -> FileAnswer:
        return self.answer(WorktreeWork(folder=folder, member=member, turn=turn, ask=ask))

    def answer(self, work: FileWork | WorktreeWork, conversation: str = OAK) -> FileAnswer:
        decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(work), type=FileWork | WorktreeWork)
        return msgspec.msgpack.decode(self.desk.answer(conversation, decoded), type=FileAnswer)

    def made(self, **which: str) -> Path:
        """Make a worktree, and return where it is."""
        packed = self.answer(FileWork(folder="app", ask=TakeSnapshot())).value
        answer = self.ask(BringUpToDate(msgspec.msgpack.decode(packed, type=Snapshot).id), **which)
        assert answer.problem is None, answer
        return Path(self.found(**which).path)

    def found(self, **which: str) -> FoundWorktree:
        return msgspec.msgpack.decode(self.ask(FindWorktree(), **which).value, type=FoundWorktree)

    def work(self, **others: Any) -> Work:
        keys: dict[str, Any] = {"member": "max", "prompt": "", "idle_timeout": 1.0, "total_timeout": 1.0}
        return Work(**(keys | others))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_worker_chooses_where_worktrees_are(machine: Machine) -> None:
    for member in ("max", "../../max", "/etc", ".", ""):
        own = machine.made(member=member, turn="../1")
        assert own.parent == machine.home / "worktrees" / OAK
        assert (own / "a.txt").read_text() == "one\n"
    assert len(git(machine.folder, "worktree", "list").splitlines()) == 6

    for member in ("max", "../../max", "/etc", ".", ""):
        assert machine.ask(RemoveWorktree(), member=member, turn="../1").problem is None
    assert len(git(machine.folder, "worktree", "list").splitlines()) == 1
    assert (machine.folder / "a.txt").read_text() == "one\n"


def test_a_turn_runs_in_its_worktree_at_the_same_place(machine: Machine) -> None:
    own = machine.made(folder="app/sub")

    assert machine.desk.places.folder_for(OAK, machine.work(cwd="app/sub", apart="")) == own / "sub"
    assert (own / "sub").is_dir()
    for others in ({"apart": "1"}, {"apart": "", "member": "eva"}, {"apart": "..", "member": "."}):
        with pytest.raises(NotAllowedHere, match="has no worktree"):
            machine.desk.places.folder_for(OAK, machine.work(cwd="app", **others))
    with pytest.raises(NotAllowedHere, match="has no worktree"):
        machine.desk.places.folder_for("other", machine.work(cwd="app", apart=""))
    with pytest.raises(NotAllowedHere, match="is not in one of its folders"):
        machine.desk.places.folder_for(OAK, machine.work(cwd=str(machine.home), apart=None))


def test_only_a_conversations_own_worktrees_can_be_named(machine: Machine, tmp_path: Path) -> None:
    own = machine.made()
    (own / "link").symlink_to(tmp_path)
    root = machine.answer(FileWork(folder=str(own), ask=FindRoot()))
    assert msgspec.msgpack.decode(root.value, type=str) == str(own)

    assert machine.answer(FileWork(folder=str(own), ask=FindRoot()), "other").problem == "refused"
    for folder in (own.parent, own.parent.parent, machine.home, own / "link", own.parent / f"{OAK}.eva", own / ".."):
        assert machine.answer(FileWork(folder=str(folder), ask=TakeSnapshot())).problem == "refused"


def test_a_worktree_of_a_folder_that_was_removed_from_the_file_is_refused(machine: Machine, tmp_path: Path) -> None:
    own = machine.made()
    (tmp_path / "web").mkdir()
    desk = FileDesk(WorkerFile(folders={"web": str(tmp_path / "web")}, permissions="edit"), machine.home)
    machine.desk = desk

    assert machine.answer(FileWork(folder=str(own), ask=TakeSnapshot())).problem == "refused"
    assert machine.ask(FindWorktree(), folder="").problem == "refused"
    assert machine.answer(WorktreeWork(ask=ListWorktrees())).problem == "refused"


def test_a_repository_around_a_folder_has_no_worktrees(tmp_path: Path) -> None:
    machine = Machine(tmp_path, folders={"sub": str(tmp_path / "app" / "sub")})

    answer = machine.ask(FindWorktree(), folder="sub")

    assert answer.problem == "no_worktree"
    assert "is not in one of the folders of the worker's file" in answer.reason


@pytest.mark.parametrize(
    "changed",
    [
        {"shared": "/"},
        {"member": "eva"},
        {"is_made": False},
        {"is_fork": True},
        {"syncing": "1"},
        {"unknown": 1},
        {"turn": 1},
    ],
)
def test_what_is_not_for_nodes_to_note(machine: Machine, changed: dict[str, Any]) -> None:
    machine.made()
    before = machine.found().state

    assert machine.ask(NoteState(changed)).problem is not None

    assert machine.found().state == before


def test_marks_are_looked_for_in_the_folder_only(machine: Machine, tmp_path: Path) -> None:
    machine.made()
    marked = "<<<<<<< ours\n=======\n>>>>>>> theirs\n"
    for file in (machine.folder / "b.txt", tmp_path / "outside.txt"):
        file.write_text(marked)

    answer = machine.ask(FindMarked(("a.txt", "b.txt", "../outside.txt", str(tmp_path / "outside.txt"))))

    assert msgspec.msgpack.decode(answer.value, type=tuple[str, ...]) == ("b.txt",)


def test_a_check_of_the_team_runs_in_the_worktree(machine: Machine) -> None:
    own = machine.made(folder="app/sub")

    answer = machine.answer(FileWork(folder=str(own), ask=FindPlaces(("app", "app/sub", "."))))

    places = msgspec.msgpack.decode(answer.value, type=tuple[str, ...])
    assert places == (str(own), str(own / "sub"), str(own))


def test_all_of_a_conversation_are_listed(machine: Machine) -> None:
    machine.made()
    machine.made(member="eva", turn="3")

    listed = machine.answer(WorktreeWork(ask=ListWorktrees())).value

    found = msgspec.msgpack.decode(listed, type=tuple[FoundWorktree, ...])
    assert [(one.state.member, one.turn, one.exists) for one in found] == [("eva", "3", True), ("max", "", True)]


FORK = "*fork"


def forked(machine: Machine, **which: str) -> Path:
    """Make a fork of the files as they are, and return where it is."""
    tree = msgspec.msgpack.decode(
        machine.answer(FileWork(folder="app", ask=TakeSnapshot()), "other").value, type=Snapshot
    )
    answer = machine.ask(MakeFork(tree.id, "other"), member=FORK, **which)
    assert answer.problem is None, answer
    return Path(machine.found(member=FORK).path)


def root_of(machine: Machine, folder: str, conversation: str = OAK) -> FileAnswer:
    return machine.answer(FileWork(folder=folder, ask=FindRoot()), conversation)


def test_the_folder_of_a_fork_is_its_worktree_for_that_conversation_only(machine: Machine) -> None:
    fork = forked(machine)
    assert fork.parent == machine.home / "worktrees" / OAK

    for folder in ("app", str(machine.folder), "app/sub", str(fork)):
        assert msgspec.msgpack.decode(root_of(machine, folder).value, type=str) == str(fork)
        if folder != str(fork):
            assert msgspec.msgpack.decode(root_of(machine, folder, "other").value, type=str) == str(machine.folder)
    work = machine.work(cwd="app/sub", forked=(str(machine.folder),))
    assert machine.desk.places.folder_for(OAK, work) == fork / "sub"
    own = machine.made(folder="app/sub")
    assert machine.found().shared == str(fork)
    assert machine.desk.places.folder_for(OAK, machine.work(cwd="app/sub", apart="")) == own / "sub"
    for root in (fork, own):
        answer = machine.answer(FileWork(folder=str(root), ask=FindPlaces(("app", "app/sub", "."))))
        places = msgspec.msgpack.decode(answer.value, type=tuple[str, ...])
        assert places == (str(root), str(root / "sub"), str(root))


@pytest.mark.parametrize("folder", ["..", "/", "/etc", "app/..", "link"])
def test_a_fork_is_made_of_the_workers_folders_only(machine: Machine, tmp_path: Path, folder: str) -> None:
    (machine.folder / "link").symlink_to(tmp_path)

    answer = machine.ask(MakeFork("0" * 40, "other"), member=FORK, folder=folder)

    assert answer.problem == "refused"
    assert len(git(machine.folder, "worktree", "list").splitlines()) == 1
    assert not list((machine.home / "worktrees").glob("*/*"))


def test_a_link_out_of_a_fork_is_refused(machine: Machine, tmp_path: Path) -> None:
    fork = forked(machine)
    (fork / "sub").symlink_to(tmp_path)

    assert root_of(machine, "app/sub").problem == "refused"
    with pytest.raises(NotAllowedHere, match="is not in the files of this fork"):
        machine.desk.places.folder_for(OAK, machine.work(cwd="app/sub"))


def test_in_a_fork_without_its_files_nothing_is_done(machine: Machine) -> None:
    work = machine.work(cwd="app/sub", forked=(str(machine.folder),))
    with pytest.raises(NotAllowedHere, match="was forked with are not there"):
        machine.desk.places.folder_for(OAK, work)
    assert machine.ask(MakeFork("0" * 40, "other"), member=FORK).problem is not None

    assert root_of(machine, "app").problem == "refused"
    assert root_of(machine, "app", "other").problem is None
    assert machine.ask(RemoveWorktree(), member=FORK).problem is None
    assert root_of(machine, "app").problem is None
