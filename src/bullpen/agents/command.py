"""Any program: the prompt on its standard input, its answer on its standard output."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from bullpen.agents.folder_settings import ANY_PROGRAM, NO_SETTINGS
from bullpen.agents.spec import AgentSpec
from bullpen.context.assemblers import ContextAssembler, PlainTextAssembler
from bullpen.turn_events import Event, TextDelta

_AGENTS = frozenset({"claude", "codex", "copilot", "gemini", "opencode", "pi", "qwen", "qwen-code", "vibe", "vibe-acp"})
"""Programs that read settings in the folder in which they run, perhaps named in a command."""


class TextParser:
    """Everything the program prints is its answer."""

    def parse(self, record: Any) -> Iterator[Event]:
        """Yield a piece of the answer."""
        yield TextDelta(record)


def command_agent(
    command: Sequence[str], *, name: str | None = None, assembler: type[ContextAssembler] = PlainTextAssembler
) -> AgentSpec:
    """Return the spec for a program that is not a known CLI. We cannot restrict what it may do."""
    if not command:
        raise ValueError("A command needs at least a program name")
    return AgentSpec(
        name=name or PurePath(command[0]).name,
        command=tuple(command),
        assembler=assembler,
        parser=TextParser,
        stream="text",
        reports="nothing",
        instruction_files=(),
        permissions={"read-only": (), "edit": (), "full": ()},
        allow="bullpen cannot restrict what a command does",
        folder_settings=ANY_PROGRAM if _AGENTS & {*re.findall(r"[\w-]+", " ".join(command))} else NO_SETTINGS,
        hints={"not_installed": f"Check the command {command[0]!r} in your team file, and your PATH."},
    )
