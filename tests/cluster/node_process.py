"""A process that takes part in a cluster, and does nothing else. It prints its id."""

import asyncio
import sys

from bullpen.cluster.bell import Bell
from bullpen.cluster.database import Database
from bullpen.cluster.membership import Process, joined


async def main(url: str) -> None:
    bell = Bell(url)
    async with Database(url) as database:
        while True:
            async with joined(database, bell, Process(kind="node", name="n")) as member:
                print(member.id, flush=True)
                await member.given_up.wait()


asyncio.run(main(sys.argv[1]))
