"""Serving: connects the store, the hub, the keys and uvicorn."""

import asyncio
import ctypes
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

import uvicorn
from msgspec import Struct
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from bullpen.app import NO_EXTRAS, open_store, open_telemetry
from bullpen.conversation.member_agent import Extra
from bullpen.database import SharedDatabase, database_path
from bullpen.team.file import LoadedTeam
from bullpen.web.accepting import Acceptor
from bullpen.web.address import Place
from bullpen.web.app import app_for_nodes, create_app
from bullpen.web.attending import attending
from bullpen.web.connections import Connection, Connections, most_connections
from bullpen.web.continuing import continuing
from bullpen.web.conversations import Hub
from bullpen.web.credentials import Keys, new_secret
from bullpen.web.nodes import Cluster
from bullpen.web.passing import Kept
from bullpen.web.session_file import sessions_beside
from bullpen.web.sessions import Sessions

SHUTDOWN_SECONDS = 5
IDLE_SECONDS = 5
"""How long a connection is kept for another request."""
LARGE_BLOCK_BYTES = 1024 * 1024
# From malloc.h of the GNU C library.
_M_MMAP_THRESHOLD = -3


class Tls(Struct, frozen=True, kw_only=True):
    """A certificate and its key."""

    certificate: Path
    key: Path


class Served(Struct, frozen=True, kw_only=True):
    """A running server."""

    hub: Hub
    keys: Keys
    place: Place


def new_url(place: Place, keys: Keys) -> str:
    """Return an address for the owner that gives access to one browser, once."""
    return f"{place.url}/enter/{keys.new_ticket()}"


@asynccontextmanager
async def serving(
    listener: socket.socket,
    place: Place,
    *,
    team: LoadedTeam | None = None,
    db: Path | None = None,
    keys: Keys | None = None,
    tls: Tls | None = None,
    on_entry: Callable[[str], None] = lambda _: None,
    extra: Mapping[str, Extra] = NO_EXTRAS,
    cluster: Cluster | None = None,
) -> AsyncIterator[Served]:
    """Serve in the background until the context is left; then close everything and cancel running turns.

    As a node of a cluster, `db` does not matter, and what runs on workers continues.
    """
    _give_back_large_blocks()
    keys = keys or Keys(sessions=Sessions(sessions_beside(database_path(db))))
    async with open_telemetry() as telemetry, _shared(db, cluster) as shared:
        nodes = None if cluster is None else cluster.nodes
        hub = Hub(shared, team=team, extra=extra, telemetry=telemetry, nodes=nodes)
        async with AsyncExitStack() as stack:
            kept = Kept()
            stack.callback(kept.close)
            app = create_app(hub, keys, place, on_entry, nodes, kept)
            await stack.enter_async_context(_running(_server(app, tls), listener))
            if cluster is not None:
                await stack.enter_async_context(_arriving(hub, keys, place, cluster))
            # Closing the conversations ends their streams, and only then can a server stop.
            stack.push_async_callback(hub.close)
            if nodes is not None:
                await stack.enter_async_context(continuing(hub, nodes))
                await stack.enter_async_context(attending(hub.everywhere, nodes))
            yield Served(hub=hub, keys=keys, place=place)


@asynccontextmanager
async def _shared(db: Path | None, cluster: Cluster | None) -> AsyncIterator[SharedDatabase]:
    if cluster is not None:
        yield cluster.shared
        return
    async with open_store(db) as (store, thread):
        yield SharedDatabase(store, thread)


@asynccontextmanager
async def _running(server: "Server", listener: socket.socket) -> AsyncIterator[None]:
    """Let a server run until the context is left."""
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started and not running.done():
            await asyncio.sleep(0.01)
        if running.done():
            # It could not start: the certificate may be unreadable, for example.
            running.result()
        yield
    finally:
        server.should_exit = True
        await running


@asynccontextmanager
async def _arriving(hub: Hub, keys: Keys, place: Place, cluster: Cluster) -> AsyncIterator[None]:
    """Answer what other nodes pass on."""
    secret = new_secret()
    found = socket.getaddrinfo(cluster.host, 0, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)[0]
    # With IPPROTO_TCP, since asyncio sends small pieces at once only on explicit TCP sockets.
    with socket.socket(*found[:3]) as listener:
        listener.bind(found[4])
        address = f"{cluster.host}:{listener.getsockname()[1]}"
        async with _running(_server(app_for_nodes(hub, keys, place, secret), None), listener):
            await cluster.nodes.welcome(address, secret, place.url)
            yield


def _give_back_large_blocks() -> None:
    """Return the memory of a large text to the system when it is freed: a server runs for days.

    The GNU C library otherwise keeps it, and with it 35 MB after a reply of 6 MB.
    """
    if tune := getattr(ctypes.CDLL(None), "mallopt", None):
        tune(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def _server(app: ASGIApp, tls: Tls | None) -> "Server":
    config = uvicorn.Config(
        _quiet_about_departures(app),
        lifespan="off",
        log_config=None,
        # A stranger could fill the log with warnings about their own requests.
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_certfile=None if tls is None else str(tls.certificate),
        ssl_keyfile=None if tls is None else str(tls.key),
    )
    return Server(config)


def _quiet_about_departures(app: ASGIApp) -> ASGIApp:
    """Return an application that takes somebody's leaving before all was sent for what it is, and not for a bug."""

    async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(ClientDisconnect):
            await app(scope, receive, send)

    return quiet


class Server(uvicorn.Server):
    """A server that limits its connections, and leaves signals to its caller, which must end the streams first."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections in our own way."""
        await super().startup(sockets=[])
        connections = Connections(most_connections())
        self._acceptors = [self._acceptor(listener, connections) for listener in sockets or ()]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and wait for those that are there."""
        for acceptor in self._acceptors:
            acceptor.close()
        await super().shutdown(sockets)
        for acceptor in self._acceptors:
            await acceptor.wait_closed()

    def _acceptor(self, listener: socket.socket, connections: Connections) -> Acceptor:
        listener.listen(self.config.backlog)
        return Acceptor(listener, connections, self._new_connection, self.config.ssl)

    def _new_connection(self) -> Connection:
        return Connection(self.config, self.server_state, self.lifespan.state)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signals."""
        yield
