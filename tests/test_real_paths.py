"""Where a path leads: as the system says, but for what is different for each process."""

import os
from pathlib import Path

import pytest

from bullpen.real_paths import real_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a" / "b").mkdir(parents=True)
    for name, target in {"up": "a/..", "whole": str(tmp_path), "a/deep": "b/../../up", "none": "gone/x"}.items():
        (tmp_path / name).symlink_to(target)
    (tmp_path / "circle").symlink_to("circle")
    return tmp_path


@pytest.mark.parametrize(
    "path", ["", "/", "a/b/..", "up/a", "whole/up/a//b", "a/deep/a/./b", "none", "none/../y", "gone/..", "a/deep/.."]
)
def test_it_is_what_the_system_says(path: str, folder: Path) -> None:
    assert real_path(f"{folder}/{path}") == os.path.realpath(f"{folder}/{path}")


@pytest.mark.parametrize("path", ["/proc", "/proc/self/cwd/x", "//proc/1", "/a/../proc", "/x/..//proc/self"])
def test_what_each_process_has_for_itself_leads_nowhere_for_sure(path: str) -> None:
    with pytest.raises(ValueError, match="proc"):
        real_path(path)


def test_neither_does_a_circle(folder: Path) -> None:
    with pytest.raises(ValueError, match="circle"):
        real_path(f"{folder}/circle")
