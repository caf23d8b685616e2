"""A round of best of several, with a pick, in a process that dies at one step of changing the disk."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests import forked
from tests.conversation.killed_merges import DEAD, _patched, die_at
from tests.conversation.stage import Stage

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.errors import ConversationInUse


@asynccontextmanager
async def opened_after_death(stage: Stage, resume: str | None) -> AsyncIterator[Conversation]:
    """Open a conversation as soon as no program that the dead process was just starting holds its lock."""
    async with AsyncExitStack() as stack:
        while True:
            try:
                conversation = await stack.enter_async_context(stage.open(resume=resume))
                break
            except ConversationInUse:
                await asyncio.sleep(0.01)
        yield conversation


async def settled(conversation: Conversation) -> None:
    """Wait until everything that was decided is done."""
    await conversation.until_quiet()
    await conversation._best_of.finish()
    await conversation.until_quiet()


async def play(team: Path, db: Path) -> None:
    """Let ann and bob do the same task, pick bob's result, and drop ann's."""
    async with open_team(team, db=db) as conversation:
        await conversation.say("[NEXT: ann | bob] Go.")
        await conversation.until_quiet()
        await conversation.pick("bob")
        await settled(conversation)
        await conversation.discard()
        await settled(conversation)


def steps_of(team: Path, db: Path) -> int:
    """Return at how many steps a process could die."""
    done = _run(team, db, 0)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def killed_at(team: Path, db: Path, step: int) -> bool:
    """Play it in a process that dies at a step; return whether it did."""
    done = _run(team, db, step)
    assert done.returncode in (0, DEAD), done.stderr
    return done.returncode == DEAD


def _run(team: Path, db: Path, step: int) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.conversation.killed_rounds", str(team), str(db), str(step)]
    root = Path(__file__).parent.parent.parent
    return forked.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=120)


def main() -> None:
    """Play it, and say how many steps there were; or die at one."""
    team, db, step = sys.argv[1:]
    counted = 0

    def count() -> None:
        nonlocal counted
        counted += 1

    if int(step):
        die_at(int(step))
    else:
        _patched(count)
    asyncio.run(play(Path(team), Path(db)))
    sys.stdout.write(str(counted))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
