"""Says something, and is killed by itself when a method of the store returns: left_behind.py TEAM DB TEXT METHOD."""

import asyncio
import os
import signal
import sys
from typing import Any

from bullpen import open_team
from bullpen.store.sqlite import SqliteStore

team, db, text, method = sys.argv[1:]
real = getattr(SqliteStore, method)


def deadly(store: SqliteStore, conversation_id: str, *args: Any, **kwargs: Any) -> None:
    real(store, conversation_id, *args, **kwargs)
    print(conversation_id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


setattr(SqliteStore, method, deadly)


async def main() -> None:
    async with open_team(team, db=db) as conversation:
        await conversation.say(text)
        await conversation.until_quiet()


asyncio.run(main())
