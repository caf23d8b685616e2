"""Random changes of files: what is recorded of a turn is exactly what it did, and can be taken back."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from multiprocessing import get_context
from traceback import extract_tb
from unittest import mock

from msgspec.structs import replace
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import scratch
from tests.files.random_turns import check_turns

from bullpen.file_changes import FileChange, FolderChanges
from bullpen.files import repository
from bullpen.files.workspace import Workspace

SIZES: dict[Size, int] = {"small": 12, "full": 500}
TURNS = 2
MOST_WITH_FAULT = 200
"""Folders that are tried with a mistake: git converts nothing in most of them."""
AT_ONCE = 8


def run(size: Size, seed: int) -> Outcome:
    """Let somebody take turns in random folders."""
    failures = tuple(filter(None, _found(seed, SIZES[size])))
    return Outcome(tried=TURNS * SIZES[size], unit="turns", failures=failures, figures={"folders": SIZES[size]})


def run_with_fault(seed: int) -> Outcome:
    """Do it with each mistake, until it is found."""
    found = [next(filter(None, _found(seed, MOST_WITH_FAULT, fault)), "") for fault in FAULTS]
    failures = tuple(f"all {len(FAULTS)} mistakes were found; {failure}" for failure in found) if all(found) else ()
    return Outcome(tried=len(FAULTS), unit="mistakes", failures=failures)


def _found(seed: int, folders: int, fault: str = "") -> Iterator[str]:
    """Yield what was wrong in each folder."""
    first = 1000 * seed
    # A new process for each fault: what is planted in it stays there.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for start in range(first, first + folders, AT_ONCE):
            yield from pool.map(partial(_failure, fault=fault), range(start, min(start + AT_ONCE, first + folders)))


def _failure(seed: int, *, fault: str) -> str:
    """Return what was wrong in one folder; nothing if all was right."""
    with scratch() as folder, FAULTS[fault]() if fault else nullcontext():
        try:
            check_turns(folder, seed, turns=TURNS)
        except Exception as error:
            return f"folder {seed}: {type(error).__name__} in {extract_tb(error.__traceback__)[-1].line}"
    return ""


@contextmanager
def _converted() -> Iterator[None]:
    with mock.patch.object(repository, "ATTRIBUTES", ""):
        yield


def _mode_forgotten(file: FileChange) -> Iterator[FileChange]:
    yield file if file.new is None else replace(file, new=replace(file.new, mode="100644"))


def _new_file_forgotten(file: FileChange) -> Iterator[FileChange]:
    if file.kind != "added" or not file.path.startswith("src/"):
        yield file


@contextmanager
def _compared(mistake: Callable[[FileChange], Iterator[FileChange]]) -> Iterator[None]:
    compare = Workspace.compare

    def wrongly(workspace: Workspace, before: str, after: str) -> FolderChanges:
        right = compare(workspace, before, after)
        return replace(right, files=tuple(one for file in right.files for one in mistake(file)))

    with mock.patch.object(Workspace, "compare", wrongly):
        yield


FAULTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "what git would convert is converted": _converted,
    "whether a file can be executed is forgotten": partial(_compared, _mode_forgotten),
    "new files in one folder are left out": partial(_compared, _new_file_forgotten),
}


TORTURE = Torture(
    name="random changes of files",
    does=(
        "In random folders (repositories with and without commits, linked worktrees, submodules, nested repositories, "
        "SHA-256, line endings and filters that git converts, folders without git; files that were changed, untracked "
        "or ignored before) somebody edits, creates, deletes, renames, links and makes executable, with names of all "
        "kinds, in turns."
    ),
    promise=(
        "the recorded diff, applied with `git apply` to what was before, gives what was after, byte for byte; undo "
        "gives what was before, redo what was after; and not a byte in any `.git` is different."
    ),
    run=run,
    fault="three mistakes, one after the other: " + "; ".join(FAULTS) + ". Each must be found.",
    run_with_fault=run_with_fault,
    seen_as="all 3 mistakes were found; folder .* in assert",
    order=24,
)
