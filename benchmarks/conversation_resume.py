"""Figure: opening a conversation again takes the same time, however long it is."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import WINDOW, conversation_in, team_in
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.app import open_conversation, open_store
from bullpen.store.packing import unpacked_text
from bullpen.team.file import LoadedTeam

GOAL, GOAL_FLAT = 3.0, 1.2
LENGTHS, QUICK_LENGTHS = (1_000, 4_000, 10_000, 100_000), (1_000, 4_000)
ROUNDS, QUICK_ROUNDS = 60, 15

SELECT = "SELECT id, speaker, timestamp, routing, content, hash FROM messages WHERE conversation = 1"


def measure(*, quick: bool) -> Figure:
    """Compare opening until ready, and the last window, with reading the window from a bare file."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    with own_folder() as folder:
        taken = _compared(folder, lengths, QUICK_ROUNDS if quick else ROUNDS)
    ready = [ours[0] + ours[1] for _, ours in taken.values()]
    ratios = {length: sum(ours) / bare for length, (bare, ours) in taken.items()}
    longest, worst = lengths[-1], max(ratios, key=ratios.__getitem__)
    return Figure(
        title="Opening a conversation again",
        goal=f"{longest:,} messages take at most {GOAL:g} times as long as reading the last {WINDOW} of them from "
        "SQLite, and no longer than fewer",
        met=ratios[longest] <= GOAL and ready[-1] <= GOAL_FLAT * ready[0],
        reason="becoming the owner starts a log, and SQLite first waits for the disk twice: that alone takes half as "
        "long as reading the window. Checking the end of every table, the store's thread and the hashes of the window "
        "take a quarter to a third of that time each. All of it is the same for every length.",
        measured=f"{times(ratios[longest])} times, and at most {times(ratios[worst])} times for {worst:,}; {longest:,} "
        f"messages are ready after {times(ready[-1] / ready[0])} times as long as {lengths[0]:,}",
        columns=("messages", "bare SQLite", "open the file", "open the conversation", "read the window", "ratio"),
        rows=[
            (f"{length:,}", duration(bare), *map(duration, ours), times(ratios[length]))
            for length, (bare, ours) in taken.items()
        ],
        meaning="Wall-clock time. Bare SQLite opens the file, selects the last messages and unpacks their text. "
        "bullpen also checks that the file is private and undamaged, makes commits safe, becomes the owner in a "
        "separate commit, looks for turns that were interrupted, and checks every message's hash. "
        "A file of up to 4 MB, about 4,000 messages, is checked page by page whenever it is opened, a millisecond for "
        "each megabyte; a larger one only where it will be written, and by `bullpen fsck`.",
        plots=(
            Plot(
                name="resume",
                title="Opening a conversation again",
                across="messages in the conversation",
                up="wall-clock time, lower is better",
                unit="seconds",
                series={
                    "bullpen, with the last window": [(length, sum(ours)) for length, (_, ours) in taken.items()],
                    "the window from bare SQLite": [(length, bare) for length, (bare, _) in taken.items()],
                },
            ),
        ),
    )


def _compared(folder: Path, lengths: Sequence[int], rounds: int) -> dict[int, tuple[float, list[float]]]:
    """Return the medians for each length; all lengths alternate, since the speed of a disk varies."""
    team = team_in(folder)
    files = {length: folder / f"{length}.db" for length in lengths}
    ids = {length: conversation_in(team, db, length) for length, db in files.items()}
    bare: dict[int, list[float]] = {length: [] for length in lengths}
    ours: dict[int, list[tuple[float, float, float]]] = {length: [] for length in lengths}
    for _ in range(rounds):
        for length, db in files.items():
            bare[length].append(_read_bare(db))
            ours[length].append(asyncio.run(_opened(team, db, ids[length])))
    return {
        length: (median(bare[length]), [median(part) for part in zip(*ours[length], strict=True)]) for length in lengths
    }


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
