"""A node that talks in every conversation that it can have, until it is killed, or stopped with SIGTERM.

Arguments: the database, the team file, where it notes what was acknowledged, and the conversations' ids. What it says
has a number, and the same number is said again after a crash, with the same id.
"""

import asyncio
import logging
import random
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

from bullpen.app import open_conversation
from bullpen.cluster.node import Node, open_node
from bullpen.cluster.remote_team import RemoteTeam
from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.store.base import Store
from bullpen.store.thread import StoreThread
from bullpen.team.file import LoadedTeam, load_team

LOOK_BACK = 20
"""Kim says every second message, or after a turn without a reply the next one."""


async def main(url: str, team: str, notes: str, *ids: str) -> None:
    loaded, thread = load_team(Path(team)), StoreThread()
    if (this := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    while True:
        async with open_node(url, name="n") as node:
            with node.open_store() as store:
                print("ready", flush=True)
                talking = [asyncio.create_task(talk(node, loaded, store, thread, one, Path(notes))) for one in ids]
                # As a server does: who was taken for dead joins again, since nobody tells it anything any more.
                given_up = asyncio.create_task(node.member.given_up.wait())
                try:
                    await asyncio.wait([given_up, *talking], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for task in (given_up, *talking):
                        task.cancel()
                    await asyncio.gather(*talking, return_exceptions=True)
        for task in talking:
            if not task.cancelled():
                task.result()


async def talk(node: Node, team: LoadedTeam, store: Store, thread: StoreThread, one: str, notes: Path) -> None:
    """Own a conversation whenever nobody else does, and speak in it."""
    while True:
        await asyncio.sleep(random.uniform(0.1, 0.6))
        with suppress(BullpenError):
            opened = open_conversation(team, store, thread, one, remote=partial(RemoteTeam, node), continues=True)
            async with opened as conversation:
                await speak(conversation, notes)


async def speak(conversation: Conversation, notes: Path) -> None:
    while not conversation.is_lost:
        await conversation.until_quiet()
        for ended in conversation.undecided:
            await conversation.skip(ended.turn.id)
        if conversation.paused is not None:
            await conversation.continue_turns()
            continue
        number = await conversation.read(next_number)
        await conversation.say(f"word-{number}-of-{conversation.id}-end", message_id=f"kim-{number}")
        with notes.open("a") as file:
            file.write(f"{conversation.id} kim-{number}\n")


def next_number(store: Store, conversation_id: str) -> int:
    """Return how many messages kim has said, by the id of the last one: a long conversation is not read again."""
    for stored in reversed(store.messages(conversation_id, limit=LOOK_BACK)):
        if stored.message.speaker.role_id == "kim":
            return int(stored.message.id.removeprefix("kim-")) + 1
    return 0


logging.basicConfig(format="%(asctime)s node %(process)d %(name)s: %(message)s", level=logging.INFO)
with suppress(asyncio.CancelledError):
    asyncio.run(main(*sys.argv[1:]))
