"""An owner as in owner_process.py that stores answers, and never gets to leave them for the worker."""

import asyncio
import runpy

from bullpen.cluster import remote_talk


async def never(*_: object) -> None:
    await asyncio.Event().wait()


vars(remote_talk)["leave_word"] = never
runpy.run_module("tests.cluster.owner_process", run_name="__main__")
