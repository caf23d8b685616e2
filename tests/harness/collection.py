"""Collect the tests quickly: each worker of a run collects all of them."""

import gc
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    # What is collected lives until the end, so nobody needs to look again and again whether it is garbage.
    gc.disable()
    if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        _import_share(session.config)
    result = yield
    gc.collect()
    gc.freeze()
    gc.enable()
    return result


def _import_share(config: pytest.Config) -> None:
    """Import some test files first: in a fresh clone, the other workers then find them compiled, and we theirs."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    ignored = config.hook.pytest_ignore_collect
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    ours = [path for path in files if not ignored(collection_path=path, config=config)]
    for path in ours[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        # If it cannot be imported, that is reported when it is collected.
        with suppress(Exception, pytest.skip.Exception):
            import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
