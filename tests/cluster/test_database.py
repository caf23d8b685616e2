"""A server that is away, or is not the primary yet, is waited for, and noticed soon after it is back."""

import asyncio
import signal
import time

import psycopg
from psycopg import sql

from bullpen.cluster.database import Database
from bullpen.cluster.membership import STALE_SECONDS
from bullpen.testing.postgres import PostgresServer

AWAY_SECONDS = 8.0
"""So long that the pauses of a pool between its attempts would be longer than anybody is waited for."""


async def test_a_server_that_is_back_is_used_before_others_give_this_process_up(own_server: PostgresServer) -> None:
    async with Database(own_server.url()) as database:
        await database.do("SELECT 1")
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        asking = asyncio.create_task(database.do("SELECT 2"))
        await asyncio.sleep(AWAY_SECONDS)
        await asyncio.to_thread(own_server.start)
        began = time.monotonic()

        assert await asking == [(2,)]
        assert time.monotonic() - began < STALE_SECONDS


async def test_a_server_that_cannot_be_written_to_yet_is_waited_for(url: str) -> None:
    """After a failover, the new primary is a replica for a moment."""
    name = sql.Identifier(url.rpartition("/")[2])
    read_only = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
    told: list[bool] = []
    async with Database(url, on_away=told.append) as database:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(read_only.format(name, sql.SQL("on")))
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            connection.execute(f"{others} AND pid <> pg_backend_pid()".encode())
            asking = asyncio.create_task(database.do("SELECT join_cluster('worker', 'w', '', '{}', '')"))
            await asyncio.sleep(1)
            assert not asking.done()
            connection.execute(read_only.format(name, sql.SQL("off")))
            connection.execute(f"{others} AND pid <> pg_backend_pid()".encode())

        assert len(await asking) == 1
        assert told[0]
        assert not told[-1]
