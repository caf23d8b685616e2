"""Whether an agent is ready: installed, tested version, signed in; checked cheaply, or with one real turn if asked."""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.environment import child_environment
from bullpen.agents.failures import COMMON_HINTS
from bullpen.agents.process import Child
from bullpen.agents.registry import agent_spec, is_restricted, known_agents, not_loaded, spec_for
from bullpen.agents.runner import find_program, run_turn, to_the_end
from bullpen.agents.spec import AgentSpec
from bullpen.context.prompt import AssemblerInput
from bullpen.errors import AgentFailed, UnknownAgent
from bullpen.team.file import LoadedTeam
from bullpen.team.team import Member
from bullpen.turn_events import FailureKind

# `gemini --version` needs two seconds on an idle machine.
PROBE_SECONDS = 30.0
MAX_PROBE_BYTES = 64 * 1024
LIVE_SECONDS = 180.0
LIVE_PROMPT = "This is a test of the connection. Reply with the single word: ready"

_VERSION = re.compile(r"(?<!\d)\d++\.\d[\w.+-]*")
_SIGNED_OUT = re.compile(r'not logged in|logged ?out|"loggedIn":\s*false', re.IGNORECASE)


class Problem(Struct, frozen=True):
    """Something that keeps an agent from working, and what to do about it."""

    text: str
    hint: str = ""


