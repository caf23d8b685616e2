"""Killed at any step of making a worktree, bringing it up to date and merging it, nothing is lost or left behind."""

from pathlib import Path

import pytest
from tests.conversation.killed_merges import MERGED, Site, completed, killed_at, removed, steps_of

EVERY = 10
"""Which steps are tried here; torture may try all of them."""


@pytest.mark.parametrize(("start", "only_merge"), [(0, False), (7, True)])
def test_killed_at_some_steps(tmp_path: Path, start: int, only_merge: bool) -> None:
    steps = steps_of(Site(tmp_path / "counted"), only_merge=only_merge)
    assert steps > (20 if only_merge else 100)
    for step in range(start, steps, EVERY if only_merge else 3 * EVERY):
        check_step(tmp_path / str(step), step, only_merge=only_merge)


def check_step(folder: Path, step: int, *, only_merge: bool) -> None:
    """Kill a process at one step, and check that everything is there when it is completed."""
    folder.mkdir()
    site = Site(folder)
    assert killed_at(site, step, only_merge=only_merge)
    completed(site, only_merge=only_merge)
    assert site.files() == MERGED
    assert len(site.worktrees()) == 1
    removed(site)
    assert site.worktrees() == []
    assert not list(folder.rglob("*.ann*"))
