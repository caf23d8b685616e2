"""Whether an agent is ready: installed, tested version, signed in; checked cheaply, or with one real turn if asked."""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents.acp_handshake import handshake, in_acp
from bullpen.agents.acp_programs import ACP_PROGRAMS
from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.environment import child_environment
from bullpen.agents.failures import COMMON_HINTS
from bullpen.agents.registry import agent_spec, is_restricted, known_agents, not_loaded, short_names, spec_for
from bullpen.agents.runner import find_program, run_turn
from bullpen.agents.sign_in import own_folder, run_probe, signed_in
from bullpen.agents.spec import AgentSpec
from bullpen.context.prompt import AssemblerInput
from bullpen.errors import AgentFailed, UnknownAgent
from bullpen.team.file import LoadedTeam
from bullpen.team.stand_ins import programs
from bullpen.team.team import Member
from bullpen.team.trust import Trust
from bullpen.turn_events import FailureKind

# `gemini --version` needs two seconds on an idle machine.
LIVE_SECONDS = 180.0
LIVE_PROMPT = "This is a test of the connection. Reply with the single word: ready"

_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
_VERSION = re.compile(r"(?<!\d)\d++\.\d[\w.+-]*")


class Problem(Struct, frozen=True):
    """Something that keeps an agent from working, and what to do about it."""

    text: str
    hint: str = ""


NOT_TRUSTED = Problem("It was not started: nobody has agreed yet to what this team file runs.", "`bullpen chat` asks.")


class Finding(Struct, frozen=True, kw_only=True):
    """What is known about one agent."""

    agent: str
    name: str
    """What team files call it; of a program that is not a known CLI, the member that runs it."""
    program: str
    needed: bool = True
    """Whether the team needs it, if it was examined for a team."""
    stands_in: bool = False
    """Whether it only stands in for members of the team."""
    path: str | None = None
    version: str | None = None
    version_tested: bool = False
    signed_in: bool | None = None
    """None: only a request could tell."""
    evidence: str = ""
    """How we know."""
    answered: bool | None = None
    """Whether one real turn worked; None if it was not requested."""
    handshake: str = ""
    """What it says it can do, if it is spoken to in the Agent Client Protocol and was asked."""
    problems: tuple[Problem, ...] = ()
    remark: str = ""
    """What else to know, even if it is ready."""

    @property
    def ready(self) -> bool:
        """Whether a turn can be expected to work."""
        return not self.problems


async def examine(
    spec: AgentSpec,
    *,
    cwd: Path,
    live: bool = False,
    env: Mapping[str, str] | None = None,
    shakes_hands: bool = False,
) -> Finding:
    """Return what is known about an agent, using the same command that a turn in this folder would run.

    With `shakes_hands`, one that asks people in the Agent Client Protocol is started to see whether it answers.
    """
    environment = child_environment(spec, env)
    path = find_program(spec.program, environment, cwd)
    if path is None:
        problem = Problem(f"{spec.program} is not installed.", _hint(spec, "not_installed"))
        return Finding(agent=spec.name, name=spec.short_name, program=spec.program, problems=(problem,))
    version, (is_signed_in, evidence), shaken = await asyncio.gather(
        _version(spec, path, environment),
        signed_in(spec, path, environment),
        _shaken(spec if shakes_hands else None, path, environment),
    )
    problems = [] if shaken.problem is None else [shaken.problem]
    if version is None:
        problems.append(Problem(f"{path} does not report its version.", "Run it yourself to see why."))
    if is_signed_in is False:
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
        signed_in=is_signed_in,
        evidence=evidence,
        answered=answered,
        handshake=shaken.said,
        problems=tuple(problems),
        remark=next((remark for name, remark in spec.sign_in.remarks.items() if f"~/{name} " in evidence), ""),
    )


async def examine_all(names: Sequence[str] = (), *, cwd: Path, live: bool = False) -> list[Finding]:
    """Examine agents in parallel, by name; without names, all known agents, and without a handshake."""
    specs = [agent_spec(name) for name in names] or list(known_agents().values())
    return await asyncio.gather(*(examine(spec, cwd=cwd, live=live, shakes_hands=bool(names)) for spec in specs))


