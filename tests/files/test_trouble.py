"""Whatever is wrong with a folder, a disk or git: nothing is raised, and what is not known is said."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from tests import forked
from tests.files.stage import FILES, repository, told, turn, workspace, write

from bullpen.errors import FilesError, FilesFailed, FilesNotKept
from bullpen.files.git import Git, GitFailed, persons_setting
from bullpen.files.workspace import FolderSnapshots
from bullpen.testing.read_only import run_on_read_only_media

ROOT = Path(__file__).parents[2]
FULL = """
import sys
from pathlib import Path
from bullpen.errors import FilesError
from bullpen.files.workspace import FolderSnapshots
root, disk = map(Path, sys.argv[1:])
place = FolderSnapshots(disk / "home").workspace(root)
first = place.snapshot()
assert first.id and not first.note, first
(root / "edited.txt").write_bytes(b"x" * 100)
changes = place.compare(first.id, place.snapshot().id)
assert changes.files and not changes.note, changes
fill = (disk / "fill").open("wb", buffering=0)
for size in (65536, 1024, 1):
    try:
        while True:
            fill.write(b"x" * size)
    except OSError:
        pass
for number in range(200):
    (root / f"new{number}").write_bytes(b"%d" % number * 1000)
second = place.snapshot()
assert second.note, second
print(second.note)
print(place.compare(first.id, second.id).note)
print(place.compare(first.id, changes.after).files == changes.files)
fill.truncate(0)
third = place.snapshot()
assert not third.note, third
assert len(place.compare(changes.after, third.id).files) == 200
print("fine again")
"""
MOUNTED = 'mkdir "$1" && mount -t tmpfs -o size=1m tmpfs "$1" && shift && exec "$@"'
UNREADABLE = """
import sys
from pathlib import Path
from bullpen.files.workspace import FolderSnapshots
root, home = map(Path, sys.argv[1:])
place = FolderSnapshots(home).workspace(root)
before = place.snapshot()
(root / "secret").write_bytes(b"x")
(root / "new").write_bytes(b"y")
for name in ("secret", "edited.txt", "folder"):
    (root / name).chmod(0)
