"""A process that forks a conversation with its files and is killed at one step of that, or at none.

Arguments: the database, the conversation, the last message, and the step. It prints a line before it begins.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Timer

from bullpen.cluster.remote_forks import RemoteFilesToFork, finding_files
from bullpen.cluster.short_node import open_short_node
from bullpen.exchange.forking import Fork, fork_conversation

STEPS = ("before the plan", "planned", "before it is made", "while it is made", "made")


async def fork_there(url: str, conversation_id: str, at: int | None) -> Fork:
    """Fork a conversation with its files, as a node that is there for a moment."""
    async with open_short_node(url) as (node, store):
        find = finding_files(node)
        return await asyncio.to_thread(fork_conversation, store, conversation_id, at, with_files=True, find=find)


def main(url: str, conversation_id: str, last: str, step: str) -> None:
    plan, make = RemoteFilesToFork.plan, RemoteFilesToFork.make

    def at(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def planned(self: RemoteFilesToFork, fork_id: str) -> dict[str, str]:
        at("before the plan")
        forked = plan(self, fork_id)
        at("planned")
        return forked

    def made(self: RemoteFilesToFork) -> Mapping[str, Path]:
        at("before it is made")
        Timer(0.02, lambda: at("while it is made")).start()
        folders = make(self)
        at("made")
        return folders

    patched: list[tuple[str, Callable[..., object]]] = [("plan", planned), ("make", made)]
    for name, instead in patched:
        setattr(RemoteFilesToFork, name, instead)
    print("forking", flush=True)
    asyncio.run(fork_there(url, conversation_id, int(last)))


if __name__ == "__main__":
    main(*sys.argv[1:])