async def examine_here(*, cwd: Path, live: bool = False) -> list[Finding]:
    """Examine every known agent; those that are not on this machine come last, and are not needed."""
    specs = sorted(known_agents().values(), key=lambda spec: not _is_here(spec, cwd))
    found = await asyncio.gather(*(examine(spec, cwd=cwd, live=live) for spec in specs))
    return [replace(finding, needed=finding.path is not None) for finding in found]


def _is_here(spec: AgentSpec, cwd: Path) -> bool:
    return find_program(spec.program, child_environment(spec), cwd) is not None


def other_agents_here(*, cwd: Path) -> dict[str, str]:
    """Return, by their names, what to know of agents on this machine that only speak a protocol; they are not run."""
    here = [program for program in ACP_PROGRAMS if _is_here(spec_for("acp", program.command), cwd)]
    return {program.title: program.sentence for program in here}


async def examine_for(loaded: LoadedTeam, *, live: bool = False) -> list[Finding]:
    """Examine what the members of a team run here, then list the other agents as not needed.

    A program that is not a known CLI is only looked for, as long as nobody has agreed to what the file runs.
    """
    members = [member for member in loaded.team.agents if not member.pool]
    own = {member.name: agent_spec(member.agent) for member in members if _runs_known_cli(member)}
    needed = {spec.name for spec in own.values()}
    standing = {spec.name for spec in _stand_ins(loaded)} - needed
    specs = sorted(known_agents().values(), key=lambda spec: (spec.name not in needed, spec.name not in standing))
    asking = {own[member.name].name for member in members if member.name in own and member.permissions == "ask"}
    passed = {
        spec.name: _passed(*(one for one in (*members, *_stand_in_roles(loaded)) if _runs(one, spec))) for spec in specs
    }
    found = await asyncio.gather(
        *(
            examine(
                spec,
                cwd=loaded.root,
                live=live and spec.name in needed | standing,
                env=passed[spec.name],
                shakes_hands=spec.name in asking,
            )
            for spec in specs
        )
    )
    is_trusted = Trust().knows(loaded.path, loaded.text)
    others = [member for member in members if member.name not in own]
    programs = await asyncio.gather(*(_look_for(member, loaded.root, is_trusted=is_trusted) for member in others))
    marked = [
        replace(finding, needed=finding.agent in needed, stands_in=finding.agent in standing) for finding in found
    ]
    return sorted([*programs, *marked], key=lambda finding: not finding.needed)


def _stand_ins(loaded: LoadedTeam) -> list[AgentSpec]:
    """Return the known CLIs that stand in for members here."""
    return [agent_spec(one.agent) for one in _stand_in_roles(loaded) if _runs_known_cli(one)]


def _stand_in_roles(loaded: LoadedTeam) -> list[Member]:
    """Return the members here, each with a program that stands in for its own."""
    roles = [one for member in loaded.team.agents for by, one in programs(loaded.team, member) if by != member.name]
    return [one for one in roles if not one.pool]


def _runs(member: Member, spec: AgentSpec) -> bool:
    return _runs_known_cli(member) and agent_spec(member.agent) == spec


def _passed(*members: Member) -> dict[str, str]:
    """Return the variables that the team file passes on to these members, as far as they are set."""
    return {name: os.environ[name] for member in members for name in member.env if name in os.environ}


def who_stands_in(loaded: LoadedTeam, findings: Sequence[Finding]) -> list[str]:
    """Return a sentence for each stand-in here: whether it is ready."""
    sentences = []
    for member in loaded.team.agents:
        for by, one in programs(loaded.team, member):
            if by == member.name or one.pool:
                continue
            name = agent_spec(one.agent).name if _runs_known_cli(one) else by
            finding = next((each for each in findings if name in (each.agent, each.name)), None)
            why = " ".join(problem.text for problem in finding.problems) if finding else "It was not examined."
            sentences.append(
                f"{by} is ready to stand in for {member.name}."
                if finding is not None and finding.ready
                else f"{by} cannot stand in for {member.name}: {why}"
            )
    return sentences


def _runs_known_cli(member: Member) -> bool:
    own = agent_spec(member.agent).program if is_restricted(member.agent) else None
    return own is not None and spec_for(member.agent, member.command).program == own