after = place.snapshot()
(root / "folder").chmod(0o700)
print(after.note)
print([file.path for file in place.compare(before.id, after.id).files])
"""
READ_ONLY = """
import sys
from pathlib import Path
from bullpen.files.workspace import FolderSnapshots
root, home = map(Path, sys.argv[1:])
taken = FolderSnapshots(home).workspace(root).snapshot()
print(repr(taken.id), taken.note)
"""


def run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    return forked.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)


def test_without_git_names_and_sizes_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "root")
    monkeypatch.setenv("PATH", str(tmp_path))
    place = workspace(root)

    changes = turn(place, {"edited.txt": b"longer than it was\n", "new": b"x", "gone.txt": None})

    assert told(changes) == {"edited.txt": "changed", "new": "added", "gone.txt": "deleted"}
    assert place.snapshot().note == "Only names and sizes are known: git is not installed."
    with pytest.raises(FilesNotKept):
        place.apply(changes.files, back=True)
    with pytest.raises(FilesNotKept):
        place.contents("12" * 20)
    with pytest.raises(FilesNotKept):
        place.merge(changes.before, changes.after, changes.after)


def test_git_that_is_gone_when_files_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "root")
    changes = turn(workspace(root), {"edited.txt": b"x\n"})
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(FilesError):
        workspace(root).apply(changes.files, back=True)

    assert (root / "edited.txt").read_bytes() == b"x\n"


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"edited.txt": b"x\n"})
    shutil.rmtree(place.root)

    taken = place.snapshot()

    assert taken.id == ""
    assert "No such file or directory" in taken.note
    assert "is not known" in place.compare(changes.before, taken.id).note
    with pytest.raises(FilesFailed):
        place.apply(changes.files, back=True)
    with pytest.raises(FilesFailed):
        place.differs(changes.files, "new")


@pytest.mark.parametrize("name", ["", "nonsense", "--output=x", "12" * 20, "listing-nonsense", "listing-../../x"])
def test_ids_that_are_not_known(tmp_path: Path, name: str) -> None:
    place = workspace(repository(tmp_path / "root"))
    known = place.snapshot()

    assert "is not known" in place.compare(known.id, name).note
    assert "is not known" in place.compare(name, known.id).note
    with pytest.raises(FilesNotKept):
        place.merge(known.id, name, known.id)


def test_what_is_kept_is_removed_by_somebody(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    changes = turn(place, {"edited.txt": b"x\n"})
    shutil.rmtree(tmp_path / "home")

    assert "is not known" in place.compare(changes.before, changes.after).note
    with pytest.raises(FilesError):
        place.apply(changes.files, back=True)
    assert place.snapshot().note == ""


def test_a_place_to_keep_it_that_cannot_be_made(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    (tmp_path / "home").write_bytes(b"a file")

    taken = workspace(root).snapshot()

    assert taken.id == ""
    assert taken.note.startswith("What is in ")


@pytest.mark.foreign
def test_read_only_media(tmp_path: Path) -> None:
    root = repository(tmp_path / "media" / "root")
    program = [sys.executable, "-c", READ_ONLY, str(root)]

    read = run_on_read_only_media(tmp_path / "media", [*program, str(tmp_path / "home")])
    nowhere = run_on_read_only_media(tmp_path / "media", [*program, str(tmp_path / "media" / "home")])

    assert len(read.stdout.split()) == 1, read
    assert nowhere.stdout.startswith("'' What is in "), nowhere


@pytest.mark.foreign
def test_a_disk_that_is_full_in_the_middle(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    unshare = shutil.which("unshare")
    if unshare is None or run([unshare, "--mount", "true"]).returncode:
        pytest.skip("only root on Linux can mount something here")
    disk = str(tmp_path / "disk")

    program = [sys.executable, "-c", FULL, str(root), disk]
    done = run([unshare, "--mount", "sh", "-c", MOUNTED, "sh", disk, *program])

    assert done.stdout.endswith("True\nfine again\n"), done
    assert "is not known" in done.stdout or "Only names and sizes" in done.stdout


def test_files_that_change_while_they_are_read(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    place.snapshot()
    is_over = threading.Event()

    def keep_changing() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            write(place.root, {f"busy{number % 5}": b"x" * (number % 7) * 10_000})
            (place.root / f"busy{(number + 2) % 5}").unlink(missing_ok=True)

    busy = threading.Thread(target=keep_changing)
    busy.start()
    try:
        taken = [place.snapshot() for _ in range(10)]
    finally:
        is_over.set()
        busy.join()

    assert all(one.id for one in taken)
    quiet = place.snapshot()
    assert quiet.note == ""
    assert told(place.compare(quiet.id, place.snapshot().id)) == {}


def test_killed_in_the_middle_of_a_snapshot(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    home, random = tmp_path / "home", Random(3)
    for number in range(4):
        write(root, {f"{number}/{inner}": random.randbytes(2000) for inner in range(100)})
        command = [sys.executable, "-c", READ_ONLY, str(root), str(home)]
        wanted = entries(home) + random.randrange(1, 100)
        with forked.start(command, cwd=ROOT, stdout=subprocess.DEVNULL) as process:
            while process.poll() is None and entries(home) < wanted:
                pass
            process.kill()
        expected = FolderSnapshots(tmp_path / f"other{number}").workspace(root).snapshot()
        assert workspace(root).snapshot() == expected
        assert expected.note == ""


def entries(folder: Path) -> int:
    """Return how many files and folders are below a folder."""
    return sum(len(folders) + len(files) for _, folders, files in os.walk(folder))


def test_many_at_once(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(FolderSnapshots(tmp_path / "home").workspace(root).snapshot().id))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 4
    assert len(set(found)) == 1


@pytest.mark.foreign
def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    setpriv = shutil.which("setpriv")
    # Even root cannot read everything without these.
    limits = [f"--{kind}=-dac_override,-dac_read_search" for kind in ("bounding-set", "inh-caps")]
    prefix = [setpriv, *limits] if setpriv is not None and os.getuid() == 0 else []
    if os.getuid() == 0 and (not prefix or run([*prefix, "true"]).returncode):
        pytest.skip("root may read everything")

    done = run([*prefix, sys.executable, "-c", UNREADABLE, str(root), str(tmp_path / "home")])

    assert done.returncode == 0, done
    folders = "Some folders cannot be opened, so changes there are not known."
    files = "edited.txt, secret cannot be read, so changes there are not known."
    assert done.stdout.splitlines() == [f"{folders} {files}", "['new']"]


def test_of_two_at_once_the_one_that_could_open_everything_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "git"
    words = "warning: could not open directory 'x/': Permission denied"
    program.write_text(f'#!/bin/sh\ncase "$*" in *loud*) echo "{words}" >&2;; esac\n')
    program.chmod(0o700)
    git = Git(str(program), tmp_path, root=tmp_path)

    class Meanwhile:
        """How much of what git says is read; before that, the other one is run to its end."""

        def __index__(self) -> int:
            monkeypatch.setattr("bullpen.files.git.CHUNK_BYTES", 1000)
            git.run("loud")
            return 1000

    monkeypatch.setattr("bullpen.files.git.CHUNK_BYTES", Meanwhile())
    git.run("quiet")

    assert git.cannot_open == {b"x"}


def test_special_files_are_left_alone(tmp_path: Path) -> None:
    place = workspace(repository(tmp_path / "root"))
    os.mkfifo(place.root / "pipe")
    before = place.snapshot()
    (place.root / "edited.txt").unlink()
    os.mkfifo(place.root / "edited.txt")

    changes = place.compare(before.id, place.snapshot().id)

    assert told(changes) == {"edited.txt": "deleted"}
    with pytest.raises(FilesError):
        place.apply(changes.files, back=True)
    (place.root / "edited.txt").unlink()
    place.apply(changes.files, back=True)
    assert (place.root / "edited.txt").read_bytes() == FILES["edited.txt"]


def test_git_is_ended_when_its_reader_fails(tmp_path: Path) -> None:
    program, end = tmp_path / "git", tmp_path / "end"
    steps = f"import pathlib, time; print('x', flush=True); time.sleep(10); pathlib.Path({str(end)!r}).touch()"
    program.write_text(f"#!{sys.executable} -S\n{steps}\n")
    program.chmod(0o700)

    with pytest.raises(KeyError), Git(str(program), tmp_path, root=tmp_path).started("diff") as output:
        raise KeyError(output.read(1))

    assert not end.exists()


@pytest.mark.parametrize("settings", [(), ("-c", "core.bare=false")])
def test_the_command_that_failed_is_named(tmp_path: Path, settings: tuple[str, ...]) -> None:
    root = repository(tmp_path / "root")

    with pytest.raises(GitFailed, match="git cat-file: "):
        Git("git", root / ".git", root=root).run(*settings, "cat-file", "blob", "nothing")


def test_without_git_a_person_has_set_nothing(tmp_path: Path) -> None:
    assert persons_setting(str(tmp_path / "no git"), tmp_path, "core.excludesFile") == ""
