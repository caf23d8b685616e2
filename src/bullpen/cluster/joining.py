"""Joining a cluster: what keeps a process from it, said in sentences: what passes by itself, and what does not."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import errors

from bullpen.cluster.database import Database, connect, in_sentences
from bullpen.cluster.schema import SCHEMA, ensure_known, ensure_writable, newest
from bullpen.errors import CannotJoin, StoreUnreachable
from bullpen.store.postgres.address import Address, read_address

NOT_YET = ("the database system is", "sorry, too many clients", "remaining connection slots", "too many connections")
"""How the refusals of a server begin that starts, stops, recovers or has no room now."""
LOOK = """
SELECT session_user, to_regnamespace(%(schema)s) IS NOT NULL,
    coalesce(has_schema_privilege(to_regnamespace(%(schema)s)::oid, 'USAGE'), false)
"""
TAKEN = (
    "Another worker is called {}, too, and serves {}, so what belongs to its files and sessions could come here. Give "
    "this one a name of its own in its file, or stop the other one."
)
VERSION = f"SELECT {SCHEMA}.made_by_version()"


def obstacle(url: str) -> str | None:
    """Return what keeps a worker from joining for now, as a sentence; CannotJoin is raised if waiting does not help."""
    address = read_address(url)
    try:
        with in_sentences(url), connect(url) as connection:
            return _obstacle(connection, address)
    except StoreUnreachable as away:
        if away.has_answered and not away.reason.startswith(NOT_YET):
            raise CannotJoin(str(away)) from None
        return str(away)


def _obstacle(connection: "psycopg.Connection[tuple[Any, ...]]", address: Address) -> str | None:
    ensure_writable(connection, address)
    ((role, has_tables, may_use),) = connection.execute(LOOK, {"schema": SCHEMA}).fetchall()
    if not has_tables:
        return f"{address.shown} has no tables of a cluster yet. The first node makes them: bullpen serve --cluster."
    if not may_use:
        raise CannotJoin(f"The role {role} may not serve any pool. {_advice(role, 'POOL')}")
    with refusals():
        ((version,),) = connection.execute(VERSION).fetchall()
    ensure_known(version, address)
    if version < newest():
        return f"{address.shown} has tables of an older bullpen. The first node that is updated brings them up to date."
    return None


async def namesake(database: Database, name: str, pools: Sequence[str]) -> str:
    """Return that another worker has the name of one, as a sentence; empty: none has. CannotJoin is raised as above."""
    with refusals():
        ((is_taken,),) = await database.do("SELECT is_taken(%s, %s::text[])", name, list(pools))
    return TAKEN.format(name, " or ".join(pools)) if is_taken else ""


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the functions of the cluster refuse into a sentence for people."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        said = (error.diag.message_primary or str(error)).strip()
        said = said[:1].upper() + said[1:]
        raise CannotJoin(f"{said}. {error.diag.message_hint or _advice('ROLE', 'POOL')}") from None
    except (errors.UndefinedFunction, errors.UndefinedTable) as error:
        raise CannotJoin(
            "The tables of this cluster are of another version of bullpen "
            f"({str(error).strip().splitlines()[0]}). Update nodes first, then workers."
        ) from None


def _advice(role: str, pool: str) -> str:
    return f"Somebody who owns the tables can let it: SELECT {SCHEMA}.let_serve('{role}', '{pool}')"
