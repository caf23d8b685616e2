"""Where checks run: those of the team file that concern the files which a turn has changed, on this machine."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from bullpen.agents.check_run import CheckRun, run_check
from bullpen.files.place import find_place
from bullpen.team.team import Check

Placed = tuple[Check, Path]
"""A check, and the folder in which it runs."""


class CheckRunner(Protocol):
    """Runs checks on the machine that has the files."""

    def placed(self, checks: Sequence[Check], root: Path, shared: Path | None) -> list[Placed]:
        """Return the checks of a workspace, each with the folder in which it runs there. Blocks.

        If it is an agent's own workspace, `shared` is the agent's place in the shared folder.
        """

    async def run(self, check: Check, place: Path, run: CheckRun) -> None:
        """Run a check and fill in how it ended, also if this is cancelled: then its processes are ended first."""


class ChecksHere:
    """Runs checks on this machine."""

    def __init__(self, root: Path, original: Callable[[Path], Path]) -> None:
        """`root` is the folder of the team file; `original` says which folder a fork's worktree has the files of."""
        self._root = root
        self._original = original

    def placed(self, checks: Sequence[Check], root: Path, shared: Path | None) -> list[Placed]:
        """Return the checks of a workspace, each with the folder in which it runs there. Blocks."""
        return list(self._placed(checks, root, self._original(root if shared is None else find_place(shared).root)))

    def _placed(self, checks: Sequence[Check], root: Path, shared: Path) -> Iterator[Placed]:
        for check in checks:
            place = place_in(Path(os.path.realpath(self._root / check.cwd)), root, shared)
            if place is not None:
                yield check, place

    async def run(self, check: Check, place: Path, run: CheckRun) -> None:
        """Run a check and fill in how it ended, also if this is cancelled: then its processes are ended first."""
        await run_check(check.command, cwd=place, timeout=check.timeout, run=run)


def place_in(place: Path, root: Path, shared: Path) -> Path | None:
    """Return where a check of a place in the shared folder runs, for files below a root; None if it is elsewhere."""
    if place.is_relative_to(shared):
        return root / place.relative_to(shared)
    if shared.is_relative_to(place):
        return place if shared == root else root
    return None
