"""Files that only their owner reads, whole or not at all."""

import stat
from pathlib import Path

import pytest

from bullpen.errors import OutputExists
from bullpen.exchange.files import write_private_file
from bullpen.exchange.formatting import Writable


def hello(file: Writable) -> None:
    file.write("你好\r\n")


def fails(file: Writable) -> None:
    file.write("half")
    raise OSError("the disk is full")


def test_a_file_is_private_and_exact(tmp_path: Path) -> None:
    path = tmp_path / "out.md"

    write_private_file(path, hello)

    assert path.read_bytes() == "你好\r\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_exists_is_left_alone_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "out.md"
    path.write_text("mine")

    with pytest.raises(OutputExists):
        write_private_file(path, hello)
    assert path.read_text() == "mine"

    path.chmod(0o644)
    write_private_file(path, hello, overwrite=True)
    assert path.read_bytes() == "你好\r\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_fails_leaves_nothing(tmp_path: Path, overwrite: bool) -> None:
    if overwrite:
        (tmp_path / "out.md").write_text("mine")

    with pytest.raises(OSError, match="full"):
        write_private_file(tmp_path / "out.md", fails, overwrite=overwrite)

    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == ([("out.md", "mine")] if overwrite else [])
