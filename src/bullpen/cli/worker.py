"""`bullpen worker`: runs turns of others on this machine, as its own file allows."""

import argparse
import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bullpen.cli.cluster_option import VARIABLE, add_cluster_option, cluster_address, need_cluster
from bullpen.cli.option_types import pool
from bullpen.cli.signals import AGAIN_SECONDS, LEAVING, handling
from bullpen.clock import monotonic
from bullpen.errors import WrongUsage

if TYPE_CHECKING:
    from bullpen.cli.worker_lines import WorkerLines
    from bullpen.cluster.worker import Worker

ABOUT = f"""\
FILE says what others may run on this machine: agents, folders, permissions, variables. docs/cluster.md shows one. The
address of the server is in --cluster or {VARIABLE}; its password in PGPASSWORD or ~/.pgpass, where nobody sees it.
Ctrl-C: it begins no more turns and waits for those that run. Twice: it ends those.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the options."""
    parser.add_argument("file", metavar="FILE", type=Path, help="what others may run here, for example worker.toml")
    parser.add_argument(
        "--pool",
        dest="pools",
        type=pool,
        action="append",
        required=True,
        metavar="NAME",
        help="a pool whose turns to run; can be given several times",
    )
    add_cluster_option(parser, "the server: postgresql://user@host:5432/database")
    parser.epilog = ABOUT


def run(options: argparse.Namespace) -> int:
    """Work until somebody stops it."""
    address = cluster_address(options.cluster)
    if address is None:
        raise WrongUsage(f"Which cluster? Add --cluster postgresql://user@host:5432/database, or set {VARIABLE}.")
    need_cluster()
    from bullpen.cli.worker_lines import WorkerLines
    from bullpen.cluster.worker import Worker
    from bullpen.cluster.worker_file_reader import read_worker_file

    pools = tuple(dict.fromkeys(options.pools))
    lines = WorkerLines(read_worker_file(options.file), pools, address)
    worker = Worker(url=address, pools=pools, file=lines.file, watch=lines.watch)
    lines.begin(worker.name)
    return asyncio.run(_work(worker, lines))


async def _work(worker: "Worker", lines: "WorkerLines") -> int:
    stopping = asyncio.Event()
    working = asyncio.ensure_future(worker.run(stopping))
    leaving = _Leaving(working, stopping, lines)
    handlers = {number: partial(leaving.take, number) for number in LEAVING}
    with handling(handlers, is_leaving=lambda: leaving.is_ending):
        try:
            await working
        except asyncio.CancelledError:
            lines.say("Left.")
            return leaving.exit_code
    lines.say("Left; nothing of it runs any more.")
    return 0


class _Leaving:
    """The first signal lets what runs come to its end, the second one ends it."""

    def __init__(self, working: "asyncio.Future[None]", stopping: asyncio.Event, lines: "WorkerLines") -> None:
        self._working = working
        self._stopping = stopping
        self._lines = lines
        self._asked_at = 0.0
        self.is_ending = False
        self.exit_code = 0

    def take(self, number: signal.Signals) -> None:
        if not self._stopping.is_set():
            self._stopping.set()
            self._asked_at = monotonic()
            self._lines.stops()
            if not self._lines.has_joined:
                self._end(number)
        # A program between us and the terminal may hand on a Ctrl-C that we got already.
        elif monotonic() - self._asked_at > AGAIN_SECONDS:
            self._lines.say("Ends what runs.")
            self._end(number)

    def _end(self, number: signal.Signals) -> None:
        self.is_ending = True
        self.exit_code = LEAVING[number]
        self._working.cancel()