class Finding(Struct, frozen=True, kw_only=True):
    """What is known about one agent."""

    agent: str
    name: str
    """What team files call it; of a program that is not a known CLI, the member that runs it."""
    program: str
    needed: bool = True
    """Whether the team needs it, if it was examined for a team."""
    path: str | None = None
    version: str | None = None
    version_tested: bool = False
    signed_in: bool | None = None
    """None: only a request could tell."""
    evidence: str = ""
    """How we know."""
    answered: bool | None = None
    """Whether one real turn worked; None if it was not requested."""
    problems: tuple[Problem, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether a turn can be expected to work."""
        return not self.problems


async def examine(spec: AgentSpec, *, cwd: Path, live: bool = False, env: Mapping[str, str] | None = None) -> Finding:
    """Return what is known about an agent, using the same command that a turn in this folder would run."""
    environment = child_environment(spec, env)
    path = find_program(spec.program, environment, cwd)
    if path is None:
        problem = Problem(f"{spec.program} is not installed.", _hint(spec, "not_installed"))
        return Finding(agent=spec.name, name=spec.short_name, program=spec.program, problems=(problem,))
    version, (signed_in, evidence) = await asyncio.gather(
        _version(spec, path, environment), _signed_in(spec, path, environment)
    )
    problems = []
    if version is None:
        problems.append(Problem(f"{path} does not report its version.", "Run it yourself to see why."))
    if signed_in is False:
        problems.append(Problem(f"{spec.program} is not signed in ({evidence}).", _hint(spec, "not_signed_in")))
    answered = None
    if live and not problems:
        failure = await _live_failure(spec, cwd, env)
        answered = failure is None
        problems += [] if failure is None else [failure]
    return Finding(
        agent=spec.name,
        name=spec.short_name,
        program=spec.program,
        path=path,
        version=version,
        version_tested=version in spec.tested_versions,
        signed_in=signed_in,
        evidence=evidence,
        answered=answered,
        problems=tuple(problems),
    )


async def examine_all(names: Sequence[str] = (), *, cwd: Path, live: bool = False) -> list[Finding]:
    """Examine agents in parallel, by name; without names, all known agents."""
    specs = [agent_spec(name) for name in names] or list(known_agents().values())
    return await asyncio.gather(*(examine(spec, cwd=cwd, live=live) for spec in specs))


async def examine_for(loaded: LoadedTeam, *, live: bool = False) -> list[Finding]:
    """Examine what the members of a team run here, then list the other agents as not needed.

    A program that is not a known CLI is only looked for: nobody may have agreed yet to what the file runs.
    """
    members = [member for member in loaded.team.agents if not member.pool]
    own = {member.name: agent_spec(member.agent) for member in members if _runs_known_cli(member)}
    needed = {spec.name for spec in own.values()}
    specs = sorted(known_agents().values(), key=lambda spec: spec.name not in needed)
    found = await asyncio.gather(*(examine(spec, cwd=loaded.root, live=live and spec.name in needed) for spec in specs))
    programs = [_look_for(member, loaded.root) for member in members if member.name not in own]
    marked = [replace(finding, needed=finding.agent in needed) for finding in found]
    return sorted([*programs, *marked], key=lambda finding: not finding.needed)


def _runs_known_cli(member: Member) -> bool:
    own = agent_spec(member.agent).program if is_restricted(member.agent) else None
    return own is not None and spec_for(member.agent, member.command).program == own


def _look_for(member: Member, root: Path) -> Finding:
    try:
        spec = spec_for(member.agent, member.command, name=member.name)
    except UnknownAgent as error:
        return Finding(agent=member.agent, name=member.name, program="", problems=(Problem(str(error)),))
    passed = {name: os.environ[name] for name in member.env if name in os.environ}
    path = find_program(spec.program, child_environment(spec, passed), root / member.cwd)
    missing = Problem(f"The program {spec.program!r} was not found.", "`bullpen check` says more.")
    problems = (missing,) if path is None else ()
    return Finding(agent=spec.name, name=member.name, program=spec.program, path=path, problems=problems)


def agent_names() -> tuple[str, ...]:
    """Return the name of every known agent."""
    return tuple(known_agents())


def agent_name(name: str) -> str:
    """Return the canonical name for a name or an alias, or raise UnknownAgent."""
    return agent_spec(name).name


def agents_not_loaded() -> list[str]:
    """Return a sentence for each agent of another package that cannot be loaded."""
    return not_loaded()


def end_leftover_processes() -> None:
    """End what earlier bullpen processes left running after a crash."""
    CrashRecords().end_all()


async def _version(spec: AgentSpec, path: str, environment: Mapping[str, str]) -> str | None:
    exit_code, output = await _run([path, *spec.version_arguments], environment)
    version = _VERSION.search(output)
    return version[0] if exit_code == 0 and version else None


async def _signed_in(spec: AgentSpec, path: str, environment: Mapping[str, str]) -> tuple[bool | None, str]:
    """Return whether the CLI is signed in, and how we know. A key that is set is not checked."""
    probe = spec.sign_in
    for variable in probe.variables:
        name, _, value = variable.partition("=")
        if environment.get(name) and value in ("", environment[name]):
            return True, f"{name} is set"
    if probe.arguments:
        command = " ".join([spec.program, *probe.arguments])
        exit_code, output = await _run([path, *probe.arguments], environment)
        return exit_code == 0 and not _SIGNED_OUT.search(output), f"asked with `{command}`"
    home = environment.get("HOME") or Path.home()
    for name in probe.files:
        if Path(home, name).exists():
            return True, f"~/{name} exists"
    if not probe.variables and not probe.files:
        return None, ""
    return False, f"no {' or '.join([probe.variables[0], *(f'~/{name}' for name in probe.files)])}"


async def _run(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the exit code and output of a short command; None as the code if it could not run or took too long."""
    output = bytearray()

    def keep(chunk: bytes) -> None:
        output.extend(chunk[: MAX_PROBE_BYTES - len(output)])

    try:
        child = Child(
            argv,
            cwd=Path.cwd(),
            env=environment,
            stdin=b"",
            on_stdout=keep,
            on_stderr=keep,
            crash_records=CrashRecords(),
        )
    except OSError as error:
        return None, str(error)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await child.wait(), output.decode(errors="replace")
    except TimeoutError:
        return None, ""
    finally:
        await to_the_end(child.stop())


async def _live_failure(spec: AgentSpec, cwd: Path, env: Mapping[str, str] | None) -> Problem | None:
    prompt = spec.assembler().assemble(AssemblerInput(current_message=LIVE_PROMPT))
    try:
        await run_turn(spec, prompt, emit=lambda _: None, cwd=cwd, env=env, total_timeout=LIVE_SECONDS)
    except AgentFailed as error:
        return Problem(error.event.sentence, error.event.hint)
    return None


def _hint(spec: AgentSpec, kind: FailureKind) -> str:
    return spec.hints.get(kind) or COMMON_HINTS[kind]
