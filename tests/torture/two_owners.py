"""Two processes want one conversation: one gets it, each turn runs once, and nothing said is lost."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from sqlite3 import Connection, Cursor
from typing import Any

from tests.torture.outcome import Outcome, Size, Torture
from tests.torture.shim import scratch
from tests.torture.together import Tell, together

from bullpen.conversation.owner import is_alive, this_process
from bullpen.errors import StoreConflict
from bullpen.store import turn_rows
from bullpen.store.base import IsAlive, Owner, TurnEnd
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.store_contract import GIVEN, MAX, asked, begin, said

SIZES: dict[Size, int] = {"small": 12, "full": 500}
TURNS = 5
TURN_IDS = [f"m{number}-max" for number in range(TURNS)]
# Short, and long enough that a kill hits some turns.
WORK_SECONDS = 0.005
WORDS = 4
WAIT_SECONDS = 60
FINAL = {"done", "interrupted"}


def run(size: Size, seed: int) -> Outcome:
    """Let two processes race for a conversation, often kill the first, and let two more race for what is left."""
    chance = random.Random(seed)
    failures: list[str] = []
    figures: Counter[str] = Counter()
    with scratch() as folder:
        path = folder / "bullpen.db"
        for number in range(SIZES[size]):
            name = f"c{number}"
            with SqliteStore(path) as store:
                begin(store, name)
                for turn in range(TURNS):
                    store.append(name, said(f"m{turn}"), turns=[asked(f"m{turn}")])
            kill_after = chance.uniform(0.0, 0.06) if chance.random() < 0.5 else None
            # One that waits for a killed one would wait for ever.
            finish = get_context("fork").Barrier(2, timeout=WAIT_SECONDS) if kill_after is None else None
            told = together([racer(path, name, f"{number}-{who}", finish) for who in "ab"], kill_after)
            if kill_after is not None:
                figures["processes killed"] += 1
                finish = get_context("fork").Barrier(2, timeout=WAIT_SECONDS)
                told += together([racer(path, name, f"{number}-{who}", finish) for who in "cd"])
            failures += [f"seed {seed}, round {number}: {broken}" for broken in checked(path, name, told, figures)]
    return Outcome(tried=SIZES[size], unit="races", failures=tuple(failures), figures=dict(figures))


def racer(path: Path, name: str, who: str, finish: Barrier | None) -> Any:
    """Return what one process does: claim, run what it can, and speak whether it may run turns or not."""

    def race(tell: Tell) -> None:
        try:
            take_part(tell)
        finally:
            # Whoever ends lets the other win, which would be no race.
            if finish:
                finish.wait()

    def take_part(tell: Tell) -> None:
        owner = this_process()
        with SqliteStore(path) as store:
            won = store.claim(name, owner, is_alive=is_alive)
            tell(("won" if won else "lost", who))
            if won:
                tell(("interrupted", [turn.id for turn in store.recover(name, at=1)]))
            # All of them, also those that somebody else has begun.
            for turn_id in TURN_IDS:
                with suppress(StoreConflict):
                    store.start_turn(name, turn_id, owner=owner, given=GIVEN, at=1)
                    tell(("started", turn_id))
                    time.sleep(WORK_SECONDS)
                    end = TurnEnd(turn_id=turn_id, state="done", at=2)
                    store.append(name, said(f"{who}-{turn_id}", speaker=MAX), finishes=end)
                    tell(("said", f"{who}-{turn_id}"))
            for word in range(WORDS):
                store.append(name, said(f"{who}-{word}"))
                tell(("said", f"{who}-{word}"))

    return race


def checked(path: Path, name: str, told: list[list[Any]], figures: Counter[str]) -> Iterator[str]:
    """Yield what is wrong after a race."""
    lines = [line for process in told for line in process]
    of = {
        kind: [value for key, value in lines if key == kind] for kind in ("won", "started", "said", "crashed", "lost")
    }
    with SqliteStore(path) as store:
        stored = [one.message.id for one in store.messages(name)]
        sequences = [one.sequence for one in store.messages(name)]
        states = {turn.id: turn.state for turn in store.turns(name)}
        findings = store.fsck(name)
    figures.update({"turns started": len(of["started"]), "messages acknowledged": len(of["said"])})
    figures["turns interrupted"] += sum(state == "interrupted" for state in states.values())
    yield from (f"crashed: {crash}" for crash in of["crashed"])
    yield from (f"{finding}" for finding in findings)
    # Whoever races with one that is killed may rightly own it after him; those who come later may not both.
    race = told if len(told) == 2 else told[2:]
    winners = [who for process in race for kind, who in process if kind == "won"]
    if len(winners) != 1:
        yield f"{len(winners)} of two processes own it"
    yield from (f"turn {turn} was started {count} times" for turn, count in Counter(of["started"]).items() if count > 1)
    yield from (f"{message} is lost" for message in of["said"] if message not in stored)
    if len(set(stored)) != len(stored) or sequences != list(range(1, len(stored) + 1)):
        yield "a message is doubled or out of place"
    if not set(states.values()) <= FINAL:
        yield f"a turn has not ended: {states}"


def run_with_fault(seed: int) -> Outcome:
    """Do it with turns that do not look at their state and their owner."""
    with no_fences():
        return run("small", seed)


@contextmanager
def no_fences() -> Iterator[None]:
    """Let everybody start and end every turn."""

    def step(
        db: Connection, conversation: int, turn_id: str, expected: str, changes: str, values: tuple[object, ...]
    ) -> int:
        update = f"UPDATE turns SET {changes} WHERE conversation = ? AND id = ?"
        cursor: Cursor = db.execute(update, (*values, conversation, turn_id))
        assert cursor.rowcount == 1
        number, _ = turn_rows._number_and_state(db, conversation, turn_id)
        table = "prompts" if "running" in changes else "streams"
        db.execute(f"DELETE FROM {table} WHERE turn = ?", (number,))
        return number

    def claim(self: SqliteStore, conversation_id: str, owner: Owner, *, is_alive: IsAlive) -> bool:
        return bool(real[1](self, conversation_id, owner, is_alive=lambda _: False)) or True

    real = turn_rows._step, SqliteStore.claim
    turn_rows._step = step
    setattr(SqliteStore, "claim", claim)  # noqa: B010
    try:
        yield
    finally:
        turn_rows._step = real[0]
        setattr(SqliteStore, "claim", real[1])  # noqa: B010


TORTURE = Torture(
    name="two processes on one conversation",
    does=(
        "Two processes begin at the same moment, claim one conversation, try to run each of its turns and speak in it; "
        "in half of the races one is killed, and two others race for what it left."
    ),
    promise=(
        "one of them becomes the owner, no turn is started twice, nothing acknowledged is lost or doubled, what the "
        "killed one ran is interrupted once, every turn has ended, and `fsck` finds nothing."
    ),
    run=run,
    fault="everybody becomes the owner, and a turn starts whatever its state is.",
    run_with_fault=run_with_fault,
    order=12,
)
