"""Databases of their own: notifications and locks are seen in all of one."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from tests.store.postgres.server import EXISTING, shared

from bullpen.testing.postgres import programs

NONE = "NO POSTGRESQL, so nothing of the cluster is tested: try apt-get install postgresql"


@contextmanager
def database(template: str = "template0") -> Iterator[str]:
    """Make a new database on the server, as a copy of another, and remove it at the end."""
    if not EXISTING and programs() is None:
        pytest.skip(NONE)
    server = EXISTING or shared().url()
    name = f"test_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        made = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
        connection.execute(made)
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
