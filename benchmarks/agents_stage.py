"""What the figures about agents share: a temporary folder, a prompt, and programs instead of a CLI."""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from bullpen.agents import AgentSpec, agent_spec, command_agent
from bullpen.context import AssemblerInput, AssemblerOutput

RESULT = '{"type":"result","subtype":"success","status":"success","is_error":false,"result":"ok"}'
"""The line that makes a turn of claude or gemini succeed."""


@contextmanager
def own_folder() -> Iterator[Path]:
    """Yield a new folder to work in. The records of running children go there, too, not to the user's folder."""
    before = os.environ.get("XDG_STATE_HOME")
    with TemporaryDirectory(prefix="bullpen-bench-") as folder:
        os.environ["XDG_STATE_HOME"] = str(Path(folder, "state"))
        try:
            yield Path(folder)
        finally:
            del os.environ["XDG_STATE_HOME"]
            if before is not None:
                os.environ["XDG_STATE_HOME"] = before


def played_by(cli: str, *command: str) -> AgentSpec:
    """Return the spec of a CLI with another program instead of it."""
    spec = command_agent(command) if cli == "text" else agent_spec(cli)
    return replace(spec, command=command, permissions={"read-only": ()}, last_arguments=())


def scripted(cli: str, script: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the command for our scripted agent, with the arguments that the CLI itself gets."""
    arguments = () if cli == "text" else agent_spec(cli).command[1:]
    return sys.executable, "-m", "bullpen.testing.agent", "--as", cli, "--script", json.dumps(script), *arguments


def python(program: str) -> tuple[str, ...]:
    """Return the command for a small Python program, started without site packages."""
    return sys.executable, "-I", "-S", "-c", program


def prompt(spec: AgentSpec, text: str = "hello") -> AssemblerOutput:
    """Return a prompt of one message."""
    return spec.assembler().assemble(AssemblerInput(current_message=text))
