from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="the extra bullpen-chat[cluster] is not installed")
pytest.importorskip("procrastinate", reason="the extra bullpen-chat[cluster] is not installed")

import psycopg
from tests.cluster.databases import NONE, database
from tests.cluster.processes import Processes

from bullpen.cluster.schema import prepare
from bullpen.testing.postgres import PostgresServer, programs


@pytest.fixture(scope="session")
def template() -> Iterator[str]:
    """The name of a database with the tables of a cluster, to be copied."""
    with database() as made:
        prepare(made)
        yield made.rpartition("/")[2]


@pytest.fixture
def url(template: str) -> Iterator[str]:
    """A new database with the tables of a cluster."""
    with database(template) as made:
        yield made


@pytest.fixture
def role(url: str) -> Iterator[str]:
    """A role without any rights."""
    name = f"worker_{url.rpartition('_')[2]}"
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'x'".encode())
    yield name
    with psycopg.connect(url) as connection:
        connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop."""
    if programs() is None:
        pytest.skip(NONE)
    with PostgresServer() as server:
        prepare(server.url())
        yield server


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes that are ended after the test."""
    started = Processes(tmp_path)
    yield started
    started.end()
