"""What the sandbox adds to a turn, beside the start of bubblewrap alone with the same places.

python -m benchmarks.sandbox_start
"""

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median

from bullpen.agents.cli_files import own_files
from bullpen.agents.command import command_agent
from bullpen.agents.runner import run_turn
from bullpen.context.prompt import AssemblerInput
from bullpen.permissions import Permission
from bullpen.sandbox.held import held
from bullpen.sandbox.layout import Surroundings
from bullpen.sandbox.mechanism import mechanism
from bullpen.sandbox.rules import SandboxRules

ROUNDS = 40
PERMISSIONS: tuple[Permission, ...] = ("read-only", "edit")
ON = SandboxRules(is_on=True)
SPEC = command_agent(["echo", "x"], name="x")


def main() -> None:
    """Print medians in milliseconds, and the ratio that is promised to be at most 1.5."""
    if not mechanism().works:
        raise SystemExit(f"There is no sandbox here: {mechanism().why_not}")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        subprocess.run(["git", "init", "-q", name], check=True)
        for permission in PERMISSIONS:
            print(permission, _measured(Path(name), permission))


def _measured(folder: Path, permission: Permission) -> str:
    prompt = SPEC.assembler().assemble(AssemblerInput(current_message="x"))
    own, others = own_files(SPEC)
    around = Surroundings(folder=folder, command=("true",), environment=dict(os.environ), own=own, others=others)

    async def turn(rules: SandboxRules) -> None:
        await run_turn(SPEC, prompt, emit=lambda _: None, cwd=folder, permissions=permission, sandbox=rules)

    async def turns() -> tuple[list[float], list[float], list[float]]:
        free, bound, alone = [], [], []
        for _ in range(ROUNDS):
            free.append(await _timed_turn(turn, SandboxRules()))
            bound.append(await _timed_turn(turn, ON))
            with held(around, ON, permission, mechanism(), folder.parent / ".notes") as how:
                alone.append(_timed([*how.prefix, "true"]))
        return free, bound, alone

    free, bound, alone = (1000 * median(times) for times in asyncio.run(turns()))
    ratio = (bound - free) / alone
    return f"free {free:.1f} ms, held {bound:.1f} ms, bubblewrap alone {alone:.1f} ms, added/alone {ratio:.2f}"


async def _timed_turn(turn: Callable[[SandboxRules], Awaitable[None]], rules: SandboxRules) -> float:
    began = time.perf_counter()
    await turn(rules)
    return time.perf_counter() - began


def _timed(command: Sequence[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
