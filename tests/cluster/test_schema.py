"""The tables are made once by those who start together, and those of an older bullpen are brought up to date."""

import asyncio
from collections.abc import Iterator
from functools import partial

import psycopg
import pytest
from tests.cluster.databases import database

from bullpen.cluster import schema
from bullpen.cluster.schema import newest, prepare

WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND NOT granted"


@pytest.fixture
def empty() -> Iterator[str]:
    with database() as made:
        yield made


def version(url: str) -> int:
    with psycopg.connect(url) as connection:
        ((number,),) = connection.execute("SELECT number FROM bullpen_cluster.version").fetchall()
    return int(number)


async def test_those_who_start_together_on_an_empty_database_wait_for_each_other(empty: str) -> None:
    with psycopg.connect(empty, autocommit=True) as first:
        first.execute("SELECT pg_advisory_lock(%s)", [schema._LOCK])
        others = [asyncio.create_task(asyncio.to_thread(prepare, empty)) for _ in range(4)]
        # All of them have found that there are no tables, and one makes them while the others wait.
        while first.execute(WAITING, [schema._LOCK]).fetchone() != (4,):
            await asyncio.sleep(0.01)
        first.execute("SELECT pg_advisory_unlock(%s)", [schema._LOCK])
        await asyncio.gather(*others)
    assert version(empty) == newest()


async def test_nobody_waits_where_nothing_is_to_be_made(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as frozen:
        frozen.execute("SELECT pg_advisory_lock(%s)", [schema._LOCK])
        await asyncio.to_thread(prepare, url)


def test_tables_of_an_older_bullpen_are_brought_up_to_date(empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = schema._scripts()
    for number in range(1, len(scripts) + 1):
        with monkeypatch.context() as older:
            older.setattr(schema, "_scripts", partial(list, scripts[:number]))
            prepare(empty)
        assert version(empty) == number
        with psycopg.connect(empty) as connection:
            connection.execute("SELECT bullpen_cluster.join_cluster('node', 'n', '', '{}', '')")
    prepare(empty)
    with psycopg.connect(empty) as connection:
        connection.execute("SET LOCAL search_path = bullpen_cluster")
        assert connection.execute("SELECT reap(2, '1 hour', '1 hour', '0')").fetchall() == []
