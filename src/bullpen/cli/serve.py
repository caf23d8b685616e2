"""`bullpen serve`: conversations in the browser, on this machine."""

import argparse
import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from bullpen.cli.database import add_database_option
from bullpen.cli.entrance import Entrance
from bullpen.cli.option_types import port, public_address
from bullpen.cli.serve_access import add_access_options, change_access, command_for_address
from bullpen.cli.serve_cluster import add_cluster_options, cluster_to_serve, joined_cluster, open_access
from bullpen.cli.signals import LEAVING, handling
from bullpen.cli.trust_question import ensure_trusted
from bullpen.config import wants_telemetry
from bullpen.database import database_path
from bullpen.errors import MissingExtra, NeedsCluster
from bullpen.exchange.files import write_private_file
from bullpen.exchange.formatting import Writable
from bullpen.team.file import LoadedTeam, load_team
from bullpen.text.safe import printable

if TYPE_CHECKING:
    import socket

    from bullpen.cluster.shared_access import SharedAccess
    from bullpen.web.address import Place
    from bullpen.web.credentials import Keys
    from bullpen.web.nodes import Cluster
    from bullpen.web.sessions import Sessions

logger = logging.getLogger(__name__)

TEAM_FILE = Path("team.toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", nargs="?", type=Path, help="the team file for new conversations (default: team.toml)")
    parser.add_argument(
        "--port", type=port, default=0, metavar="N", help="default: the one it had last, or any free port"
    )
    parser.add_argument("--host", default="127.0.0.1", help="an address of this machine (default: 127.0.0.1)")
    parser.add_argument(
        "--public",
        type=public_address,
        metavar="ADDRESS",
        help="the address that people open, if a proxy is in front of this server: https://bullpen.example",
    )
    add_database_option(parser)
    parser.add_argument("--trust", action="store_true", help="run the team file without asking whether you trust it")
    parser.add_argument(
        "--tls-cert", type=Path, metavar="FILE", help="a certificate, needed for any address but loopback"
    )
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="the key of that certificate")
    parser.add_argument(
        "--token-file", type=Path, metavar="FILE", help="write the token for programs to a private file"
    )
    parser.add_argument(
        "--metrics-token-file",
        type=Path,
        metavar="FILE",
        help="write a token that reads only /metrics to a private file, for Prometheus; needs BULLPEN_TELEMETRY=1",
    )
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    add_cluster_options(parser)
    add_access_options(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until somebody stops it."""
    if bool(options.tls_cert) != bool(options.tls_key):
        print("bullpen: --tls-cert and --tls-key go together.", file=sys.stderr)
        return 2
    if options.metrics_token_file and not wants_telemetry():
        print("bullpen: --metrics-token-file needs BULLPEN_TELEMETRY=1: metrics are off.", file=sys.stderr)
        return 2
    try:
        import bullpen.web.server  # noqa: F401 (only to see whether it is there)
    except ModuleNotFoundError as error:
        raise MissingExtra("web", error.name or "") from error
    url = cluster_to_serve(options)
    access = open_access(url) if url else None
    if (changed := change_access(options, access)) is not None:
        return changed
    team = _team(options, is_node=access is not None)
    return asyncio.run(_serve(options, team, access))


def _team(options: argparse.Namespace, *, is_node: bool) -> LoadedTeam | None:
    """Return the team for new conversations; without one, those that exist can still be looked at."""
    if options.file is None and not TEAM_FILE.exists():
        return None
    loaded = load_team(options.file or TEAM_FILE)
    in_pools = [agent for agent in loaded.team.agents if agent.pool]
    if in_pools and not is_node:
        raise NeedsCluster(in_pools[0].name, in_pools[0].pool)
    # Of a team whose agents are all in pools nothing runs here: each worker's own file decides what runs there.
    if len(in_pools) < len(loaded.team.agents) or loaded.team.checks:
        ensure_trusted(loaded, trust=options.trust)
    return loaded


async def _serve(options: argparse.Namespace, team: LoadedTeam | None, access: "SharedAccess | None") -> int:
    from bullpen.web.credentials import Keys
    from bullpen.web.session_file import sessions_beside
    from bullpen.web.sessions import Sessions

    stop = asyncio.Event()
    sessions = Sessions(sessions_beside(database_path(options.db)) if access is None else access)
    keys = Keys(sessions=sessions)
    if options.token_file:
        _write_token(options.token_file, keys.token)
    if options.metrics_token_file:
        _write_token(options.metrics_token_file, keys.metrics_token)
    with handling(dict.fromkeys(LEAVING, stop.set), is_leaving=stop.is_set), Entrance() as entrance:
        desk = _Desk(options, team, keys, entrance)
        if access is None:
            await desk.serve(sessions, stop)
        else:
            await desk.serve_as_node(access, stop)
    return 0


class _Desk:
    """Serves once, or again and again as a node that was given up and comes back."""

    def __init__(self, options: argparse.Namespace, team: LoadedTeam | None, keys: "Keys", entrance: Entrance) -> None:
        self._options = options
        self._team = team
        self._keys = keys
        self._entrance = entrance
        self._is_first = True

    async def serve(self, sessions: "Sessions", stop: asyncio.Event) -> None:
        """Serve the conversations of this machine until somebody stops it."""
        with self._listening(sessions.port) as (listener, found):
            place = replace(found, public=self._options.public or "")
            sessions.remember_place(place.port, place.url)
            async with self._serving(listener, place, None):
                await stop.wait()
                _say_that_it_closes()

    async def serve_as_node(self, access: "SharedAccess", stop: asyncio.Event) -> None:
        """Serve the conversations of a cluster until somebody stops it."""
        port = 0
        while not stop.is_set():
            with self._listening(port) as (listener, found):
                place = replace(found, cluster=access.cluster, public=self._options.public or "")
                port = found.port
                async with (
                    joined_cluster(access, self._options.node_host) as (cluster, given_up),
                    self._serving(listener, place, cluster),
                ):
                    await _first_of(stop, given_up)
                    if stop.is_set():
                        _say_that_it_closes()
                    else:
                        logger.warning("Other nodes took this one for dead, so it begins again.")

    def _listening(self, earlier: int) -> AbstractContextManager["tuple[socket.socket, Place]"]:
        from bullpen.web.address import listening

        return listening(self._options.host, self._options.port, tls=bool(self._options.tls_cert), earlier=earlier)

    @asynccontextmanager
    async def _serving(
        self, listener: "socket.socket", place: "Place", cluster: "Cluster | None"
    ) -> AsyncIterator[None]:
        from bullpen.web.server import Tls, new_url, serving

        options, keys, entrance = self._options, self._keys, self._entrance

        def show_address() -> None:
            print(f"  {printable(new_url(place, keys))}", flush=True)

        def entered(ticket: str) -> None:
            entrance.remove(ticket)
            if _is_seen_by_a_person():
                show_address()

        tls = Tls(certificate=options.tls_cert, key=options.tls_key) if options.tls_cert else None
        async with serving(
            *(listener, place), team=self._team, db=options.db, keys=keys, tls=tls, on_entry=entered, cluster=cluster
        ):
            if self._is_first:
                self._is_first = False
                print(_greeting(self._team))
                show_address()
                print(f"For another address: {command_for_address(options)}", flush=True)
                if not options.no_open:
                    await asyncio.to_thread(entrance.open, new_url(place, keys))
            yield


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def _is_seen_by_a_person() -> bool:
    """Return whether another address may be printed: a log would keep it for everybody who reads the log."""
    return sys.stdout.isatty()


def _say_that_it_closes() -> None:
    # The terminal may be what went away.
    with contextlib.suppress(OSError):
        print("\nClosing open conversations ...", flush=True)


def _write_token(path: Path, token: str) -> None:
    def write(file: Writable) -> None:
        file.write(f"{token}\n")

    write_private_file(path, write, overwrite=True)


def _greeting(team: LoadedTeam | None) -> str:
    about = f"the team “{printable(team.team.name)}”" if team else "stored conversations only: there is no team file"
    return f"bullpen serves {about}. Each address lets one browser in, once, within 10 minutes. Ctrl-C stops it."
