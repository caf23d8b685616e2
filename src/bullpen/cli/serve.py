"""`bullpen serve`: conversations in the browser, on this machine."""

import argparse
import asyncio
import contextlib
import sys
from pathlib import Path

from bullpen.cli.database import add_database_option
from bullpen.cli.entrance import Entrance
from bullpen.cli.option_types import port
from bullpen.cli.serve_access import add_access_options, change_access, command_for_address
from bullpen.cli.signals import LEAVING, handling
from bullpen.cli.trust_question import ensure_trusted
from bullpen.config import wants_telemetry
from bullpen.database import database_path
from bullpen.errors import MissingExtra
from bullpen.exchange.files import write_private_file
from bullpen.exchange.formatting import Writable
from bullpen.team.file import LoadedTeam, load_team
from bullpen.text.safe import printable

TEAM_FILE = Path("team.toml")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", nargs="?", type=Path, help="the team file for new conversations (default: team.toml)")
    parser.add_argument(
        "--port", type=port, default=0, metavar="N", help="default: the one it had last, or any free port"
    )
    parser.add_argument("--host", default="127.0.0.1", help="an address of this machine (default: 127.0.0.1)")
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
    if (changed := change_access(options)) is not None:
        return changed
    team = _team(options)
    return asyncio.run(_serve(options, team))


def _team(options: argparse.Namespace) -> LoadedTeam | None:
    """Return the team for new conversations; without one, those that exist can still be looked at."""
    if options.file is None and not TEAM_FILE.exists():
        return None
    loaded = load_team(options.file or TEAM_FILE)
    ensure_trusted(loaded, trust=options.trust)
    return loaded


async def _serve(options: argparse.Namespace, team: LoadedTeam | None) -> int:
    from bullpen.web.address import listening
    from bullpen.web.credentials import Keys
    from bullpen.web.server import Tls, new_url, serving
    from bullpen.web.sessions import Sessions, sessions_beside

    stop = asyncio.Event()
    sessions = Sessions(sessions_beside(database_path(options.db)))
    keys = Keys(sessions=sessions)
    tls = Tls(certificate=options.tls_cert, key=options.tls_key) if options.tls_cert else None
    with (
        handling(dict.fromkeys(LEAVING, stop.set), is_leaving=stop.is_set),
        listening(options.host, options.port, tls=tls is not None, earlier=sessions.port) as (listener, place),
        Entrance() as entrance,
    ):
        sessions.remember_place(place.port, place.url)

        def show_address() -> None:
            print(f"  {printable(new_url(place, keys))}", flush=True)

        def entered(ticket: str) -> None:
            entrance.remove(ticket)
            # A log would keep the address for everybody who reads it.
            if sys.stdout.isatty():
                show_address()

        if options.token_file:
            _write_token(options.token_file, keys.token)
        if options.metrics_token_file:
            _write_token(options.metrics_token_file, keys.metrics_token)
        async with serving(listener, place, team=team, db=options.db, keys=keys, tls=tls, on_entry=entered):
            print(_greeting(team))
            show_address()
            print(f"For another address: {command_for_address(options.db)}", flush=True)
            if not options.no_open:
                await asyncio.to_thread(entrance.open, new_url(place, keys))
            await stop.wait()
            # The terminal may be what went away.
            with contextlib.suppress(OSError):
                print("\nClosing open conversations ...", flush=True)
    return 0


def _write_token(path: Path, token: str) -> None:
    def write(file: Writable) -> None:
        file.write(f"{token}\n")

    write_private_file(path, write, overwrite=True)


def _greeting(team: LoadedTeam | None) -> str:
    about = f"the team “{printable(team.team.name)}”" if team else "stored conversations only: there is no team file"
    return f"bullpen serves {about}. Each address lets one browser in, once, within 10 minutes. Ctrl-C stops it."
