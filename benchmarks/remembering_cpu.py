"""Figure: what an agent's own session costs our process in each turn, against a window of the conversation."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from statistics import median
from time import process_time

from tests.conversation.remembering import HOMES

from benchmarks.agents_stage import own_folder
from benchmarks.report import Figure, duration
from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.stage import AGENT

GOAL_SECONDS = 1e-3
TURNS, QUICK_TURNS = 60, 10
WARM_UP = 5
KINDS = ("own", "shared")
SESSIONS = {"a session that has just begun": 0, "a session of 500 kB": 100_000}
"""By name: how many bytes a tool brings into it, in each of the first turns."""
TEAM = """
hand_over_note = false
[limits]
identical_replies = 1000
[[member]]
name = "kim"
[[member]]
name = "a"
agent = "claude"
command = {command}
memory = "{kind}"
memory_tokens = 10000000
"""


def measure(*, quick: bool) -> Figure:
    """Let the same agent take turns in both ways, one after the other, and compare the CPU time of our process."""
    turns = QUICK_TURNS if quick else TURNS
    with own_folder() as folder, _homes(folder):
        taken = {
            name: asyncio.run(_taken(folder / str(number), turns, tool_bytes))
            for number, (name, tool_bytes) in enumerate(SESSIONS.items())
        }
    most = max(times["own"] - times["shared"] for times in taken.values())
    return Figure(
        title="The CPU time of remembering",
        goal=f"an own session costs our process at most {duration(GOAL_SECONDS)} more CPU time in each turn than a "
        f"window",
        met=most <= GOAL_SECONDS,
        measured=f"{duration(max(most, 0.0))} more, at most",
        columns=("", "own", "shared", "more"),
        rows=[
            (name, duration(times["own"]), duration(times["shared"]), _signed(times["own"] - times["shared"]))
            for name, times in taken.items()
        ],
        meaning=f"The median of {turns} turns from the person's message to the stored reply, without the agent's own "
        "process. The session's file is read after each turn, to know later that it is what the turn left, and before "
        "a turn only if somebody has touched it; a session becomes 600 kB large before a new one begins, unless the "
        "team file says otherwise.",
        reason="the file of a session is hashed after each turn, which takes as long as it is large.",
    )


@contextmanager
def _homes(folder: Path) -> Iterator[None]:
    for cli, variable in HOMES.items():
        os.environ[variable] = str(folder / "homes" / cli)
    try:
        yield
    finally:
        for variable in HOMES.values():
            del os.environ[variable]


async def _taken(folder: Path, turns: int, tool_bytes: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {kind: [] for kind in KINDS}
    async with AsyncExitStack() as stack:
        conversations: dict[str, Conversation] = {}
        for kind in KINDS:
            opened = open_team(_team(folder / kind, kind, tool_bytes), db=folder / kind / "c.db")
            conversations[kind] = await stack.enter_async_context(opened)
        for number in range(WARM_UP + turns):
            # The order changes, since the one before affects the caches of the processor.
            for kind in KINDS if number % 2 else reversed(KINDS):
                seconds = await _turn(conversations[kind])
                if number >= WARM_UP:
                    taken[kind].append(seconds)
    for kind in KINDS:
        _check(folder / kind / "c.db", kind)
    return {kind: median(times) for kind, times in taken.items()}


async def _turn(conversation: Conversation) -> float:
    start = process_time()
    await conversation.say("Please look at the parser again, and say what is still wrong with it. [NEXT: a]")
    await conversation.until_quiet()
    return process_time() - start


def _team(folder: Path, kind: str, tool_bytes: int) -> Path:
    agent = folder / "agent"
    agent.mkdir(parents=True)
    if tool_bytes:
        script = f'[{{"tool": {{"name": "Read", "output": "{"x" * tool_bytes}"}}}}, {{"say": "I have read it."}}]'
        for number in range(1, WARM_UP + 1):
            (agent / f"script-{number}").write_text(script, encoding="utf-8")
    command = str([*AGENT, "--as", "claude", "--turns", str(agent)]).replace("'", '"')
    team = folder / "team.toml"
    team.write_text(TEAM.format(command=command, kind=kind), encoding="utf-8")
    return team


def _check(db: Path, kind: str) -> None:
    """Raise an error if the turns did not run as they should have."""
    with SqliteStore(db) as store:
        (conversation,) = store.conversations()
        left = store.memory(conversation.id, "a")
        turns = store.turns(conversation.id)
    if any(turn.state != "done" for turn in turns) or (left is not None and left.memory.turns) != (
        len(turns) if kind == "own" else False
    ):
        raise RuntimeError(f"the turns with memory = {kind!r} did not run as they should have")


def _signed(seconds: float) -> str:
    return duration(seconds) if seconds >= 0 else f"-{duration(-seconds)}"
