"""Owns a conversation until its input ends, and tells what it learns: owning.py TEAM DB ID|new TEXT BEAT LOST."""

import asyncio
import sys

from bullpen import open_team
from bullpen.conversation import heartbeat, owner
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Paused, TurnEnded
from bullpen.errors import ConversationInUse, NotTheOwner
from bullpen.store.base import Store

team, db, resume, text, beat, lost = sys.argv[1:]
setattr(heartbeat, "BEAT_SECONDS", float(beat))  # noqa: B010
owner.LOST_SECONDS = owner.WATCH_SECONDS = float(lost)


def tell(*words: object) -> None:
    print(*words, flush=True)


def output_of_first_turn(store: Store, conversation_id: str) -> bytes:
    turns = store.turns(conversation_id)
    record = store.record(conversation_id, turns[0].id) if turns else None
    return b"" if record is None else record.stream


async def watch(conversation: Conversation) -> None:
    async for event in conversation.watch():
        match event:
            case TurnEnded():
                tell("turn", event.turn_id, event.state)
            case Paused():
                tell("paused", event.text)


async def main() -> None:
    try:
        async with open_team(team, resume=None if resume == "new" else resume, db=db) as conversation:
            watching = asyncio.create_task(watch(conversation))
            await asyncio.sleep(0)
            if text:
                await conversation.say(text)
            # All that the agent says is stored by then, so that nothing else is written but the heartbeat.
            while text and not await conversation.read(output_of_first_turn):
                await asyncio.sleep(0.05)
            tell("owns", conversation.id)
            while line := await asyncio.to_thread(sys.stdin.readline):
                try:
                    await conversation.say(line.strip())
                    tell("said", line.strip())
                except NotTheOwner as error:
                    tell("refused", error)
            watching.cancel()
    except ConversationInUse as error:
        tell("in use", error)


asyncio.run(main())
