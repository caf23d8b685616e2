"""A node that is there for a moment, for commands that have workers do something."""

import asyncio
import platform
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing

from bullpen.cluster.database import in_sentences
from bullpen.cluster.joining import obstacle
from bullpen.cluster.node import Node, open_node
from bullpen.errors import CannotJoin
from bullpen.store.postgres.store import PostgresStore


@asynccontextmanager
async def open_short_node(url: str) -> AsyncIterator[tuple[Node, PostgresStore]]:
    """Take part in a cluster until the context is left; CannotJoin is raised if that is not possible."""
    if why := await asyncio.to_thread(obstacle, url):
        raise CannotJoin(why)
    async with AsyncExitStack() as stack:
        with in_sentences(url):
            node = await stack.enter_async_context(open_node(url, name=platform.node()))
        with closing(await asyncio.to_thread(node.open_store)) as store:
            yield node, store
