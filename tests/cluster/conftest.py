import asyncio
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="the extra bullpen-chat[cluster] is not installed")
pytest.importorskip("procrastinate", reason="the extra bullpen-chat[cluster] is not installed")

from tests.cluster.processes import Processes
from tests.cluster.server import Server, database, programs_here, running

from bullpen.cluster.schema import prepare

LONGEST_STORY_SECONDS = 100
NONE = "NO POSTGRESQL, so nothing of the cluster is tested: try apt install postgresql, or set BULLPEN_TEST_POSTGRES"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), LONGEST_STORY_SECONDS))
    return True


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    given = os.environ.get("BULLPEN_TEST_POSTGRES")
    if given:
        yield given
        return
    if programs_here() is None:
        pytest.skip(NONE)
    with running() as server:
        yield server.url()


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """The name of a database with the tables of a cluster, to be copied."""
    with database(server_url) as made:
        prepare(made)
        yield made.rpartition("/")[2]


@pytest.fixture
def url(server_url: str, template: str) -> Iterator[str]:
    """A new database with the tables of a cluster."""
    with database(server_url, template) as made:
        yield made


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server that a test may stop."""
    if programs_here() is None:
        pytest.skip(NONE)
    with running() as server:
        prepare(server.url())
        yield server


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Processes that are ended after the test."""
    started = Processes(tmp_path)
    yield started
    started.end()
