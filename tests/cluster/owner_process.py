"""A node that opens one conversation of a team with a member in a pool, says something or not, and waits.

Arguments: the database, the team file, the conversation's id or "new", and what to say or nothing. It prints the
conversation's id, and then each event on a line.
"""

import asyncio
import signal
import sys
from functools import partial
from pathlib import Path

from bullpen.app import open_conversation
from bullpen.cluster.node import open_node
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.conversation.conversation import Conversation
from bullpen.store.thread import StoreThread
from bullpen.team.file import load_team


async def main(url: str, team: str, conversation_id: str, text: str) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    resume = None if conversation_id == "new" else conversation_id
    thread = StoreThread()
    async with open_node(url, name="owner") as node:
        with node.open_store() as store:
            opened = open_conversation(
                *(load_team(Path(team)), store, thread, resume),
                remote=partial(RemoteTeam, node),
                continues=True,
            )
            async with opened as conversation:
                print(conversation.id, flush=True)
                showing = asyncio.create_task(show(conversation))
                await asyncio.sleep(0)
                if text:
                    await conversation.say(text)
                await stopping.wait()
                showing.cancel()
    thread.close()


async def show(conversation: Conversation) -> None:
    async for event in conversation.watch():
        print(type(event).__name__, repr(event)[:300], flush=True)


asyncio.run(main(*sys.argv[1:]))
