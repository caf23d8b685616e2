"""The option --cluster: the address of the PostgreSQL server that nodes and workers meet on."""

import argparse
import os

from bullpen.cli.database import SERVERS
from bullpen.errors import MissingExtra, WrongUsage

VARIABLE = "BULLPEN_CLUSTER"


def add_cluster_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add --cluster: the address as text."""
    parser.add_argument("--cluster", metavar="ADDRESS", help=f"{purpose}; without a password (PGPASSWORD, ~/.pgpass)")


def cluster_address(given: str | None) -> str | None:
    """Return the address that was given, or the one in the environment; None if there is neither."""
    address = given or os.environ.get(VARIABLE)
    # Not shown, since a password may be in it.
    if address and not address.startswith(SERVERS):
        raise WrongUsage(f"The address in --cluster or {VARIABLE} must begin with postgresql://, and does not.")
    return address or None


def need_cluster() -> None:
    """Raise MissingExtra if what many machines need is not installed."""
    try:
        import bullpen.cluster.worker  # noqa: F401 (only to see whether it is there)
    except ImportError as error:
        # Without a name: psycopg is there, and the library that it needs is not.
        raise MissingExtra("cluster", error.name or "psycopg with libpq") from None
