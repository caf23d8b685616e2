"""Whether the program of a member is on this machine, and what to do if it is not."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from bullpen.agents.environment import child_environment
from bullpen.agents.runner import find_program
from bullpen.agents.spec import AgentSpec
from bullpen.team.team import Member


def finds(spec: AgentSpec, member: Member, root: Path, environ: Mapping[str, str]) -> bool:
    """Return whether a turn of a member would find its program."""
    passed = {name: environ[name] for name in member.env if name in environ}
    return find_program(spec.program, child_environment(spec, passed, environ), root / member.cwd) is not None


def not_found(spec: AgentSpec, folder: Path) -> str:
    """Return what to do about a program that was not found."""
    here = folder / spec.program
    # os.path says no to what cannot be looked at; a Path would raise.
    if os.path.isfile(here) and os.sep in spec.program:  # noqa: PTH113
        return f"{spec.program!r} is not executable. Try: chmod +x {shlex.quote(str(here))}"
    if os.path.isfile(here):  # noqa: PTH113
        return f"the program {spec.program!r} is not in your PATH. For the file in {folder}, write ./{spec.program}"
    hint = spec.hints.get("not_installed", "Install it, or check your PATH.")
    return f"the program {spec.program!r} was not found. {hint}"
