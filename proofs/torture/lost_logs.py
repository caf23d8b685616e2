"""Lost logs: a writer is killed, its log is taken away, and nobody may take what is left for everything."""

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import ALL_FOUND, Planted, each_found, in_words, one_line
from proofs.torture.shim import scratch
from proofs.torture.together import Tell, together

from bullpen.errors import BullpenError, LogLost, StoreDamaged
from bullpen.store import write_ahead_log
from bullpen.store.backup import back_up, keep_what_is_left, restore
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import begin, said

SIZES: dict[Size, int] = {"small": 25, "full": 2_000}
UNIT = "databases whose writer was killed or closed"
ROUNDS_WITH_FAULT = 20
MESSAGES = 600
"""More than a fast machine stores before its process is killed: what is closed has no log any more."""
LENGTHS = (20, 2_000, 60_000)

Harm = Callable[[Path, random.Random], None]


def run(size: Size, seed: int) -> Outcome:
    """Let a process write, end it, harm what it left, and see what is opened."""
    chance = random.Random(seed)
    failures: list[str] = []
    figures: Counter[str] = Counter()
    for number in range(SIZES[size]):
        with scratch() as folder:
            one = Round(folder / "bullpen.db", random.Random(chance.random()))
            failures += [f"seed {seed}, round {number} ({one.how}): {broken}" for broken in one.broken()]
            figures.update(one.figures)
    return Outcome(tried=SIZES[size], unit=UNIT, failures=tuple(failures), figures=dict(sorted(figures.items())))


def run_with_fault(seed: int) -> Outcome:
    """Do it with a store that does not ask the index what was in the log, or believes it too readily."""
    return each_found(FAULTS, seed)


def after(harm: Harm) -> Callable[[int], Iterator[str]]:
    """Return what looks for broken promises after one kind of harm, with a seed."""

    def broken(seed: int) -> Iterator[str]:
        chance = random.Random(seed)
        for _ in range(ROUNDS_WITH_FAULT):
            with scratch() as folder:
                one = Round(folder / "bullpen.db", random.Random(chance.random()))
                one.while_open, one.afterwards = nothing, harm
                yield from one.broken()

    return broken


@contextmanager
def nobody_asks() -> Iterator[None]:
    """Take every log for the one that was written."""
    real = write_ahead_log.damage
    setattr(write_ahead_log, "damage", lambda path: "")  # noqa: B010
    try:
        yield
    finally:
        setattr(write_ahead_log, "damage", real)  # noqa: B010


# What is done to the files of a database. After the first ones, nothing is lost.


def nothing(path: Path, chance: random.Random) -> None:
    """Leave it alone."""


def index_removed(path: Path, chance: random.Random) -> None:
    beside(path, "-shm").unlink(missing_ok=True)


def index_from_before_the_start(path: Path, chance: random.Random) -> None:
    with suppress(FileNotFoundError):
        os.utime(beside(path, "-shm"), (0, 0))


def log_removed(path: Path, chance: random.Random) -> None:
    beside(path, "-wal").unlink(missing_ok=True)


def log_removed_before_the_start(path: Path, chance: random.Random) -> None:
    index_from_before_the_start(path, chance)
    log_removed(path, chance)


def log_emptied(path: Path, chance: random.Random) -> None:
    with suppress(FileNotFoundError):
        os.truncate(beside(path, "-wal"), 0)


def log_cut(path: Path, chance: random.Random) -> None:
    with suppress(FileNotFoundError):
        size = beside(path, "-wal").stat().st_size
        os.truncate(beside(path, "-wal"), chance.randrange(size) if size else 0)


def log_of_another_time(path: Path, chance: random.Random) -> None:
    """Put back a log that was copied while the process wrote, if the index knows that another was written since.

    If it knows of no page, a process was killed that had just begun a log, and it may be this one.
    """
    witness = write_ahead_log._witness(beside(path, "-shm"))
    if beside(path, "-copy").exists() and beside(path, "-wal").exists() and witness and witness.frames:
        shutil.copy(beside(path, "-copy"), beside(path, "-wal"))


HARMLESS: tuple[Harm, ...] = (nothing, index_removed, index_from_before_the_start)
HARMFUL: tuple[Harm, ...] = (
    log_removed,
    log_removed,
    log_removed_before_the_start,
    log_emptied,
    log_emptied,
    log_cut,
    log_of_another_time,
)
WHILE_OPEN: tuple[Harm, ...] = (nothing, nothing, log_removed, log_emptied)
# What nobody can tell: without the index, or after a power cut, an empty log may be a new one.
UNTELLABLE: dict[Harm, tuple[Harm, ...]] = {
    log_removed: (index_removed,),
    log_emptied: (index_removed, index_from_before_the_start),
}


def beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


