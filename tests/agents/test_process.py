"""A child process by itself."""

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.process import Child


def test_what_goes_wrong_while_it_is_being_ended_is_nobodys_business(tmp_path: Path) -> None:
    complaints: list[dict[str, Any]] = []

    def refuse(data: bytes) -> None:
        raise ValueError(f"{len(data)} bytes are too many")

    async def cancelled_turn() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        child = Child(
            ["sh", "-c", "trap 'echo last words; exit' INT; echo ready >&2; while :; do sleep 0.01; done"],
            cwd=tmp_path,
            env=os.environ,
            stdin=b"",
            on_stdout=refuse,
            on_stderr=lambda _: ready.set(),
            crash_records=CrashRecords(tmp_path),
        )
        ready = asyncio.Event()
        await ready.wait()
        await child.stop()
        del child
        gc.collect()
        await asyncio.sleep(0)

    asyncio.run(cancelled_turn())

    assert complaints == []
