"""Who has access to what `bullpen serve` serves: another address, the list, and taking access away. In any terminal."""

import argparse
import shlex
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from bullpen.cli.typed_commands import to_type
from bullpen.database import database_path, shown_address
from bullpen.errors import BullpenError
from bullpen.terminal.tables import print_table
from bullpen.text.numbers import local_time
from bullpen.text.safe import printable

if TYPE_CHECKING:
    from bullpen.cluster.shared_access import SharedAccess
    from bullpen.web.credentials import Keys
    from bullpen.web.sessions import Session, Sessions, Ticket

CONNECT_SECONDS = 5.0
EVERYBODY = "all"
COLUMNS = ("id", "who", "role", "with", "since", "until")


def add_access_options(parser: argparse.ArgumentParser) -> None:
    """Describe the options that serve nothing."""
    parser.add_argument(
        "--new-address",
        action="store_true",
        help="print another address for the server that is running, for a browser of yours, and end",
    )
    parser.add_argument(
        "--people", action="store_true", help="list the browsers and programs that have access, and end"
    )
    parser.add_argument(
        "--revoke", metavar="ID", help="take the access of one of them away, or of all, and end; --people shows the ids"
    )


def change_access(options: argparse.Namespace, shared: "SharedAccess | None" = None) -> int | None:
    """Do what the options ask, here or in a cluster; None: they ask for nothing, so serve."""
    from bullpen.web.credentials import Keys
    from bullpen.web.session_file import sessions_beside
    from bullpen.web.sessions import Sessions

    sessions = Sessions(sessions_beside(database_path(options.db)) if shared is None else shared)
    keys = Keys(sessions=sessions)
    if options.new_address:
        url = _url_here(sessions) if shared is None else _url_of_a_node(shared.urls())
        ticket = keys.new_ticket()
        keys.ensure_stored()
        print(f"  {printable(url)}/enter/{ticket}")
    elif options.revoke is not None:
        _revoke(keys, options.revoke)
    elif options.people:
        _print_people(keys)
    else:
        return None
    return 0


def command_for_address(options: argparse.Namespace) -> str:
    """Return what a person types for another address."""
    # The variable is there again; a password must not be shown.
    cluster = f" --cluster {shlex.quote(shown_address(options.cluster))}" if options.cluster else ""
    return to_type(f"serve --new-address{cluster}", options.db)


def _revoke(keys: "Keys", given: str) -> None:
    if given != EVERYBODY:
        keys.revoke(given)
    for one in keys.revoke_all() if given == EVERYBODY else [given]:
        print(f"Revoked: {printable(one)}")


def _url_here(sessions: "Sessions") -> str:
    """Return the address of the server on this machine. That of a proxy may not be reachable from here."""
    if sessions.url and (_answers(sessions.url) or _answers(f"http://127.0.0.1:{sessions.port}")):
        return sessions.url
    raise BullpenError("No server is running with this database. Start one with: bullpen serve")


def _url_of_a_node(urls: Sequence[str]) -> str:
    """Return the address of a node, if possible one that can be reached from here."""
    if not urls:
        raise BullpenError("No node of this cluster is running. Start one with: bullpen serve --cluster")
    return next(filter(_answers, urls), urls[0])


def _answers(url: str) -> bool:
    from bullpen.web.address import DEFAULT_PORTS

    place = urlsplit(url)
    address = place.hostname or "", place.port or DEFAULT_PORTS.get(place.scheme, 0)
    try:
        with socket.create_connection(address, CONNECT_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def _print_people(keys: "Keys") -> None:
    signed_in = [
        _row(key, one, "a program" if one.kind == "token" else one.browser or "a browser")
        for key, one in keys.sessions().items()
    ]
    unused = [_row(key, one, "an address that is not used yet") for key, one in keys.tickets().items()]
    if signed_in or unused:
        print_table(COLUMNS, [*signed_in, *unused])
    else:
        print("No browser is signed in, and no program has a token of its own.")


def _row(key: str, one: "Session | Ticket", with_what: str) -> list[str]:
    who = one.person or ("guest" if one.identity.role == "viewer" else "owner")
    since, until = local_time(one.began_at * 1000), local_time(int(one.ends_at * 1000))
    return [key, who, one.identity.role, with_what, since, until]
