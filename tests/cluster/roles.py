"""Roles of a cluster as in production: nodes own the tables and are no superusers, workers reach only functions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from msgspec import Struct
from psycopg import sql
from tests.cluster.databases import database

from bullpen.cluster.schema import prepare
from bullpen.store.postgres.store import PostgresStore

POOL = "gpu-box"


class Roles(Struct, frozen=True):
    """The address of one database, as these have it."""

    node: str
    worker: str
    superuser: str


@contextmanager
def two_roles() -> Iterator[Roles]:
    """Make a database that belongs to the role of nodes, with a role that serves a pool."""
    with database() as url:
        name = url.rpartition("_")[2]
        roles = f"node_{name}", f"worker_{name}"
        with psycopg.connect(url, autocommit=True) as connection:
            for role in roles:
                made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'x'").format(sql.Identifier(role))
                connection.execute(made)
            owned = sql.SQL("ALTER DATABASE {} OWNER TO {}")
            connection.execute(owned.format(sql.Identifier(url.rpartition("/")[2]), sql.Identifier(roles[0])))
        node, worker = (re.sub("//[^@]*@", f"//{role}:x@", url) for role in roles)
        try:
            PostgresStore(node).close()
            prepare(node)
            with psycopg.connect(node) as connection:
                connection.execute("SELECT bullpen_cluster.let_serve(%s, %s)", [roles[1], POOL])
            yield Roles(node, worker, url)
        finally:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY(%s)", [list(roles)]
                )
                for role in reversed(roles):
                    connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(role)))
                owned = sql.SQL("ALTER DATABASE {} OWNER TO CURRENT_USER")
                connection.execute(owned.format(sql.Identifier(url.rpartition("/")[2])))
                for role in reversed(roles):
                    connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))
