"""Figure: a hundred conversations in one process do not slow each other down."""

import asyncio
from pathlib import Path
from time import perf_counter, process_time

from msgspec import Struct

from benchmarks.agents_stage import own_folder
from benchmarks.conversation_stage import team_in
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration, times
from bullpen.app import open_conversation, open_store
from bullpen.team.file import LoadedTeam

GOAL = 1.15
CROWDS = (1, 10, 100)
CROWD = CROWDS[-1]
TURNS, QUICK_TURNS = 3, 2
SECONDS, QUICK_SECONDS = 5, 3
SCRIPT = "cat > /dev/null; echo Looking.; sleep {seconds}; echo Done."


class Taken(Struct, frozen=True):
    """The times for one turn."""

    seconds: float
    own_processor: float


def measure(*, quick: bool) -> Figure:
    """Let one conversation take some turns, then a hundred at once."""
    turns, seconds = (QUICK_TURNS, QUICK_SECONDS) if quick else (TURNS, SECONDS)
    script = SCRIPT.format(seconds=seconds)
    with own_folder() as folder:
        team = team_in(folder, max=script, sarah=script)
        crowds = {count: asyncio.run(_taken(team, folder / f"{count}.db", count, turns)) for count in CROWDS}
    one = crowds[1]
    ratio = crowds[CROWD].seconds / one.seconds
    return Figure(
        title=f"{CROWD} conversations at once",
        goal=f"a turn takes at most {GOAL:g} times as long as in a conversation that is alone",
        met=ratio <= GOAL,
        measured=f"{times(ratio)} times",
        reason=f"{CROWD} turns that begin at the same moment take {duration(CROWD * crowds[CROWD].own_processor)} of "
        "processor time in our process, besides that of the programs themselves.",
        columns=("conversations", "time per turn", "ratio", "our own processor time per turn"),
        rows=[
            (str(count), duration(taken.seconds), times(taken.seconds / one.seconds), duration(taken.own_processor))
            for count, taken in crowds.items()
        ],
        meaning=f"Wall-clock time. Each agent is a real program that sleeps for {seconds} seconds, as if it waited for "
        f"its model, so the difference is what we and the machine add when {CROWD} programs run at once and all begin "
        "at the same moment. Our own processor time includes starting the program and every commit.",
        plots=(
            Plot(
                name="crowd",
                title="A turn while others are running",
                across="conversations at once",
                up="lower is better",
                unit="seconds",
                series={
                    "wall-clock time of a turn": [(count, taken.seconds) for count, taken in crowds.items()],
                    "our own processor time": [(count, taken.own_processor) for count, taken in crowds.items()],
                },
            ),
        ),
    )


async def _taken(team: LoadedTeam, db: Path, count: int, turns: int) -> Taken:
    async with open_store(db) as (store, thread), asyncio.TaskGroup() as tasks:
        ready = asyncio.Barrier(count + 1)
        done = asyncio.Barrier(count + 1)

        async def converse() -> None:
            async with open_conversation(team, store, thread) as conversation:
                await ready.wait()
                for turn in range(turns):
                    await conversation.say(f"Continue. [NEXT: {('max', 'sarah')[turn % 2]}]", sender="kim")
                    await conversation.until_quiet()
                assert len(await conversation.messages()) == 2 * turns
                await done.wait()

        for _ in range(count):
            tasks.create_task(converse())
        await ready.wait()
        start, start_processor = perf_counter(), process_time()
        await done.wait()
        elapsed, processor = perf_counter() - start, process_time() - start_processor
        return Taken(elapsed / turns, processor / turns / count)
