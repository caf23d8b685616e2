"""Figure: what storing a message, and `say` around it, add to the commit that they wait for."""

import asyncio
import secrets
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import AsyncExitStack, closing
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from msgspec import Struct

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import KIM, conversation_in, team_in, texts_for_lee
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.messages import ConversationMessage, Routing
from bullpen.store.base import StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.store.thread import StoreThread

GOAL, GOAL_FLAT = 1.6, 1.2
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 4_000)
MESSAGES, QUICK_MESSAGES = 600, 150
BATCH = 10
TO_LEE = Routing(resolved_addressees=("lee",))


def measure(*, quick: bool) -> Figure:
    """Append the same messages both ways in turn, in short and long conversations."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    count = QUICK_MESSAGES if quick else MESSAGES
    with own_folder() as folder:
        files = {length: _Files(folder, length) for length in lengths}
        taken = asyncio.run(_compared(files, count))
    appends = [one.append / one.bare for one in taken.values()]
    crossings = [one.crossing / one.bare for one in taken.values()]
    says = [one.say / one.bare for one in taken.values()]
    return Figure(
        title="Saying something",
        goal=f"all of `say` takes at most {GOAL:g} times as long as a bare commit of SQLite with synchronous = FULL, "
        "and no longer later on",
        met=max(says) <= GOAL and says[-1] <= GOAL_FLAT * says[0],
        measured=f"{times(min(says))} to {times(max(says))} times, from the call to its return; storing the message "
        f"alone {times(min(appends))} to {times(max(appends))} times",
        reason="storing the message in the store's thread, so that a slow disk delays no agent, already takes "
        f"{times(min(crossings))} to {times(max(crossings))} times as long. Reading the markers, routing, building the "
        "change, publishing events and five iterations of the event loop come on top, all with cold caches: each "
        "message comes after a wait for the disk.",
        columns=(
            "messages before",
            "bare commit",
            "append",
            "ratio",
            "append in the store's thread",
            "ratio",
            "say",
            "ratio",
            "processor time of say",
        ),
        rows=[one.row(length) for length, one in taken.items()],
        meaning="Wall-clock time, from the call until the commit is known. The bare commit inserts the same text into "
        "its own table. Our append also compresses, chains the hashes, and updates the state and the search index. "
        "`say` reads the markers, routes, publishes events, and crosses into the store's thread and "
        "back, so that a slow disk delays no agent; no part of that is large: together with the append it takes up to "
        f"{duration(max(one.processor for one in taken.values()))} of processor time.",
        plots=(
            Plot(
                name="append",
                title="Saying something",
                across="messages before",
                up="wall-clock time until the commit is known, lower is better",
                unit="seconds",
                series={
                    "say": [(length, one.say) for length, one in taken.items()],
                    "append in the store's thread": [(length, one.crossing) for length, one in taken.items()],
                    "append of the store": [(length, one.append) for length, one in taken.items()],
                    "bare commit of SQLite": [(length, one.bare) for length, one in taken.items()],
                },
            ),
        ),
    )


class Taken(Struct, frozen=True, kw_only=True):
    """The times for a message, in seconds."""

    bare: float
    append: float
    crossing: float
    """The append, asked for in the event loop and done in the store's thread."""
    say: float
    processor: float

    def row(self, length: int) -> tuple[str, ...]:
        """Return it as a row."""
        ours = (self.append, self.crossing, self.say)
        compared = [cell for seconds in ours for cell in (duration(seconds), times(seconds / self.bare))]
        return f"{length:,}", duration(self.bare), *compared, duration(self.processor)


class _Files:
    """Two conversations of one length, and a bare file."""

    def __init__(self, folder: Path, length: int) -> None:
        self.team, self.db, self.bare = team_in(folder), folder / f"{length}.db", folder / f"bare-{length}.db"
        self.conversation_id = conversation_in(self.team, self.db, length)
        self.copy = shutil.copy(self.db, folder / f"copy-{length}.db")


async def _compared(files: Mapping[int, _Files], count: int) -> dict[int, Taken]:
    """Return the medians for each length; all lengths alternate, since the speed of a disk varies."""
    texts = texts_for_lee(count)
    bare: dict[int, list[float]] = {length: [] for length in files}
    appended: dict[int, list[float]] = {length: [] for length in files}
    crossed: dict[int, list[float]] = {length: [] for length in files}
    ours: dict[int, list[tuple[float, float]]] = {length: [] for length in files}
    async with AsyncExitStack() as stack:
        connections = {length: stack.enter_context(closing(_bare_file(file.bare))) for length, file in files.items()}
        thread = StoreThread()
        stack.callback(thread.close)
        stores = {length: stack.enter_context(SqliteStore(file.copy)) for length, file in files.items()}
        conversations = {
            length: await stack.enter_async_context(open_team(file.team, resume=file.conversation_id, db=file.db))
            for length, file in files.items()
        }
        for start in range(0, count, BATCH):
            batch = texts[start : start + BATCH]
            for length in files:
                bare[length] += [_timed(connections[length], text) for text in batch]
                appended[length] += [_append(stores[length], files[length].conversation_id, text) for text in batch]
                crossed[length] += [
                    await _append_in_thread(thread, stores[length], files[length].conversation_id, text)
                    for text in batch
                ]
                ours[length] += [await _time(conversations[length], text) for text in batch]
    return {
        length: Taken(
            bare=median(bare[length]),
            append=median(appended[length]),
            crossing=median(crossed[length]),
            say=median(clock for clock, _ in ours[length]),
            processor=median(processor for _, processor in ours[length]),
        )
        for length in files
    }


async def _append_in_thread(thread: StoreThread, store: SqliteStore, conversation_id: str, text: str) -> float:
    start = perf_counter()
    await thread.do(_append, store, conversation_id, text)
    return perf_counter() - start


def _append(store: SqliteStore, conversation_id: str, text: str) -> float:
    message = ConversationMessage(id=secrets.token_hex(8), content=text, speaker=KIM, timestamp=1, routing=TO_LEE)
    start = perf_counter()
    store.append(conversation_id, message, change=StateChange(waits_for="lee"))
    return perf_counter() - start


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
    """Return the seconds of wall-clock time and of processor time."""
    start, start_processor = perf_counter(), process_time()
    await conversation.say(text, sender="kim")
    return perf_counter() - start, process_time() - start_processor
