"""The tables of a cluster, made by the scripts in sql/, beside those of procrastinate at a version that we know."""

import re
from importlib import resources

import psycopg
from procrastinate.schema import SchemaManager
from psycopg import sql

from bullpen.errors import StoreTooNew

SCHEMA = "bullpen_cluster"
_LOCK = 1651864945
"""Held while the tables are made, so that nodes that start together do not make them twice."""


def prepare(url: str) -> None:
    """Make the tables, or bring them up to date. StoreTooNew is raised if a newer bullpen made them."""
    scripts = _scripts()
    with psycopg.connect(url) as connection:
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
