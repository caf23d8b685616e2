"""A worker does with files what its own file allows, in its folders and nowhere else, whatever a node asks for."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cluster.repositories import git, repository

from bullpen.cluster.file_desk import FileDesk
from bullpen.cluster.file_work import (
    Apply,
    Ask,
    Compare,
    Differs,
    FileAnswer,
    FileWork,
    FindPlaces,
    FindRoot,
    ReadContents,
    TakeSnapshot,
    TreeWith,
)
from bullpen.cluster.worker_file import WorkerFile
from bullpen.file_changes import FileChange, FileState, FolderChanges
from bullpen.files.snapshot import Snapshot

BLOB = "0" * 40


class Machine:
    """A worker's machine with one folder."""

    def __init__(self, folder: Path, **others: Any) -> None:
        self.folder = folder / "app"
        self.folder.mkdir(exist_ok=True)
        file = WorkerFile(**({"folders": {"app": str(self.folder)}, "permissions": "edit"} | others))
        self.home = folder / "kept"
        self.desk = FileDesk(file, self.home)

    def ask(self, ask: Ask, folder: str = "app") -> FileAnswer:
        packed = msgspec.msgpack.encode(FileWork(folder=folder, ask=ask))
        work = msgspec.msgpack.decode(packed, type=FileWork)
        return msgspec.msgpack.decode(self.desk.answer("calm-oak", work), type=FileAnswer)

    def snapshot(self) -> str:
        return msgspec.msgpack.decode(self.ask(TakeSnapshot()).value, type=Snapshot).id

    def changes(self, before: str, after: str) -> FolderChanges:
        return msgspec.msgpack.decode(self.ask(Compare(before, after)).value, type=FolderChanges)


def test_what_changed_is_seen_and_put_back(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    repository(machine.folder)
    before = machine.snapshot()
    (machine.folder / "a.txt").write_text("two\n")
    changes = machine.changes(before, machine.snapshot())
    assert [file.path for file in changes.files] == ["a.txt"]

    assert machine.ask(Apply(changes.files, back=True)) == FileAnswer(value=msgspec.msgpack.encode(None))

    assert (machine.folder / "a.txt").read_text() == "one\n"
    (machine.folder / "a.txt").write_text("mine\n")
    answer = machine.ask(Apply(changes.files, back=True))
    assert (answer.problem, answer.paths) == ("differ", ("a.txt",))


@pytest.mark.parametrize("folder", ["/", "/etc", "..", "app/..", "app/../..", "app/link", "app/link/deeper"])
@pytest.mark.parametrize("ask", [FindRoot(), TakeSnapshot(), Apply((), back=False)], ids=lambda ask: type(ask).__name__)
def test_folders_of_others_are_refused(tmp_path: Path, folder: str, ask: Ask) -> None:
    machine = Machine(tmp_path)
    (tmp_path / "elsewhere" / "deeper").mkdir(parents=True)
    (machine.folder / "link").symlink_to(tmp_path / "elsewhere")

    answer = machine.ask(ask, folder)

    assert answer.problem == "refused"
    assert "is not in one of its folders (app)" in answer.reason
    assert not machine.home.exists()


@pytest.mark.parametrize(
    "path", ["../out.txt", "/tmp/out.txt", "a/../../out.txt", ".git/hooks/pre-commit", "link/out.txt"]
)
def test_nothing_is_written_outside_of_a_folder(tmp_path: Path, path: str) -> None:
    machine = Machine(tmp_path)
    repository(machine.folder)
    (tmp_path / "elsewhere").mkdir()
    (machine.folder / "link").symlink_to(tmp_path / "elsewhere")
    blob = git(machine.folder, "hash-object", "a.txt").strip()
    machine.snapshot()
    added = FileChange(path=path, kind="added", new=FileState(blob=blob))

    answer = machine.ask(Apply((added,), back=False))

    assert answer.problem in ("failed", "differ")
    assert not (tmp_path / "out.txt").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert not (machine.folder / ".git" / "hooks" / "pre-commit").exists()


@pytest.mark.parametrize("blob", ["HEAD:a.txt", "--help", "HEAD", "abc\n", ""])
def test_only_ids_reach_git(tmp_path: Path, blob: str) -> None:
    machine = Machine(tmp_path)
    repository(machine.folder)
    file = FileChange(path="new.txt", kind="added", new=FileState(blob=blob))

    assert machine.ask(Apply((file,), back=False)).problem == "refused"
    assert machine.ask(Differs((file,), "new")).problem == "refused"
    assert machine.ask(TreeWith(machine.snapshot(), ((b"new.txt", FileState(blob=blob)),))).problem == "refused"
    assert machine.ask(ReadContents(blob)).problem == "not_kept"
    assert "not known" in machine.changes(blob, machine.snapshot()).note


def test_a_repository_around_a_folder_does_not_count(tmp_path: Path) -> None:
    repository(tmp_path)
    machine = Machine(tmp_path)

    answer = machine.ask(FindRoot())

    assert msgspec.msgpack.decode(answer.value, type=str) == str(machine.folder)


def test_where_agents_only_read_nothing_is_done(tmp_path: Path) -> None:
    machine = Machine(tmp_path, permissions="read-only")

    answer = machine.ask(TakeSnapshot())

    assert answer.problem == "refused"
    assert "read-only" in answer.reason


def test_checks_run_where_they_concern_the_files(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    repository(machine.folder)
    (machine.folder / "sub").mkdir()
    (tmp_path / "web").mkdir()

    answer = machine.ask(FindPlaces(("app", "app/sub", ".", "web", "..")))

    places = msgspec.msgpack.decode(answer.value, type=tuple[str, ...])
    assert places == (str(machine.folder), str(machine.folder / "sub"), str(machine.folder), "", "")


def test_where_there_are_several_folders_a_check_without_one_runs_where_files_were_changed(tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    machine = Machine(tmp_path, folders={"app": str(tmp_path / "app"), "web": str(tmp_path / "web")})

    answer = machine.ask(FindPlaces((".", "web")))

    assert msgspec.msgpack.decode(answer.value, type=tuple[str, ...]) == (str(machine.folder), "")
