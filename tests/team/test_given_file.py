"""A file that a person names is read, or refused at once: nobody waits for the other end of a pipe."""

import os
from pathlib import Path

import pytest

from bullpen.team.given_file import open_given


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")

    with open_given(tmp_path / "a") as file:
        assert file.read() == b"x"


def test_a_named_pipe_is_refused_and_so_is_a_link_to_one_or_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path in (tmp_path / "pipe", tmp_path / "link", Path(os.devnull)):
        with pytest.raises(OSError, match="it is not a regular file"):
            open_given(path)


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="the system has no names for open files")
def test_what_a_shell_has_opened_is_read_to_its_end() -> None:
    reading, writing = os.pipe()
    try:
        with open_given(Path(f"/dev/fd/{reading}")) as file:
            os.write(writing, b"x")
            os.close(writing)
            assert file.read() == b"x"
    finally:
        os.close(reading)
