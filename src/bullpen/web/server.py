"""Serving: connects the store, the hub, the keys and uvicorn."""

import asyncio
import ctypes
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from msgspec import Struct

from bullpen.app import NO_EXTRAS, open_store
from bullpen.conversation.member_agent import Extra
from bullpen.database import SharedDatabase, database_path
from bullpen.team.file import LoadedTeam
from bullpen.web.address import Place
from bullpen.web.app import create_app
from bullpen.web.conversations import Hub
from bullpen.web.credentials import Keys
from bullpen.web.guard import Guard
from bullpen.web.sessions import Sessions, sessions_beside

SHUTDOWN_SECONDS = 5
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
    on_entry: Callable[[], None] = lambda: None,
    extra: Mapping[str, Extra] = NO_EXTRAS,
) -> AsyncIterator[Served]:
    """Serve in the background until the context is left; then close everything and cancel running turns."""
    _give_back_large_blocks()
    keys = keys or Keys(sessions=Sessions(sessions_beside(database_path(db))))
    async with open_store(db) as (store, thread):
        hub = Hub(SharedDatabase(store, thread), team=team, extra=extra)
        server = _server(create_app(hub, keys, place, on_entry), tls)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            while not server.started and not running.done():
                await asyncio.sleep(0.01)
            if running.done():
                # It could not start: the certificate may be unreadable, for example.
                running.result()
            yield Served(hub=hub, keys=keys, place=place)
        finally:
            # Closing the conversations ends their streams, and only then can the server stop.
            await hub.close()
            server.should_exit = True
            await running


def _give_back_large_blocks() -> None:
    """Return the memory of a large text to the system when it is freed: a server runs for days.

    The GNU C library otherwise keeps it, and with it 35 MB after a reply of 6 MB.
    """
    if tune := getattr(ctypes.CDLL(None), "mallopt", None):
        tune(_M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)


def _server(app: Guard, tls: Tls | None) -> "Server":
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        ssl_certfile=None if tls is None else str(tls.certificate),
        ssl_keyfile=None if tls is None else str(tls.key),
    )
    return Server(config)


class Server(uvicorn.Server):
    """A server that leaves signals to its caller, which must end the streams before the server can stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signals."""
        yield
