"""The disk that loses what was not synced loses that, all of that, and nothing else."""

import random
from pathlib import Path

import pytest
from proofs.torture.disk import Disk, Operation, operations


def after_many_cuts(disk: Disk) -> set[tuple[tuple[str, bytes | None], ...]]:
    return {tuple(sorted(disk.after_a_cut(random.Random(seed)).items())) for seed in range(300)}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """Give a disk with one empty file that is safe."""
    disk = Disk(tmp_path)
    disk.do(Operation("create", 7, f"{tmp_path}/file"))
    disk.do(Operation("sync", tmp_path.stat().st_ino, ""))
    return disk


def test_what_is_synced_is_safe(disk: Disk) -> None:
    disk.do(Operation("write", 7, "", 0, b"safe"))
    disk.do(Operation("sync", 7, ""))

    assert after_many_cuts(disk) == {(("file", b"safe"),)}


def test_what_is_not_synced_may_be_lost_or_torn_between_sectors(disk: Disk) -> None:
    disk.do(Operation("write", 7, "", 0, b"a" * 1024))

    contents = {content for files in after_many_cuts(disk) for _, content in files}

    halves = {b"", b"a" * 512, b"a" * 1024, bytes(512) + b"a" * 512}
    assert contents == halves


def test_a_file_whose_folder_is_not_synced_may_be_gone(disk: Disk, tmp_path: Path) -> None:
    disk.do(Operation("create", 8, f"{tmp_path}/new"))
    disk.do(Operation("sync", 8, ""))

    assert after_many_cuts(disk) == {(("file", b""),), (("file", b""), ("new", b""))}


def test_all_that_is_in_a_folder_that_is_lost_is_lost(disk: Disk, tmp_path: Path) -> None:
    disk.do(Operation("mkdir", 9, f"{tmp_path}/folder"))
    disk.do(Operation("create", 10, f"{tmp_path}/folder/inside"))
    disk.do(Operation("sync", 10, ""))
    disk.do(Operation("sync", 9, ""))

    whole = (("file", b""), ("folder", None), ("folder/inside", b""))
    assert after_many_cuts(disk) == {(("file", b""),), whole}


def test_a_file_that_is_cut_or_removed_may_still_be_there(disk: Disk, tmp_path: Path) -> None:
    disk.do(Operation("write", 7, "", 0, b"content"))
    disk.do(Operation("sync", 7, ""))
    disk.do(Operation("cut", 7, "", 2))
    disk.do(Operation("unlink", 0, f"{tmp_path}/file"))

    assert after_many_cuts(disk) == {(), (("file", b"co"),), (("file", b"content"),)}


def test_a_recording_is_read_as_it_was_written() -> None:
    recording = (
        b"create 7 /a\nwrite 7 0 9\nwrite 1\n\ncut 7 3\nsync 7\nmkdir 8 /b\nlink 7 /c\nunlink /a\nrename /c /d\n"
    )

    assert [operation.kind for operation in operations(recording)] == [
        *("create", "write", "cut", "sync", "mkdir", "link", "unlink", "rename")
    ]
    assert next(one.data for one in operations(recording) if one.kind == "write") == b"write 1\n\n"
