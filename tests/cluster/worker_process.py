"""A worker: its database, its pools and its file are the arguments. SIGTERM lets it end what it runs."""

import asyncio
import logging
import signal
import sys
from pathlib import Path

from bullpen.cluster.worker import Worker
from bullpen.cluster.worker_file_reader import read_worker_file


async def main(url: str, pools: str, file: str) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    await Worker(url=url, pools=tuple(pools.split(",")), file=read_worker_file(Path(file))).run(stopping)


logging.basicConfig(format="%(asctime)s worker %(process)d %(name)s: %(message)s", level=logging.INFO)
asyncio.run(main(*sys.argv[1:]))
