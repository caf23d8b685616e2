"""One turn of a genuine CLI, driven through run_turn against a scripted model."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from bullpen.agents import Permission, Reply, agent_spec, guardian, run_turn
from bullpen.agents.processes.proc_files import ProcFiles
from bullpen.context import AssemblerInput
from bullpen.errors import AgentFailed
from bullpen.testing.models import ModelRequest, ModelServer, ToolCall
from bullpen.testing.models import Reply as Scripted
from bullpen.testing.settings import SETTINGS
from bullpen.turn_events import Event, Failed

Result = TypeVar("Result")

MODELS = {"claude": None, "codex": None, "gemini": "gemini-2.5-flash", "qwen": "qwen3-coder-plus"}
CLIS = ("claude", "codex", "gemini", "qwen")
every_cli = pytest.mark.parametrize("cli", CLIS)


def clis(*usual: str, rarely: Sequence[str]) -> pytest.MarkDecorator:
    """Try these CLIs; and those that only show the same once more, in `make torture` and `make newest`."""
    return pytest.mark.parametrize("cli", [*usual, *(pytest.param(cli, marks=pytest.mark.torture) for cli in rarely)])


class Turn:
    """One turn of a genuine CLI."""

    def __init__(self, cli: str, folder: Path) -> None:
        self.cli = cli
        self.spec = agent_spec(cli)
        self.home = folder / "home"
        self.cwd = folder / "project"
        self.cwd.mkdir(parents=True)
        self.events: list[Event] = []
        self.requests: list[ModelRequest] = []

    async def run(
        self,
        *script: Scripted | Callable[[ModelRequest], Scripted],
        message: str = "hello",
        system: str = "You are Max.",
        permissions: Permission = "read-only",
        **options: Any,
    ) -> Reply:
        async with ModelServer() as models:
            self.requests = models.requests
            models.script(*script)
            settings = SETTINGS[self.cli](models.base_url, self.home)
            output = self.spec.assembler().assemble(
                AssemblerInput(current_message=message, system_instruction=system, max_bytes=2_000_000)
            )
            return await run_turn(
                self.spec,
                output,
                emit=self.events.append,
                cwd=self.cwd,
                permissions=permissions,
                arguments=settings.arguments,
                **{
                    "env": settings.env,
                    "model": MODELS.get(self.cli),
                    "idle_timeout": 60,
                    "total_timeout": 120,
                    **options,
                },
            )

    async def fail(self, *script: Scripted, **options: Any) -> Failed:
        with pytest.raises(AgentFailed) as raised:
            await self.run(*script, **options)
        return raised.value.event

    def of(self, kind: type[Result]) -> list[Result]:
        return [event for event in self.events if isinstance(event, kind)]


def run(work: Coroutine[Any, Any, Result]) -> Result:
    before, others = open_descriptors(), children()
    result = asyncio.run(work)
    assert open_descriptors() <= before
    assert children() <= others, "a browser of other tests may live on, but nothing of ours"
    return result


def open_descriptors() -> int:
    """Return how many files are open, without those to guardians that wait for the next turn."""
    return len(list(Path("/proc/self/fd").iterdir())) - len(guardian.idle)


def children() -> set[int]:
    """Return the children of this process, without its guardians."""
    return {*ProcFiles().children(os.getpid())} - {one.pid for one in guardian.guardians}


def write_call(cli: str, file: Path) -> ToolCall:
    match cli:
        case "claude":
            return ToolCall(name="Write", arguments={"file_path": str(file), "content": "made"})
        case "codex":
            return ToolCall(name="exec_command", arguments={"cmd": f"echo made > {file}"})
        case "opencode":
            return ToolCall(name="write", arguments={"filePath": str(file), "content": "made"})
        case "copilot":
            return ToolCall(name="create", arguments={"path": str(file), "file_text": "made"})
        case "pi":
            return ToolCall(name="write", arguments={"path": str(file), "content": "made"})
        case "vibe":
            return ToolCall(name="write_file", arguments={"path": str(file), "content": "made"})
        case _:
            return ToolCall(name="write_file", arguments={"file_path": str(file), "content": "made"})
