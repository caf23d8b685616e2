"""A server that is away, or is not the primary yet, is waited for, and noticed soon after it is back."""

import asyncio
import signal

import psycopg
import pytest
from psycopg import sql

from bullpen.cluster import database as module
from bullpen.cluster.database import Database
from bullpen.testing.postgres import PostgresServer

ATTEMPTS = 12
"""So many that the pauses of a pool between them, of which each is longer, would not end in a test."""


async def test_a_server_that_is_back_is_used(own_server: PostgresServer) -> None:
    away = asyncio.Event()
    async with Database(own_server.url(), on_away=lambda is_away: away.set() if is_away else None) as database:
        await database.do("SELECT 1")
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        asking = asyncio.create_task(database.do("SELECT 2"))
        await away.wait()
        await asyncio.to_thread(own_server.start)

        assert await asking == [(2,)]


async def test_a_server_that_is_away_is_tried_again_and_again_without_longer_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others would give this process up in a long pause after the server is back."""
    monkeypatch.setattr(module, "AWAY_SECONDS", 0.05)
    attempts = asyncio.Semaphore(0)

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        attempts.release()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Database(f"postgresql://kai@127.0.0.1:{port}/nothing") as database:
            asking = asyncio.create_task(database.do("SELECT 1"))
            for _ in range(ATTEMPTS):
                await attempts.acquire()
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)


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
            while not told:
                await asyncio.sleep(0.01)
            assert not asking.done()
            connection.execute(read_only.format(name, sql.SQL("off")))
            connection.execute(f"{others} AND pid <> pg_backend_pid()".encode())

        assert len(await asking) == 1
        assert told[0]
        assert not told[-1]
