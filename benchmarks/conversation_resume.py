"""Figure: opening a conversation again must not care how long it is."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from msgspec import Struct

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import WINDOW, conversation_in, team_in
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.app import open_conversation, open_store
from bullpen.store.packing import unpacked_text
from bullpen.team_files import LoadedTeam

GOAL, GOAL_FLAT = 5.0, 1.2
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 4_000)
ROUNDS, QUICK_ROUNDS = 60, 15

SELECT = "SELECT id, speaker, timestamp, routing, content, hash FROM messages WHERE conversation = 1"


class Taken(Struct, frozen=True):
    """The medians for one length of conversation, in seconds."""

    bare: float
    bare_commit: float
    open_file: float
    open_conversation: float
    read_window: float

    @property
    def ours(self) -> float:
        """Everything until the window is there."""
        return self.open_file + self.open_conversation + self.read_window


def measure(*, quick: bool) -> Figure:
    """Compare opening until ready, and the last window, with reading the window from a bare file."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    with own_folder() as folder:
        taken = {length: _compared(folder, length, QUICK_ROUNDS if quick else ROUNDS) for length in lengths}
    ready = [one.open_file + one.open_conversation for one in taken.values()]
    worst = max(one.ours / one.bare for one in taken.values())
    worst_with_commit = max(one.ours / (one.bare + one.bare_commit) for one in taken.values())
    return Figure(
        title="Opening a conversation again",
        goal=f"at most {GOAL:g} times reading its last {WINDOW} messages from SQLite, and no slower when it is longer",
        met=worst <= GOAL and ready[-1] <= GOAL_FLAT * ready[0],
        measured=f"at most {times(worst)} times; {lengths[-1]:,} messages are ready after "
        f"{times(ready[-1] / ready[0])} times as long as {lengths[0]:,}",
        reason="whoever opens a conversation becomes its owner, which is a commit that waits for the disk, and bare "
        f"reading waits for none. Against bare reading and one bare first commit it is {times(worst_with_commit)} "
        "times.",
        columns=(
            "messages",
            "bare SQLite",
            "a bare first commit",
            "open the file",
            "open the conversation",
            "read the window",
            "÷ bare SQLite",
            "÷ both",
        ),
        rows=[_row(length, one) for length, one in taken.items()],
        meaning="By the clock. Bare SQLite opens the file, selects the last messages and unpacks their text. The bare "
        "first commit opens another file and changes one row with synchronous = FULL; the first commit of a process "
        "waits for the disk more often than later ones, since SQLite begins a new write-ahead log. Ours also looks "
        "whether the file is private and undamaged, looks for turns that were interrupted, and checks every message's "
        "hash.",
        plots=(_plot(taken),),
    )


def _row(length: int, taken: Taken) -> tuple[str, ...]:
    parts = (taken.bare, taken.bare_commit, taken.open_file, taken.open_conversation, taken.read_window)
    ratios = (taken.ours / taken.bare, taken.ours / (taken.bare + taken.bare_commit))
    return f"{length:,}", *map(duration, parts), *map(times, ratios)


def _plot(taken: dict[int, Taken]) -> Plot:
    return Plot(
        name="resume",
        title="Opening a conversation again",
        across="messages in the conversation",
        up="time by the clock, lower is better",
        unit="seconds",
        series={
            "bullpen, with the last window": [(length, one.ours) for length, one in taken.items()],
            "a bare first commit of SQLite": [(length, one.bare_commit) for length, one in taken.items()],
            "the window from bare SQLite": [(length, one.bare) for length, one in taken.items()],
        },
    )


def _compared(folder: Path, length: int, rounds: int) -> Taken:
    db, bare_db = folder / f"{length}.db", folder / f"bare-{length}.db"
    team = team_in(folder)
    conversation_id = conversation_in(team, db, length)
    _make_bare(bare_db)
    found = [
        (_read_bare(db), _commit_bare(bare_db), *asyncio.run(_opened(team, db, conversation_id))) for _ in range(rounds)
    ]
    return Taken(*(median(part) for part in zip(*found, strict=True)))


def _make_bare(db: Path) -> None:
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE owners (owner TEXT)")
        connection.execute("INSERT INTO owners VALUES ('nobody')")


def _commit_bare(db: Path) -> float:
    start = perf_counter()
    with closing(sqlite3.connect(db, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("UPDATE owners SET owner = ?", (str(start),))
        return perf_counter() - start


def _read_bare(db: Path) -> float:
    start = perf_counter()
    with closing(sqlite3.connect(db)) as connection:
        rows = connection.execute(f"{SELECT} ORDER BY sequence DESC LIMIT {WINDOW}").fetchall()
        _texts = [unpacked_text(row[4]) for row in rows]
        return perf_counter() - start


async def _opened(team: LoadedTeam, db: Path, conversation_id: str) -> tuple[float, float, float]:
    start = perf_counter()
    async with open_store(db) as (store, thread):
        file_open = perf_counter()
        async with open_conversation(team, store, thread, conversation_id) as conversation:
            ready = perf_counter()
            await conversation.messages(limit=WINDOW)
            return file_open - start, ready - file_open, perf_counter() - ready
