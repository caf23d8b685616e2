"""What only this machine knows to be wrong with a team: programs, folders, files, variables."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from bullpen.agents.command import command_agent
from bullpen.agents.environment import child_environment
from bullpen.agents.registry import agent_spec, known_agents
from bullpen.agents.runner import find_program
from bullpen.agents.spec import AgentSpec
from bullpen.errors import Severity, TeamProblem, UnknownAgent
from bullpen.names import nearest
from bullpen.team import Member, Team
from bullpen.toml_lines import Path as KeyPath
from bullpen.toml_lines import TomlLines

MAX_INSTRUCTION_BYTES = 256 * 1024


def check_team(
    team: Team, root: Path, *, environ: Mapping[str, str] = os.environ, text: str = ""
) -> tuple[TeamProblem, ...]:
    """Return what would keep a team in this folder from working, and what one should know; all of it at once.

    The text of the team file says in which line each stands.
    """
    checks = _Checks(team, root, environ, TomlLines(text))
    return tuple(checks.problems())


def instruction_problem(name: str, root: Path, *, outside_files: bool) -> str | None:
    """Return what is wrong with an instruction file, as the end of a sentence."""
    path = Path(os.path.realpath(root / name))
    if not outside_files and not path.is_relative_to(os.path.realpath(root)):
        return f"{name!r} lies outside the folder of the team file. Move it, or set outside_files = true"
    try:
        found = path.stat()
    except OSError:
        return f"there is no file {name!r} in the folder of the team file"
    if not stat.S_ISREG(found.st_mode):
        return f"{name!r} is no ordinary file"
    if found.st_size > MAX_INSTRUCTION_BYTES:
        return f"{name!r} has {found.st_size:,} bytes, and at most {MAX_INSTRUCTION_BYTES:,} are read"
    return None if os.access(path, os.R_OK) else f"{name!r} may not be read"


class _Checks:
    """Goes through a team, member by member."""

    def __init__(self, team: Team, root: Path, environ: Mapping[str, str], lines: TomlLines) -> None:
        self._team = team
        self._root = root
        self._environ = environ
        self._lines = lines

    def problems(self) -> Iterator[TeamProblem]:
        if self._team.instruction_file and (reason := self._instruction_problem(self._team.instruction_file)):
            yield self._problem(("instruction_file",), reason)
        for index, member in enumerate(self._team.members):
            if member.type == "ai":
                yield from self._member(index, member)

    def _member(self, index: int, member: Member) -> Iterator[TeamProblem]:
        path: KeyPath = ("member", index)
        if reason := _folder_problem(self._root / member.cwd):
            yield self._problem((*path, "cwd"), reason)
        yield from self._program(path, member)
        if member.instruction_file and (reason := self._instruction_problem(member.instruction_file)):
            yield self._problem((*path, "instruction_file"), reason)
        for name in member.env:
            if name not in self._environ:
                yield self._problem((*path, "env"), f"{name} is not set, so it cannot be passed on", "warning")
        yield from self._permissions(path, member)

    def _program(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        if not member.command and not member.agent:
            return
        try:
            spec = command_agent(member.command) if member.command else agent_spec(member.agent)
        except UnknownAgent:
            yield self._problem((*path, "agent"), _unknown_agent(member.agent))
            return
        if not self._finds(spec, member):
            yield self._problem((*path, "command" if member.command else "agent"), _not_found(spec))
        try:
            spec.arguments(member.permissions, member.model)
        except ValueError as error:
            yield self._problem((*path, "model" if member.model else "permissions"), str(error))
        if member.model and not spec.model_flag:
            yield self._problem((*path, "model"), "has no effect: this program takes no model from us", "warning")

    def _permissions(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        if member.command and member.permissions != "read-only":
            text = "has no effect: what a command may do is its own affair"
            yield self._problem((*path, "permissions"), text, "warning")
        elif member.permissions == "full":
            text = "this agent may run any command and change any file without being asked"
            yield self._problem((*path, "permissions"), text, "remark")

    def _finds(self, spec: AgentSpec, member: Member) -> bool:
        passed = {name: self._environ[name] for name in member.env if name in self._environ}
        environment = child_environment(spec, passed, self._environ)
        return find_program(spec.program, environment, self._root / member.cwd) is not None

    def _instruction_problem(self, name: str) -> str | None:
        return instruction_problem(name, self._root, outside_files=self._team.outside_files)

    def _problem(self, path: KeyPath, text: str, severity: Severity = "error") -> TeamProblem:
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
        return TeamProblem(text, line=self._lines.line_of(path), key=key, severity=severity)


def _folder_problem(folder: Path) -> str | None:
    try:
        found = folder.stat()
    except PermissionError:
        return f"{folder} may not be looked at"
    except OSError:
        return f"there is no folder {folder}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is no folder"
    return None if os.access(folder, os.R_OK | os.X_OK) else f"{folder} may not be read"


def _unknown_agent(name: str) -> str:
    known = [word for spec in known_agents().values() for word in (*spec.aliases, spec.name)]
    close = nearest(name, known)
    advice = f"Did you mean {' or '.join(close)}?" if close else f"Known are: {', '.join(known)}."
    return f'there is no agent type {name!r}. {advice} Any other program goes into command = ["program"]'


def _not_found(spec: AgentSpec) -> str:
    hint = spec.hints.get("not_installed", "Install it, or check your PATH.")
    return f"the program {spec.program!r} was not found. {hint}"
