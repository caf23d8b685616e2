"""run_check: one command to its end, as a process that is ended like an agent's; its exit code and its output."""

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bullpen.agents.bounded_output import BoundedOutput
from bullpen.agents.command import command_agent
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.environment import child_environment
from bullpen.agents.process import Child
from bullpen.agents.runner import find_program, prepare_for_agents, to_the_end
from bullpen.clock import first_of

logger = logging.getLogger(__name__)


class CheckRun(Struct, kw_only=True):
    """How a command ended, and what it wrote until then."""

    exit_code: int | None = None
    """None: it was stopped, or never began."""
    is_started: bool = False
    is_timed_out: bool = False
    is_lost: bool = False
    """Whether nobody knows how it ended, because the machine is away on which it ran."""
    problem: str = ""
    """Why it could not begin, or that nobody knows how it ended, in a sentence."""
    output: str = ""
    left_out: int = 0
    seconds: float = 0.0


async def run_check(command: Sequence[str], *, cwd: Path, timeout: float, run: CheckRun) -> None:
    """Run a command and fill in how it ended, also if this is cancelled: then its processes are ended first."""
    environment = child_environment(command_agent(command))
    output, began = BoundedOutput(), time.monotonic()
    try:
        await prepare_for_agents()
        child = _started(command, cwd, environment, output, run)
        if child is not None:
            await _ended(child, timeout, run)
    finally:
        run.seconds = time.monotonic() - began
        run.output, run.left_out = output.text(environment)


def _started(
    command: Sequence[str], cwd: Path, environment: dict[str, str], output: BoundedOutput, run: CheckRun
) -> Child | None:
    # Also if nobody may look into the folder around it.
    if not os.path.isdir(cwd):  # noqa: PTH112
        run.problem = f"The folder {cwd} does not exist."
        return None
    program = find_program(command[0], environment, cwd)
    if program is None:
        run.problem = f"The program {command[0]} was not found."
        return None
    try:
        child = Child(
            (program, *command[1:]),
            cwd=cwd,
            env=environment,
            stdin=b"",
            on_stdout=output.feed,
            on_stderr=output.feed,
            crash_records=CrashRecords(),
        )
    except OSError as error:
        run.problem = f"{program} could not be started: {error.strerror or error}."
        return None
    run.is_started = True
    logger.info("check began program=%s pid=%d", program, child.pid)
    return child


async def _ended(child: Child, timeout: float, run: CheckRun) -> None:
    waiting = asyncio.ensure_future(child.wait())
    try:
        await first_of([waiting], timeout)
        run.is_timed_out = not waiting.done()
        if waiting.done():
            run.exit_code = waiting.result()
    finally:
        waiting.cancel()
        await to_the_end(child.stop())
