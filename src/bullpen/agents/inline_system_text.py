"""CLIs too old for a file with the system text: it begins their prompt instead, as the specification says.

Only the CLI itself knows whether it takes the option, and ends at once if not. That is remembered for the program's
file, so that each release is tried once.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec.structs import replace

from bullpen.agents.spec import AgentSpec
from bullpen.config import data_folder
from bullpen.context.assemblers import CodexContextAssembler
from bullpen.context.budget import SECTION_SEPARATOR
from bullpen.context.prompt import AssemblerOutput
from bullpen.turn_events import Failed, Finished, Notice

Settings = ParamSpec("Settings")
Result = TypeVar("Result")
Run = Callable[Concatenate[AgentSpec, AssemblerOutput, Settings], Coroutine[Any, Any, Result]]

_REFUSAL = re.compile("unknown|unrecogni[sz]ed|unexpected|invalid", re.IGNORECASE)


class SystemFileRefused(Exception):
    """The program has ended since it does not know the option. No model was asked."""


def with_fallback(run: Run[Settings, Result]) -> Run[Settings, Result]:
    """Return a function that runs a turn, and once more with an inline system text if the file is refused."""

    @wraps(run)
    async def run_turn(
        spec: AgentSpec, output: AssemblerOutput, /, *args: Settings.args, **settings: Settings.kwargs
    ) -> Result:
        try:
            return await run(spec, output, *args, **settings)
        except SystemFileRefused:
            return await run(spec, _inlined(output), *args, **settings)

    return run_turn


def as_taken_by(program: str | None, output: AssemblerOutput) -> AssemblerOutput:
    """Return what a program is given: with the system text in the prompt, unless it accepts the file."""
    return _inlined(output) if output.system_flag and refuses_file(program) else output


def refuses_file(program: str | None) -> bool:
    """Return whether this release of a program has refused the file before."""
    mark = None if program is None else _mark(program)
    # Path.exists raises an error where we may not look.
    return mark is not None and os.path.exists(mark)  # noqa: PTH110


def refused(spec: AgentSpec, program: str | None, output: AssemblerOutput, ending: Finished | Failed) -> Notice | None:
    """Return what to tell people if a program refused the file, and remember that for its release."""
    if not output.system_flag or program is None or not isinstance(ending, Failed) or not ending.exit_code:
        return None
    flag = spec.system_file_flag or ""
    if not any(flag in line and _REFUSAL.search(line) for line in ending.stderr_tail.splitlines()):
        return None
    mark = _mark(program)
    # If it cannot be remembered, the next turn tries again.
    with contextlib.suppress(OSError):
        if mark is not None:
            mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            mark.touch()
    text = f"{program} does not know {flag}, so its instructions are at the beginning of its prompt."
    return Notice(kind="warning", text=f"{text} A newer release takes them separately.")


def _inlined(output: AssemblerOutput) -> AssemblerOutput:
    """Return the same with the system text in the prompt, as the layout has it that is the same but for that."""
    system = f"{CodexContextAssembler.layout.system_header}\n{output.system_flag}"
    return replace(output, prompt=SECTION_SEPARATOR.join(filter(None, [system, output.prompt])), system_flag=None)


def _mark(program: str) -> Path | None:
    """Return the file that remembers it, named after a program's file: another release is another file."""
    try:
        real = Path(program).resolve(strict=True)
        found = real.stat()
    except OSError:
        return None
    release = f"{real}\0{found.st_ino}\0{found.st_size}\0{found.st_mtime_ns}"
    return data_folder() / "inline-system-text" / hashlib.sha256(os.fsencode(release)).hexdigest()
