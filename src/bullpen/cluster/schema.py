"""The tables of a cluster, made by the scripts in sql/, beside those of procrastinate at a version that we know."""

import re
from importlib import resources
from typing import Any, cast

import psycopg
from procrastinate.schema import SchemaManager
from psycopg import sql

from bullpen.errors import StoreReadOnly, StoreTooNew
from bullpen.store.postgres.address import read_address
from bullpen.store.postgres.connections import unreachable

SCHEMA = "bullpen_cluster"
_LOCK = 1651864945
"""Held while the tables are made, so that nodes that start together do not make them twice."""


def prepare(url: str) -> None:
    """Make the tables, or bring them up to date, or raise StoreError: a newer bullpen may have made them."""
    address = read_address(url)
    try:
        connection = psycopg.connect(**cast(dict[str, Any], address.parameters))
    except psycopg.Error as error:
        raise unreachable(address, error) from None
    try:
        with connection:
            _prepare(connection)
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreReadOnly(address.shown, f"cannot be used by a node: {str(error).splitlines()[0]}") from error


def _prepare(connection: "psycopg.Connection[tuple[Any, ...]]") -> None:
    scripts = _scripts()
    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    version = _version(connection)
    if version > len(scripts):
        raise StoreTooNew(f"the schema {SCHEMA} of this database", version, len(scripts))
    if version == 0:
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(SCHEMA)))
    connection.execute(sql.SQL("SET LOCAL search_path = {}").format(sql.Identifier(SCHEMA)))
    if version == 0:
        connection.execute(_of_procrastinate())
        connection.execute("CREATE TABLE version (number integer NOT NULL)")
        connection.execute("INSERT INTO version VALUES (0)")
    for number, script in enumerate(scripts[version:], start=version + 1):
        connection.execute(script.encode())
        connection.execute("UPDATE version SET number = %s", [number])


def _version(connection: psycopg.Connection) -> int:
    found = connection.execute("SELECT to_regclass(%s)", [f"{SCHEMA}.version"]).fetchone()
    if found is None or found[0] is None:
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
