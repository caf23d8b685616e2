"""Figure: what `say` adds to the commit that it waits for."""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, closing
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
        files = {length: _Files(folder, length) for length in lengths}
        taken = asyncio.run(_compared(files, count))
    ratios = {length: ours / bare for length, (bare, ours, _) in taken.items()}
    return Figure(
        title="Saying something",
        goal=f"at most {GOAL:g} times a bare commit of SQLite with synchronous = FULL, and no slower later on",
        met=max(ratios.values()) <= GOAL and ratios[lengths[-1]] <= GOAL_FLAT * ratios[lengths[0]],
        measured=f"{times(min(ratios.values()))} to {times(max(ratios.values()))} times",
        reason="the commit itself costs both the same. Reading the markers, routing, compressing, hashing, three more "
        "pages in the log, and the way into the store's thread and back come on top, each with a small part: `say` "
        f"takes up to {duration(max(own for _, _, own in taken.values()))} of processor time.",
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


class _Files:
    """A conversation of one length, and a bare file beside it."""

    def __init__(self, folder: Path, length: int) -> None:
        self.team, self.db, self.bare = team_in(folder), folder / f"{length}.db", folder / f"bare-{length}.db"
        self.conversation_id = conversation_in(self.team, self.db, length)


async def _compared(files: Mapping[int, _Files], count: int) -> dict[int, tuple[float, float, float]]:
    """Return the medians for each length; all lengths take turns, since a disk has good and bad moments."""
    texts = texts_for_lee(count)
    bare: dict[int, list[float]] = {length: [] for length in files}
    ours: dict[int, list[tuple[float, float]]] = {length: [] for length in files}
    async with AsyncExitStack() as stack:
        connections = {length: stack.enter_context(closing(_bare_file(file.bare))) for length, file in files.items()}
        conversations = {
            length: await stack.enter_async_context(open_team(file.team, resume=file.conversation_id, db=file.db))
            for length, file in files.items()
        }
        for start in range(0, count, BATCH):
            batch = texts[start : start + BATCH]
            for length in files:
                bare[length] += [_timed(connections[length], text) for text in batch]
                ours[length] += [await _time(conversations[length], text) for text in batch]
    return {length: (median(bare[length]), *_medians(ours[length])) for length in files}


def _medians(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(clock for clock, _ in pairs), median(processor for _, processor in pairs)


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
