"""Joining a cluster: what keeps a process from it, said in sentences: what passes by itself, and what does not."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from bullpen.cluster.schema import SCHEMA
from bullpen.errors import CannotJoin
from bullpen.store.postgres.address import Address, read_address
from bullpen.store.postgres.connections import unreachable

CONNECT_SECONDS = 5
NOT_YET = "the database system is"
"""How the refusals of a server begin that starts, stops or recovers."""
LOOK = """
SELECT session_user, to_regnamespace(%(schema)s) IS NOT NULL, pg_is_in_recovery(),
    coalesce(has_schema_privilege(to_regnamespace(%(schema)s)::oid, 'USAGE'), false)
"""


def obstacle(url: str) -> str | None:
    """Return what keeps a worker from joining for now, as a sentence; CannotJoin is raised if waiting does not help."""
    address = read_address(url)
    try:
        with psycopg.connect(url, connect_timeout=CONNECT_SECONDS, autocommit=True) as connection:
            row = connection.execute(LOOK, {"schema": SCHEMA}).fetchone()
    except psycopg.Error as error:
        return _away(address, error)
    if row is None:
        return f"{address.shown} does not answer."
    role, has_tables, is_replica, may_use = row
    if is_replica:
        raise CannotJoin(f"{address.shown} is a replica, which cannot be written to. Use the address of the primary.")
    if not has_tables:
        return f"{address.shown} has no tables of a cluster yet. The first node makes them: bullpen serve --cluster."
    if not may_use:
        raise CannotJoin(f"The role {role} may not serve any pool. {_advice(role, 'POOL')}")
    return None


def _away(address: Address, error: psycopg.Error) -> str:
    away = unreachable(address, error)
    if away.has_answered and not away.reason.startswith(NOT_YET):
        raise CannotJoin(str(away)) from None
    return str(away)


@contextmanager
def refusals() -> Iterator[None]:
    """Turn what the functions of the cluster refuse into a sentence for people."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        said = (error.diag.message_primary or str(error)).strip()
        said = said[:1].upper() + said[1:]
        raise CannotJoin(f"{said}. {_advice('ROLE', 'POOL')}") from None
    except (errors.UndefinedFunction, errors.UndefinedTable) as error:
        raise CannotJoin(
            "The tables of this cluster are of another version of bullpen "
            f"({str(error).strip().splitlines()[0]}). Update nodes first, then workers."
        ) from None


def _advice(role: str, pool: str) -> str:
    return f"Somebody who owns the tables can let it: SELECT {SCHEMA}.let_serve('{role}', '{pool}')"
