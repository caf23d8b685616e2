"""The tables of a cluster, made by the scripts in sql/, beside those of procrastinate at a version that we know."""

import re
from importlib import resources
from typing import Any, cast

import psycopg
from procrastinate.schema import SchemaManager
from psycopg import sql

from bullpen.errors import CannotJoin, StoreTooNew
from bullpen.store.postgres.address import Address, read_address
from bullpen.store.postgres.connections import store_error, unreachable

SCHEMA = "bullpen_cluster"
_LOCK = 1651864945
"""Held while the tables are made, so that nodes that start together do not make them twice."""
_HAS_VERSION = """
SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE relname = 'version' AND nspname = %s
"""
_LOCK_SECONDS = 60
"""How long to wait for it."""
_FROZEN_SECONDS = 10
"""After which the server ends who holds it and is frozen."""


def prepare(url: str) -> None:
    """Make the tables, or bring them up to date; StoreError or CannotJoin is raised if that cannot be done."""
    address = read_address(url)
    try:
        connection = psycopg.connect(**cast(dict[str, Any], address.parameters))
    except psycopg.Error as error:
        raise unreachable(address, error) from None
    role = connection.info.user
    try:
        with connection:
            ensure_writable(connection, address)
            ensure_known(version := _version(connection), address)
            # What is known of the catalogue in this transaction is not renewed when another one makes the tables.
            connection.commit()
            if version < newest():
                # Nobody waits for the lock where nothing is to be made: somebody frozen may hold it.
                _prepare(connection, address)
    except psycopg.errors.InsufficientPrivilege as error:
        raise CannotJoin(
            f"The role {role} may not be a node on {address.shown}: {str(error).splitlines()[0]}. "
            "Use the role that owns the database (docs/operating.md)."
        ) from error
    except psycopg.Error as error:
        raise store_error(address, error) from error


def ensure_writable(connection: "psycopg.Connection[tuple[Any, ...]]", address: Address) -> None:
    """Raise CannotJoin for a server or a database in which nothing can be stored."""
    query = "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on'"
    row = connection.execute(query).fetchone()
    is_replica, is_read_only = row or (False, False)
    if is_replica:
        raise CannotJoin(f"{address.shown} is a replica, which cannot be written to. Use the address of the primary.")
    if is_read_only:
        raise CannotJoin(
            f"{address.shown} is read-only: default_transaction_read_only is on for this server, database or role. "
            "Turn it off, or use another database."
        )


def ensure_known(version: int, address: Address) -> None:
    """Raise StoreTooNew if a newer bullpen made the tables."""
    if version > newest():
        raise StoreTooNew(f"The schema {SCHEMA} in {address.shown}", version, newest())


def newest() -> int:
    """Return the newest format of the tables that is known here."""
    return len(_scripts())


def _prepare(connection: "psycopg.Connection[tuple[Any, ...]]", address: Address) -> None:
    settings = {"lock_timeout": _LOCK_SECONDS, "idle_in_transaction_session_timeout": _FROZEN_SECONDS}
    for setting, seconds in settings.items():
        connection.execute("SELECT set_config(%s, %s, true)", [setting, f"{seconds}s"])
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    version = _version(connection)
    ensure_known(version, address)
    if version == 0:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(SCHEMA)))
    if version == 0:
        connection.execute(_of_procrastinate())
        connection.execute("CREATE TABLE version (number integer NOT NULL)")
        connection.execute("INSERT INTO version VALUES (0)")
    for number, script in enumerate(_scripts()[version:], start=version + 1):
        connection.execute(script.encode())
        connection.execute("UPDATE version SET number = %s", [number])


def _version(connection: psycopg.Connection) -> int:
    # Not to_regclass, which may remember that there was none before the lock was waited for.
    if connection.execute(_HAS_VERSION, [SCHEMA]).fetchone() is None:
        return 0
    row = connection.execute(sql.SQL("SELECT number FROM {}.version").format(sql.Identifier(SCHEMA))).fetchone()
    return 0 if row is None else int(row[0])


def _scripts() -> list[str]:
    folder = resources.files("bullpen.cluster") / "sql"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [file.read_text(encoding="utf-8") for file in files]


def _of_procrastinate() -> bytes:
    """Return the script of procrastinate, without the language that every server has."""
    return re.sub(r"DO \$\$.*?\$\$;", "", SchemaManager.get_schema(), count=1, flags=re.DOTALL).encode()
