"""Figure: an open conversation needs the same memory, however long it is."""

import asyncio
import gc
import tracemalloc
from pathlib import Path

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import WINDOW, conversation_in, team_in
from benchmarks.plot import Plot
from benchmarks.report import Figure, times
from bullpen.app import open_team
from bullpen.team.file import LoadedTeam

GOAL = 1.1
LENGTHS, QUICK_LENGTHS = (1_000, 10_000, 100_000), (1_000, 4_000)


def measure(*, quick: bool) -> Figure:
    """Open conversations of different lengths, work with them, and measure Python's memory."""
    lengths = QUICK_LENGTHS if quick else LENGTHS
    with own_folder() as folder:
        team = team_in(folder)
        held = {length: _held(team, folder / f"{length}.db", length) for length in lengths}
    ratio = max(held[lengths[-1]][part] / held[lengths[0]][part] for part in (0, 1))
    return Figure(
        title="Memory of an open conversation",
        goal=f"a long history takes at most {GOAL:g} times the memory of a short one",
        met=ratio <= GOAL,
        measured=f"{times(ratio)} times",
        columns=("messages", "held", "at most"),
        rows=[(f"{length:,}", f"{now:,} B", f"{most:,} B") for length, (now, most) in held.items()],
        meaning=f"Python's own memory, by tracemalloc, after opening, reading the last {WINDOW} messages, building a "
        f"prompt and one turn of an agent. The worse of the two ratios is {times(ratio)}.",
        plots=(
            Plot(
                name="open-memory",
                title="Memory of an open conversation",
                across="messages in the history",
                up="bytes held by Python, lower is better",
                unit="bytes",
                series={
                    "at most": [(length, most) for length, (_, most) in held.items()],
                    "after one turn": [(length, now) for length, (now, _) in held.items()],
                },
            ),
        ),
    )


def _held(team: LoadedTeam, db: Path, length: int) -> tuple[int, int]:
    conversation_id = conversation_in(team, db, length)
    asyncio.run(_work(team, db, conversation_id))
    return asyncio.run(_work(team, db, conversation_id))


async def _work(team: LoadedTeam, db: Path, conversation_id: str) -> tuple[int, int]:
    tracemalloc.start()
    try:
        async with open_team(team, resume=conversation_id, db=db) as conversation:
            await conversation.messages(limit=WINDOW)
            await conversation.preview("max")
            await conversation.say("Hello", sender="kim")
            await conversation.until_quiet()
            # Garbage does not count.
            gc.collect()
            return tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
