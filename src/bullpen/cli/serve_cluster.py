"""`bullpen serve --cluster`: this process as a node, beside others that serve the same conversations."""

import argparse
import asyncio
import platform
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from bullpen.cli.cluster_option import add_cluster_option, cluster_address, need_cluster
from bullpen.database import SharedDatabase
from bullpen.errors import WrongUsage

if TYPE_CHECKING:
    from bullpen.cluster.shared_access import SharedAccess
    from bullpen.web.nodes import Cluster


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    add_cluster_option(parser, "be a node of a cluster, whose conversations are on this server")
    parser.add_argument(
        "--node-host",
        metavar="HOST",
        default="127.0.0.1",
        help="an address of this machine that other nodes and workers can reach, in a network that you trust "
        "(default: 127.0.0.1)",
    )


def cluster_to_serve(options: argparse.Namespace) -> str | None:
    """Return the address of the cluster to serve, if one is asked for."""
    address = cluster_address(options.cluster)
    if options.cluster and options.db is not None:
        raise WrongUsage("--cluster and --db exclude each other: the conversations of a cluster are in PostgreSQL.")
    return None if options.db is not None else address


def open_access(url: str) -> "SharedAccess":
    """Return who has access to the cluster; its tables are made if they are missing."""
    need_cluster()
    from bullpen.cluster.schema import prepare
    from bullpen.cluster.shared_access import SharedAccess

    prepare(url)
    access = SharedAccess(url)
    access.look()
    return access


@asynccontextmanager
async def joined_cluster(access: "SharedAccess", host: str) -> AsyncIterator[tuple["Cluster", asyncio.Event]]:
    """Be a node until the context is left; the event is set if others have given it up."""
    from bullpen.cluster.database import in_sentences
    from bullpen.cluster.peers import open_peers
    from bullpen.web.nodes import Cluster

    async with AsyncExitStack() as stack:
        with in_sentences(access.url):
            peers = await stack.enter_async_context(open_peers(access, name=platform.node(), host=host))
        yield Cluster(peers, SharedDatabase(peers.store, peers.desk), host), peers.given_up
