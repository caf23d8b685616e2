"""The server that all tests with PostgreSQL in one process share."""

import atexit
import os
import uuid
from functools import cache

import psycopg
import pytest

from bullpen.store.postgres.store import PostgresStore
from bullpen.testing.postgres import PostgresServer, programs

EXISTING = os.environ.get("BULLPEN_TEST_POSTGRES", "")
"""The address of a server to use, with a user who may create schemas."""

needs_postgres = pytest.mark.skipif(
    not EXISTING and programs() is None, reason="there is no PostgreSQL: apt-get install postgresql"
)
needs_own_server = pytest.mark.skipif(
    programs() is None, reason="there is no PostgreSQL of our own to stop: apt-get install postgresql"
)


@cache
def shared() -> PostgresServer:
    server = PostgresServer()
    owner = os.getpid()
    # Not in children that tests fork.
    atexit.register(lambda: server.close() if os.getpid() == owner else None)
    return server


def new_schema() -> str:
    """Return the address of an empty schema of its own."""
    name = _new_name()
    with psycopg.connect(EXISTING or shared().url(), autocommit=True) as db:
        db.execute(f"CREATE SCHEMA {name}".encode())
    return _address(name)


def empty_tables() -> str:
    """Return the address of a schema with empty tables: those of the call before, under a new name, which is faster."""
    if not _used:
        address = new_schema()
        PostgresStore(address).close()
        _used.append(address.rpartition("%3D")[2])
        return address
    old, new = _used.pop(), _new_name()
    with psycopg.connect(EXISTING or shared().url(), autocommit=True) as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (old,)).fetchall()
        names = ", ".join(f"{old}.{table}" for (table,) in tables if table != "migrations")
        db.execute(f"TRUNCATE {names} RESTART IDENTITY".encode())
        # Locks have the name in them, so those of the test before do not matter.
        db.execute(f"ALTER SCHEMA {old} RENAME TO {new}".encode())
    _used.append(new)
    return _address(new)


_used: list[str] = []


def _new_name() -> str:
    return f"test_{uuid.uuid4().hex}"


def _address(schema: str) -> str:
    if not EXISTING:
        return shared().url(schema=schema)
    return f"{EXISTING}{'&' if '?' in EXISTING else '?'}options=-csearch_path%3D{schema}"
