"""Eight processes write into one database, come and go, and are killed: nothing acknowledged is lost or doubled."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.shim import scratch
from proofs.torture.together import Tell, together

from bullpen.errors import StoreBusy, StoreError
from bullpen.store import database
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import begin, said

# Rounds, and messages of each writer in a round.
SIZES: dict[Size, tuple[int, int]] = {"small": (3, 15), "full": (60, 60)}
WRITERS = 8
CONVERSATIONS = 3
FAULT_CHANCES = 20


def run(size: Size, seed: int) -> Outcome:
    """Let them write, round after round, into the same file."""
    rounds, messages = SIZES[size]
    chance = random.Random(seed)
    failures: list[str] = []
    acknowledged: dict[str, list[str]] = {f"c{number}": [] for number in range(CONVERSATIONS)}
    figures: Counter[str] = Counter({"processes": rounds * WRITERS, "processes killed": 0})
    with scratch() as folder:
        path = folder / "bullpen.db"
        with SqliteStore(path) as store:
            for name in acknowledged:
                begin(store, name)
        for number in range(rounds):
            kill_after = chance.uniform(0.0, 0.3) if number % 2 else None
            figures["processes killed"] += kill_after is not None
            writers = [writer(path, f"{number}-{who}", messages, chance.random()) for who in range(WRITERS)]
            for kind, *values in [line for told in together(writers, kill_after) for line in told]:
                if kind == "said":
                    acknowledged[values[0]].append(values[1])
                elif kind == "busy":
                    figures["told that the file is busy"] += 1
                else:
                    failures.append(f"seed {seed}, round {number}: {values[0]}")
            failures += [f"seed {seed}, round {number}: {broken}" for broken in problems(path, acknowledged)]
    count = sum(map(len, acknowledged.values()))
    return Outcome(tried=count, unit="messages", failures=tuple(failures), figures=dict(figures))


def writer(path: Path, who: str, messages: int, seed: float) -> Any:
    """Return what one process does: say something in any conversation, with one store, two, or one that is new."""

    def write(tell: Tell) -> None:
        chance = random.Random(f"{who} {seed}")
        stores = [SqliteStore(path)]
        for number in range(messages):
            roll = chance.random()
            if roll < 0.1:
                # As a list of conversations beside a running one does: a second look at the same file.
                SqliteStore(path).close()
            elif roll < 0.2:
                stores.append(SqliteStore(path))
                stores.pop(0).close()
            name, message_id = f"c{chance.randrange(CONVERSATIONS)}", f"{who}-{number}"
            try:
                stores[0].append(name, said(message_id, "x" * chance.choice((5, 500, 20_000))))
                tell(("said", name, message_id))
            except StoreBusy:
                tell(("busy",))
        if chance.random() < 0.7:
            stores[0].close()

    return write


def problems(path: Path, acknowledged: dict[str, list[str]]) -> list[str]:
    """Return what is wrong with the file after a round."""
    try:
        return list(checked(path, acknowledged))
    except StoreError as error:
        return [str(error)]


def checked(path: Path, acknowledged: dict[str, list[str]]) -> Iterator[str]:
    """Yield what is wrong with a file that can be read."""
    with SqliteStore(path) as store:
        for name, messages in acknowledged.items():
            stored = store.messages(name)
            ids = [one.message.id for one in stored]
            lost = set(messages) - set(ids)
            if lost:
                yield f"{len(lost)} acknowledged messages are lost in {name}, {min(lost)} for example"
            if len(set(ids)) != len(ids) or [one.sequence for one in stored] != list(range(1, len(ids) + 1)):
                yield f"a message in {name} is doubled or out of place"
        yield from map(str, store.fsck())


def run_with_fault(seed: int) -> Outcome:
    """Do it with a store that looks at its file while another of the same process uses it.

    What it breaks depends on who comes when, so it gets several chances.
    """
    with locks_given_up():
        outcomes = (run("small", seed + number) for number in range(FAULT_CHANCES))
        return next((outcome for outcome in outcomes if outcome.failures), Outcome(tried=FAULT_CHANCES, unit="rounds"))


@contextmanager
def locks_given_up() -> Iterator[None]:
    """Open and close the file by ourselves whenever a store is opened, which takes the locks of our process off it."""
    real = database.Database._others_here

    def nobody(self: database.Database) -> list[database.Database]:
        return []

    setattr(database.Database, "_others_here", nobody)  # noqa: B010
    try:
        yield
    finally:
        setattr(database.Database, "_others_here", real)  # noqa: B010


TORTURE = Torture(
    name="eight writers",
    does=(
        "Eight processes write into the same conversations of one database at once. Some look at it with a second "
        "store, some close theirs and open another, some leave without closing, and some are killed."
    ),
    promise="every acknowledged message is there once, in a place of its own, and `fsck` finds nothing.",
    run=run,
    fault="a store opens and closes its file by itself while its process has it open, which gives up SQLite's locks.",
    seen_as="acknowledged messages are lost|unusable|unreadable",
    run_with_fault=run_with_fault,
    order=13,
)