class Round:
    """One database, from its first message to what is opened in the end."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path = path
        self.chance = chance
        self.while_open = chance.choice(WHILE_OPEN)
        untellable = UNTELLABLE.get(self.while_open, ())
        self.afterwards = chance.choice([harm for harm in (*HARMLESS, *HARMFUL) if harm not in untellable])
        self.figures: Counter[str] = Counter()

    @property
    def how(self) -> str:
        return f"{self.while_open.__name__} while open, {self.afterwards.__name__} afterwards"

    def broken(self) -> Iterator[str]:
        """Yield every promise that was broken."""
        with SqliteStore(self.path) as store:
            begin(store, "c")
        said_ids = self._written()
        backup = self._backed_up()
        self.afterwards(self.path, self.chance)
        files = {file.name: file.read_bytes() for file in self.path.parent.glob("bullpen.db*")}
        try:
            stored = messages(self.path)
        except LogLost:
            self.figures["refused"] += 1
            yield from self._refused(said_ids, files, backup)
        except StoreDamaged as error:
            yield f"damage is found, but not that the log is lost: {error}"
        else:
            self.figures["opened"] += 1
            if missing := set(said_ids) - set(stored):
                yield f"opened without a word, and {len(missing)} of {len(said_ids)} messages are missing"

    def _written(self) -> list[str]:
        """Return the messages that a process stored before it was killed, or closed its store."""
        kill_after = self.chance.uniform(0.02, 0.3) if self.chance.random() < 0.8 else None
        told, harm = together([self._write, self._harm], kill_after)
        for kind, *values in harm:
            if kind == "crashed":
                raise RuntimeError(values[0])
        self.figures["killed" if kill_after else "closed"] += 1
        self.figures["told while it writes"] += sum(kind == "refused" for kind, *_ in told)
        crashed = [values[0] for kind, *values in told if kind == "crashed"]
        if crashed:
            raise RuntimeError(crashed[0])
        return [str(values[0]) for kind, *values in told if kind == "said"]

    def _write(self, tell: Tell) -> None:
        with SqliteStore(self.path) as store:
            for number in range(MESSAGES):
                try:
                    store.append("c", said(f"m{number}", "x" * self.chance.choice(LENGTHS)))
                except StoreDamaged:
                    tell(("refused",))
                    return
                tell(("said", f"m{number}"))

    def _harm(self, tell: Callable[[Any], None]) -> None:
        """Copy the log while it is written, and do what is done to it then."""
        time.sleep(self.chance.uniform(0.0, 0.1))
        with suppress(FileNotFoundError):
            shutil.copy(beside(self.path, "-wal"), beside(self.path, "-copy"))
        self.while_open(self.path, self.chance)

    def _backed_up(self) -> Path | None:
        """Return a backup of what is there now, if that is whole."""
        copy = self.path.with_name("copied")
        copy.mkdir()
        for file in self.path.parent.glob("bullpen.db*"):
            shutil.copy2(file, copy)
        try:
            back_up(copy / self.path.name, self.path.with_name("backup"))
        except BullpenError:
            return None
        return self.path.with_name("backup")

    def _refused(self, said_ids: list[str], files: dict[str, bytes], backup: Path | None) -> Iterator[str]:
        """Yield what is wrong with a refusal: with no reason for it, or with what can be done then."""
        if self.while_open is nothing and self.afterwards in HARMLESS:
            yield "refused, although nothing is lost"
        if {file.name: file.read_bytes() for file in self.path.parent.glob("bullpen.db*")} != files:
            yield "the files were changed by refusing them"
        if backup is not None and self.chance.random() < 0.5:
            before = messages(backup)
            restore(backup, self.path)
            if messages(self.path) != before or set(said_ids) - set(before):
                yield "the restored backup does not have every message"
            self.figures["restored from a backup"] += 1
            return
        try:
            left = keep_what_is_left(self.path)
        except StoreDamaged:
            self.figures["nothing left that can be read"] += 1
            return
        self.figures["continued with what is left"] += 1
        if not left.findings and (stored := messages(self.path)) != [f"m{number}" for number in range(len(stored))]:
            yield f"what is left is not the beginning: {stored[:3]} … {stored[-3:]}"
        if left.kept is None or left.kept.read_bytes() != files[self.path.name]:
            yield "the database as it was is not kept"


def messages(path: Path) -> list[str]:
    """Return the messages of a sound database."""
    with SqliteStore(path) as store:
        if findings := store.fsck():
            raise StoreDamaged(path, findings[0].text)
        return [stored.message.id for stored in store.messages("c")]


SILENTLY = "opened without a word"
FAULTS = {
    "nobody asks the log's index what was in the log": Planted(nobody_asks, after(log_removed), SILENTLY),
    "a log without content is taken for a new one": Planted(
        one_line(write_ahead_log._problem, "return _lost(log.name, size, witness)", 'return ""'),
        after(log_emptied),
        SILENTLY,
    ),
    "a log is whole if it has what was copied": Planted(
        one_line(write_ahead_log._damaged, "last >= witness.frames", "last >= witness.copied"), after(log_cut), SILENTLY
    ),
    "after a start of the machine no log is missed": Planted(
        one_line(write_ahead_log._lost, "(size is not None and witness.is_old)", "witness.is_old"),
        after(log_removed_before_the_start),
        SILENTLY,
    ),
    "a whole log counts as damaged": Planted(
        one_line(write_ahead_log._damaged, "last >= witness.frames", "last > witness.frames"),
        after(nothing),
        "refused, although nothing is lost",
    ),
}

TORTURE = Torture(
    name="lost logs",
    does=(
        "A process that writes messages is killed at a random moment, or closes its database. The log beside the "
        "database is removed or emptied while it writes; then it is removed, emptied, cut off, replaced by one of "
        "another time, or left alone, and so is its index, also as if the machine had been started since."
    ),
    promise=(
        "a database opens with every acknowledged message, or it is said that its log is lost and not a byte is "
        "changed; a database of which nothing was taken is never refused; and after a refusal, a backup can be "
        "restored, or what is left is the beginning of what was said."
    ),
    run=run,
    fault=in_words(FAULTS),
    seen_as=ALL_FOUND,
    run_with_fault=run_with_fault,
    order=22,
)
