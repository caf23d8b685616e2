"""Figure: what `say` adds to the commit that it waits for."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import conversation_in, team_in, texts_for_lee
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.app import open_team
from bullpen.conversation.loop import Conversation

GOAL, GOAL_FLAT = 2.0, 1.2
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 4_000)
MESSAGES, QUICK_MESSAGES = 600, 150
BATCH = 10


def measure(*, quick: bool) -> Figure:
    """Let both append the same messages in turn, in short and long conversations."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    count = QUICK_MESSAGES if quick else MESSAGES
    with own_folder() as folder:
        taken = {length: asyncio.run(_compared(folder, length, count)) for length in lengths}
    ratios = {length: ours / bare for length, (bare, ours, _) in taken.items()}
    return Figure(
        title="Saying something",
        goal=f"at most {GOAL:g} times a bare commit of SQLite with synchronous = FULL, and no slower later on",
        met=max(ratios.values()) <= GOAL and ratios[lengths[-1]] <= GOAL_FLAT * ratios[lengths[0]],
        measured=f"{times(min(ratios.values()))} to {times(max(ratios.values()))} times",
        reason=f"what `say` does beside waiting takes up to {duration(max(own for _, _, own in taken.values()))} of "
        "processor time.",
        columns=("messages before", "bare commit", "say", "ratio", "processor time of say"),
        rows=[
            (f"{length:,}", duration(bare), duration(ours), times(ratios[length]), duration(own))
            for length, (bare, ours, own) in taken.items()
        ],
        meaning="By the clock, from the call until the commit is known. The bare commit inserts the same text into a "
        "table of its own. `say` also reads the markers, routes, compresses, chains the hashes, keeps what the caps "
        "count and the index for the search, tells everyone who watches, and crosses into the store's thread and back, "
        "so that a slow disk delays no agent.",
        plots=(
            Plot(
                name="append",
                title="Saying something",
                across="messages before",
                up="time by the clock until the commit is known, lower is better",
                unit="seconds",
                series={
                    "say": [(length, ours) for length, (_, ours, _) in taken.items()],
                    "bare commit of SQLite": [(length, bare) for length, (bare, _, _) in taken.items()],
                },
            ),
        ),
    )


async def _compared(folder: Path, length: int, count: int) -> tuple[float, float, float]:
    team, db = team_in(folder), folder / f"{length}.db"
    conversation_id = await asyncio.to_thread(conversation_in, team, db, length)
    texts = texts_for_lee(count)
    bare: list[float] = []
    ours: list[tuple[float, float]] = []
    with closing(_bare_file(folder / f"bare-{length}.db")) as file:
        async with open_team(team, resume=conversation_id, db=db) as conversation:
            for start in range(0, count, BATCH):
                batch = texts[start : start + BATCH]
                bare += [_timed(file, text) for text in batch]
                ours += [await _time(conversation, text) for text in batch]
    return median(bare), *(median(part) for part in zip(*ours, strict=True))


def _bare_file(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE said (number INTEGER PRIMARY KEY, text TEXT)")
    return connection


def _timed(connection: sqlite3.Connection, text: str) -> float:
    start = perf_counter()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO said (text) VALUES (?)", (text,))
    connection.execute("COMMIT")
    return perf_counter() - start


async def _time(conversation: Conversation, text: str) -> tuple[float, float]:
    """Return the seconds by the clock, and of processor time."""
    start, start_processor = perf_counter(), process_time()
    await conversation.say(text, sender="kim")
    return perf_counter() - start, process_time() - start_processor
