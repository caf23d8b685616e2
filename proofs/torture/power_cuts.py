"""Power cuts: a store at work, and the disk it finds again when what was not synced is lost, torn or reordered."""

import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from proofs.torture.disk import Disk, operations, write_files
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.session import DATABASE, state_of
from proofs.torture.shim import environment, scratch, why_not

from bullpen.errors import BullpenError
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import OTHER, dead, said

# Recordings, steps in each, and cuts in each.
SIZES: dict[Size, tuple[int, int, int]] = {"small": (2, 120, 100), "full": (25, 400, 400)}
FINAL = {"done", "failed", "cancelled", "interrupted", "dropped"}


def run(size: Size, seed: int) -> Outcome:
    """Record some sessions, and cut the power in each at many moments."""
    return _run(size, seed, plant="")


def run_with_fault(seed: int) -> Outcome:
    """Do it with a store that acknowledges what it has not synced."""
    return _run("small", seed, plant="commit before sync")


def _run(size: Size, seed: int, plant: str) -> Outcome:
    if reason := why_not():
        return Outcome(tried=0, unit="power cuts", skipped=reason)
    recordings, steps, cuts = SIZES[size]
    failures: list[str] = []
    figures = {"recorded sessions": recordings, "recorded writes, syncs and renames": 0, "cuts that lost something": 0}
    for number in range(recordings):
        with scratch() as folder:
            recording = recorded(folder, seed + number, steps, plant)
            figures["recorded writes, syncs and renames"] += sum(1 for _ in operations(recording))
            chance = random.Random(f"{seed} {number}")
            for moment, failure, lost in cut(folder, recording, chance, cuts):
                figures["cuts that lost something"] += lost
                if failure:
                    failures.append(f"recording {seed + number}, cut before operation {moment}: {failure}")
    return Outcome(tried=recordings * cuts, unit="power cuts", failures=tuple(failures), figures=figures)


def recorded(folder: Path, seed: int, steps: int, plant: str = "") -> bytes:
    """Return the recording of a session, and check that nothing in it was missed."""
    root, log = folder / "root", folder / "log"
    root.mkdir()
    command = [sys.executable, "-m", "proofs.torture.session", *map(str, (root, log, seed, steps)), plant]
    subprocess.run(command, check=True, env=environment(), timeout=300)
    recording = log.read_bytes()
    disk = Disk(root)
    for operation in operations(recording):
        disk.do(operation)
    for name, content in disk.now().items():
        # The index of the log is written through memory, and made again after a crash.
        if not name.endswith("-shm") and (root / name).read_bytes() != content:
            raise AssertionError(f"The recording does not give {name} as it is")
    return recording


def cut(folder: Path, recording: bytes, chance: random.Random, cuts: int) -> Iterator[tuple[int, str, bool]]:
    """Yield the moment of each cut, the promise that was broken or nothing, and whether anything was lost in it."""
    all_operations = list(operations(recording))
    disk = Disk(folder / "root")
    states = acknowledgements(folder / "root" / "acknowledged")
    acknowledged = 0
    log = None
    moments = sorted(chance.randrange(1, len(all_operations) + 1) for _ in range(cuts))
    for moment, operation in enumerate(all_operations):
        while moments and moments[0] == moment:
            moments.pop(0)
            files = disk.after_a_cut(chance)
            lost = any(files.get(name) != content for name, content in disk.now().items() if name != "acknowledged")
            yield moment, broken_promise(folder / "image", files, states, acknowledged), lost
        if operation.kind == "create" and operation.path.endswith("/acknowledged"):
            log = operation.inode
        elif operation.kind == "write" and operation.inode == log:
            acknowledged += 1
        disk.do(operation)
    for moment in moments:
        yield moment, broken_promise(folder / "image", disk.after_a_cut(chance), states, acknowledged), False


def acknowledgements(path: Path) -> list[str]:
    """Return the state of the store after each step. A closed store has the state it had before."""
    states = ["missing"]
    for line in path.read_text().splitlines():
        states.append(states[-1] if line == "closed" else line)
    return states


def broken_promise(folder: Path, files: dict[str, bytes | None], states: list[str], acknowledged: int) -> str:
    """Return what is wrong with a disk after a cut, or nothing."""
    shutil.rmtree(folder, ignore_errors=True)
    write_files(folder, files)
    # Only the next step was being done: all of it is there, or nothing.
    allowed = states[acknowledged : acknowledged + 2]
    path = folder / DATABASE
    if not path.exists():
        return "" if "missing" in allowed else f"the file is gone after {acknowledged} acknowledged steps"
    try:
        with SqliteStore(path) as store:
            state, findings = state_of(store), store.fsck()
            if state not in allowed:
                # An empty store is what opening a missing one made.
                return f"after {acknowledged} acknowledged steps the store is not in the state of that or the next step"
            return str(findings[0]) if findings else goes_on(store)
    except BullpenError as error:
        return f"{type(error).__name__}: {error}"


def goes_on(store: SqliteStore) -> str:
    """Take a conversation over as the next process does, and say something in it."""
    for conversation in store.conversations():
        if not store.claim(conversation.id, OTHER, is_alive=dead):
            return f"{conversation.id} cannot be taken over"
        store.recover(conversation.id, at=1, owner=OTHER)
        stored = store.append(conversation.id, said("after the cut"), owner=OTHER)
        if stored.sequence != conversation.messages + 1 or store.running(conversation.id):
            return f"{conversation.id} does not go on"
        if not {turn.state for turn in store.turns(conversation.id)} <= FINAL | {"queued"}:
            return f"a turn of {conversation.id} has not ended"
    return str(store.fsck()[0]) if store.fsck() else ""


TORTURE = Torture(
    name="power cuts",
    does=(
        "Sessions of a store are recorded write by write, by a shim between the process and the file system. At random "
        "moments the power fails: each sector (512 or 4096 bytes) and each name that was not synced is lost, kept or "
        "kept while an earlier one is lost. The index of the log (-shm) is written through memory and not recorded, so "
        "each cut finds it empty or gone."
    ),
    promise=(
        "the store opens, `fsck` finds nothing, it is exactly in the state of the last acknowledged step or of the one "
        "that was being done, every interrupted turn is ended once, and the conversation goes on."
    ),
    run=run,
    fault="the store commits without syncing (`PRAGMA synchronous = OFF`).",
    seen_as="is not in the state of that or the next step",
    run_with_fault=run_with_fault,
    order=10,
)
