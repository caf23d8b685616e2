"""Restores: a backup is put in the place of the database while other processes open it without pause."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, BinaryIO

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import scratch
from proofs.torture.together import Tell, together
from proofs.torture.two_owners import replaced

from bullpen.errors import BullpenError, StoreBusy
from bullpen.store import backup, files
from bullpen.store.backup import back_up, restore
from bullpen.store.database import Database
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import begin, said

SIZES: dict[Size, int] = {"small": 8, "full": 400}
ROUNDS_WITH_FAULT = 25
OPENERS = 3
BEFORE, LATER = 3, 30
"""Messages in the backup, and those that came after it."""
WORDS = "words " * 200
MOST_SECONDS = 10.0
SLOW_SECONDS = 0.01
"""How long the restoring process waits for its disk, at most, in addition to what it really takes."""
AFTERWARDS = 8
"""Messages of each process once the backup is in its place."""


def run(size: Size, seed: int) -> Outcome:
    """Restore one database after the other while processes open it."""
    chance, figures = random.Random(seed), Counter[str]()
    failures: list[str] = []
    for number in range(SIZES[size]):
        failures += [f"seed {seed}, round {number}: {broken}" for broken in one_round(chance, figures)]
    return Outcome(
        tried=SIZES[size], unit="restores while others open it", failures=tuple(failures), figures=dict(figures)
    )


def one_round(chance: random.Random, figures: Counter[str]) -> list[str]:
    """Return every promise that was broken."""
    with scratch() as folder:
        path = folder / "bullpen.db"
        prepare(path, is_killed=chance.random() < 0.5)
        soon, restored = get_context("fork").Event(), get_context("fork").Event()
        if chance.random() < 0.5:
            # Nobody waits until the copy is nearly there, so some may open what a killed process left.
            soon.set()
        openers = [opener(path, f"o{number}", chance.random(), soon, restored) for number in range(OPENERS)]
        told = together([restorer(path, chance.random(), soon, restored), *openers])
        return list(checked(path, told, figures))


def prepare(path: Path, *, is_killed: bool) -> None:
    """Leave a backup, and a database that has gone on since, perhaps with the log of a process that was killed."""
    with SqliteStore(path) as store:
        begin(store, "c")
        for number in range(BEFORE):
            store.append("c", said(f"m{number}"))
    back_up(path, path.with_name("backup"))
    child = os.fork()
    if child == 0:
        store = SqliteStore(path)
        for number in range(BEFORE, LATER):
            store.append("c", said(f"m{number}", WORDS))
        if is_killed:
            os.kill(os.getpid(), signal.SIGKILL)
        store.close()
        os._exit(0)
    os.waitpid(child, 0)


def restorer(path: Path, seed: float, soon: Event, restored: Event) -> Callable[[Tell], None]:
    """Return what restores the backup on a slow disk, as soon as nobody has the database open."""

    def put_back(tell: Tell) -> None:
        chance, sync = random.Random(seed), files.sync

        def slow(one: Path) -> None:
            soon.set()
            time.sleep(chance.uniform(0, SLOW_SECONDS))
            sync(one)
            time.sleep(chance.uniform(0, SLOW_SECONDS))

        setattr(files, "sync", slow)  # noqa: B010
        deadline = time.monotonic() + MOST_SECONDS
        try:
            while time.monotonic() < deadline:
                try:
                    tell(("restored", str(restore(path.with_name("backup"), path).kept)))
                    return
                except BullpenError as error:
                    if "Close it there first" not in str(error):
                        raise
                    tell(("in use", ""))
        finally:
            soon.set()
            restored.set()

    return put_back


def opener(path: Path, who: str, seed: float, soon: Event, restored: Event) -> Callable[[Tell], None]:
    """Return what opens the database again and again, says something, and at last goes on for a while."""

    def open_and_say(tell: Tell) -> None:
        chance, number = random.Random(seed), 0
        assert soon.wait(2 * MOST_SECONDS)
        while True:
            time.sleep(chance.uniform(0, 0.06))
            try:
                with SqliteStore(path) as store:
                    for _ in range(chance.randrange(3)):
                        store.append("c", said(f"{who}-{number}", WORDS))
                        tell(("said", f"{who}-{number}"))
                        number += 1
                    if restored.is_set():
                        go_on(store, tell, chance, number)
                        return
            except StoreBusy:
                tell(("busy", ""))

    def go_on(store: SqliteStore, tell: Tell, chance: random.Random, number: int) -> None:
        for later in range(number, number + AFTERWARDS):
            time.sleep(chance.uniform(0, 0.01))
            store.append("c", said(f"{who}-{later}", WORDS))
            tell(("said", f"{who}-{later}"))

    return open_and_say


def checked(path: Path, told: list[list[Any]], figures: Counter[str]) -> Iterator[str]:
    """Yield what is wrong afterwards."""
    lines = [line for process in told for line in process]
    figures.update(kind for kind, _ in lines if kind != "crashed")
    yield from (f"crashed: {what}" for kind, what in lines if kind == "crashed")
    kept = [Path(what) for kind, what in lines if kind == "restored"]
    try:
        stored = messages(path)
        older = messages(kept[0]) if kept else stored
    except BullpenError as error:
        yield f"damaged: {error}"
        return
    if kept and (stored[:BEFORE], older[:LATER]) != ([f"m{n}" for n in range(BEFORE)], [f"m{n}" for n in range(LATER)]):
        yield f"not what was restored, or not what was kept: {stored[:BEFORE]} {older[:LATER]}"
    if kept and f"m{BEFORE}" in stored:
        yield "what was there before is in what was restored"
    for message in (what for kind, what in lines if kind == "said"):
        found = (message in stored) + (message in older) if kept else int(message in stored)
        if found != 1:
            yield f"{message} was acknowledged, and is in {found} databases"


def messages(path: Path) -> list[str]:
    """Return the messages of a sound database."""
    with SqliteStore(path) as store:
        if findings := store.fsck():
            raise BullpenError(findings[0].text)
        return [stored.message.id for stored in store.messages("c")]


# Faults: one line each.


def run_with_fault(seed: int) -> Outcome:
    """Make one mistake after the other. Each must be found, else nothing counts as found."""
    found = {name: failures_with(fault, seed) for name, fault in FAULTS.items()}
    every = tuple(f"{name}: {failures[0]}" for name, failures in found.items() if failures)
    return Outcome(tried=len(found), unit="planted faults", failures=every if len(every) == len(found) else ())


def failures_with(fault: Callable[[], AbstractContextManager[None]], seed: int) -> list[str]:
    """Return what some rounds find."""
    chance, figures = random.Random(seed), Counter[str]()
    with fault():
        for _ in range(ROUNDS_WITH_FAULT):
            if failures := one_round(chance, figures):
                return failures
    return []


@contextmanager
def copy_is_not_locked() -> Iterator[None]:
    """Let everybody open the copy as soon as it has its name."""
    locked = backup._locked

    @contextmanager
    def careless(path: Path) -> Iterator[BinaryIO | None]:
        if path.name.endswith(".new"):
            yield None
        else:
            with locked(path) as file:
                yield file

    with replaced(backup, "_locked", careless):
        yield


FAULTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "nobody looks whether the file was replaced meanwhile": partial(
        replaced, Database, "_check_not_replaced", lambda self, inode: None
    ),
    "the copy is not locked": copy_is_not_locked,
    "nobody waits for a restore": partial(replaced, Database, "_was_restored", lambda self: False),
}

TORTURE = Torture(
    name="restores",
    does=(
        "A backup is put in the place of a database, which a process closed or left when it was killed, on a disk that "
        "is sometimes slow. Meanwhile three other processes open the database again and again, and say something."
    ),
    promise=(
        "the database holds the backup, the one that was kept beside it holds what was there before, every message "
        "that was acknowledged is in exactly one of them, and nothing is damaged or said to be."
    ),
    run=run,
    fault=(
        "nobody looks whether the file was replaced while it was opened, the copy is not locked, or nobody waits until "
        "it is in its place. Each of these must be found."
    ),
    seen_as="was acknowledged|damaged|what was restored",
    run_with_fault=run_with_fault,
    order=23,
)