async def _look_for(member: Member, root: Path, *, is_trusted: bool) -> Finding:
    try:
        spec = spec_for(member.agent, member.command, name=member.name)
    except UnknownAgent as error:
        return Finding(agent=member.agent, name=member.name, program="", problems=(Problem(str(error)),))
    environment, cwd = child_environment(spec, _passed(member)), root / member.cwd
    path = find_program(spec.program, environment, cwd)
    missing = Problem(f"The program {spec.program!r} was not found.", "`bullpen check` says more.")
    if path is None:
        return Finding(agent=spec.name, name=member.name, program=spec.program, problems=(missing,))
    speaks = in_acp(spec.with_permissions(member.permissions))
    shaken = await _shaken(speaks if is_trusted else None, path, environment)
    problem = NOT_TRUSTED if speaks and not is_trusted else shaken.problem
    return Finding(
        agent=spec.name,
        name=member.name,
        program=spec.program,
        path=path,
        handshake=shaken.said,
        problems=() if problem is None else (problem,),
    )


class _Shaken(Struct, frozen=True):
    said: str = ""
    problem: Problem | None = None


async def _shaken(spec: AgentSpec | None, path: str, environment: Mapping[str, str]) -> _Shaken:
    """Return what came of a handshake with an agent; nothing if it is spoken to in another way."""
    speaks = in_acp(spec) if spec is not None else None
    if speaks is None:
        return _Shaken()
    done = await handshake(speaks, path, cwd=own_folder(), environment=environment)
    command = " ".join((speaks.program, *speaks.command[1:]))
    if done.is_good:
        return _Shaken(said=f"`{command}`: {done.sentence}")
    return _Shaken(problem=Problem(f"`{command}` cannot be asked anything. {done.sentence}", "Run it to see why."))


def who_asks(loaded: LoadedTeam) -> list[str]:
    """Return a sentence for each member that asks people before it runs a command: by way of what."""
    sentences = []
    for member in loaded.team.agents:
        if member.permissions == "ask" and not member.pool:
            spec = spec_for(member.agent, member.command, name=member.name).with_permissions("ask")
            program = " ".join(spec.command[:2])
            sentences.append(f"{member.name} asks people before it runs a command, by way of `{program}`.")
    return sentences


def agent_names() -> tuple[str, ...]:
    """Return what team files call every known agent."""
    return tuple(short_names())


def agent_name(name: str) -> str:
    """Return the canonical name for a name or an alias, or raise UnknownAgent."""
    return agent_spec(name).name


def short_name(name: str) -> str:
    """Return what team files call an agent, for a name or an alias, or raise UnknownAgent."""
    return agent_spec(name).short_name


def agents_not_loaded() -> list[str]:
    """Return a sentence for each agent of another package that cannot be loaded."""
    return not_loaded()


def end_leftover_processes() -> None:
    """End what earlier bullpen processes left running after a crash."""
    CrashRecords().end_all()


async def _version(spec: AgentSpec, path: str, environment: Mapping[str, str]) -> str | None:
    quick = Path(path).with_name(spec.version_program or Path(path).name)
    program = str(quick) if os.access(quick, os.X_OK) else path
    exit_code, output = await run_probe([program, *spec.version_arguments], environment)
    version = _VERSION.search(output)
    # It may be the end of a sentence.
    return version[0].rstrip(".") if exit_code == 0 and version else None


async def _live_failure(spec: AgentSpec, cwd: Path, env: Mapping[str, str] | None) -> Problem | None:
    prompt = spec.assembler().assemble(AssemblerInput(current_message=LIVE_PROMPT))
    try:
        await run_turn(spec, prompt, emit=lambda _: None, cwd=cwd, env=env, total_timeout=LIVE_SECONDS)
    except AgentFailed as error:
        hint = _not_passed_on(error.event.sentence, child_environment(spec, env)) or error.event.hint
        return Problem(error.event.sentence, hint)
    return None


def _not_passed_on(sentence: str, environment: Mapping[str, str]) -> str:
    """Return what to do about a variable that a CLI misses and only bullpen has; empty if there is none."""
    names = (name for name in _VARIABLE.findall(sentence) if name in os.environ and name not in environment)
    name = next(names, None)
    return "" if name is None else f'{name} is set here, but not passed on. Add env = ["{name}"] to its member.'


def _hint(spec: AgentSpec, kind: FailureKind) -> str:
    return spec.hints.get(kind) or COMMON_HINTS[kind]
