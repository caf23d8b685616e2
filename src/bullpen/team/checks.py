"""Problems of a team that depend on this machine: programs, folders, files, variables."""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from bullpen.agents.command import command_agent
from bullpen.agents.environment import child_environment
from bullpen.agents.registry import agent_spec, is_known, is_restricted, known_agents, short_names, spec_for
from bullpen.agents.runner import find_program
from bullpen.agents.spec import AgentSpec, check_model
from bullpen.context.agent_types import has_own_layout
from bullpen.context.manager import task_too_long
from bullpen.context.prompt import DEFAULT_MAX_BYTES
from bullpen.errors import Severity, TeamProblem, UnknownAgent
from bullpen.files.place import find_place
from bullpen.files.worktree import why_no_worktree
from bullpen.team.instruction_files import InstructionFile, find_instruction_files
from bullpen.team.instruction_imports import ReadInstructions
from bullpen.team.keys import OLD_TEAM_KEYS
from bullpen.team.limit_checks import unmeasured_limits
from bullpen.team.own_memory import why_shared
from bullpen.team.programs_here import finds, not_found
from bullpen.team.reach import agents_reached
from bullpen.team.reader import examine_team
from bullpen.team.sandboxes import NO_NETWORK_NEEDS_COMMAND, is_member_held, of_no_effect, what_fails_within
from bullpen.team.stand_in_checks import stand_in_problems
from bullpen.team.team import Check, Member, Team
from bullpen.team.toml_lines import Path as KeyPath
from bullpen.team.toml_lines import TomlLines
from bullpen.text.clean import byte_length
from bullpen.text.names import listed, nearest
from bullpen.text.plain_commands import is_plain_command


def check_team(
    team: Team, root: Path, *, environ: Mapping[str, str] = os.environ, text: str = ""
) -> tuple[TeamProblem, ...]:
    """Return every problem that would keep a team in this folder from working, and what one should know.

    With the text of the team file, each problem has a line number.
    """
    checks = _Checks(team, root, environ, TomlLines(text))
    return tuple(checks.problems())


def problems_of(text: str, root: Path, *, environ: Mapping[str, str] = os.environ) -> list[TeamProblem]:
    """Return everything that is wrong with the text of a team file in this folder, by its lines; remarks come last."""
    team, problems = examine_team(text)
    here = () if team is None else check_team(team, root, environ=environ, text=text)
    return sorted([*problems, *here], key=lambda one: (one.severity == "remark", one.line or 0))


def problem_at(lines: TomlLines, path: KeyPath, text: str, severity: Severity = "error") -> TeamProblem:
    """Return a problem with the value at a place in a team file."""
    key = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
    return TeamProblem(text, line=lines.line_of(path), key=key, severity=severity)


def hand_over_sentences(team: Team) -> Iterator[str]:
    """Yield a sentence for each agent of a team with several: which others it can hand over to."""
    for agent in team.agents if len(team.agents) > 1 else ():
        freely, if_allowed = (listed(agents_reached(team, agent, how)) for how in ("freely", "if_allowed"))
        who = f"{agent.name} ({_level(agent)})"
        if freely:
            only = f", and to {if_allowed} (full) only with a person's yes" if if_allowed else ""
            yield f"{who} can hand over to {freely}{only}."
        elif if_allowed:
            yield f"{who} can hand over to {if_allowed} (full) only with a person's yes."
        else:
            yield f"{who} cannot hand over to another agent."


def shared_folder_sentences(team: Team, root: Path) -> Iterator[str]:
    """Yield a sentence for each folder in which several agents may edit the same files."""
    places: dict[Path, list[str]] = {}
    for agent in team.agents:
        # On workers, those that share a folder work one after the other.
        if agent.permissions != "read-only" and agent.workspace == "shared" and not agent.pool:
            places.setdefault(find_place(root / agent.cwd).root, []).append(agent.name)
    for place, names in places.items():
        if len(names) > 1:
            yield (
                f"{listed(names)} edit the same files in {place}: asked together, with &, one may overwrite what "
                'another does. workspace = "own" keeps them apart.'
            )


class _Checks:
    """Checks a team, member by member."""

    def __init__(self, team: Team, root: Path, environ: Mapping[str, str], lines: TomlLines) -> None:
        self._team = team
        self._root = root
        self._environ = environ
        self._lines = lines
        self._unrestricted: list[tuple[KeyPath, str]] = []

    def problems(self) -> Iterator[TeamProblem]:
        if self._team.task and (reason := task_too_long(self._team.task)):
            yield self._problem(("task",), reason, "warning")
        if self._team.instruction_file:
            yield from self._instruction_file(("instruction_file",), self._team.instruction_file)
        for key in OLD_TEAM_KEYS:
            if self._lines.has((key,)):
                text = 'is an old key that still works; prompts = "specification" leaves out all that bullpen adds'
                yield self._problem((key,), text, "remark")
        yield from self._limits()
        for index, member in enumerate(self._team.members):
            if member.type == "ai":
                yield from self._member(index, member)
        for index, check in enumerate(self._team.checks):
            yield from self._check(("check", index), check)
        yield from self._seen_only()

    def _seen_only(self) -> Iterator[TeamProblem]:
        """Remark once, for all of them, on commands that say that they edit."""
        for path, _ in self._unrestricted[:1]:
            others = listed([name for _, name in self._unrestricted[1:]])
            also = f" (the same for {others})" if others else ""
            text = f"only keeps others from editing beside it; bullpen cannot restrict what a command does{also}"
            yield self._problem((*path, "permissions"), text, "remark")

    def _check(self, path: KeyPath, check: Check) -> Iterator[TeamProblem]:
        """Check that a command can run after turns, and that there are any after which it does."""
        folder = self._root / check.cwd
        editing = [one for one in self._team.agents if one.permissions != "read-only" or not is_restricted(one.agent)]
        if editing and all(agent.pool for agent in editing):
            text = "runs on the workers that have the files, so it is not looked for here; their files must list it"
            yield self._problem(path, text, "remark")
            return
        if reason := _folder_problem(folder):
            yield self._problem((*path, "cwd"), reason)
        elif check.command:
            spec = command_agent(check.command)
            environment = child_environment(spec, None, self._environ)
            if find_program(spec.program, environment, folder) is None:
                yield self._problem((*path, "command"), not_found(spec, folder))
        if not editing:
            text = "never runs: no agent of this team may change files"
            yield self._problem(path, text, "remark")

    def _limits(self) -> Iterator[TeamProblem]:
        for path, why in unmeasured_limits(self._team):
            yield self._problem(path, why)

    def _member(self, index: int, member: Member) -> Iterator[TeamProblem]:
        path: KeyPath = ("member", index)
        if member.pool:
            yield from self._in_a_pool(path, member)
            return
        if reason := _folder_problem(self._root / member.cwd):
            yield self._problem((*path, "cwd"), reason)
        yield from self._program(path, member)
        yield from self._own_instruction_file(path, member)
        for name in member.env:
            if name not in self._environ:
                yield self._problem((*path, "env"), f"{name} is not set, so it cannot be passed on", "warning")
        yield from self._permissions(path, member)
        yield from self._sandbox(path, member)
        yield from self._may_address(path, member)
        yield from self._allow(path, member)
        yield from self._memory(path, member)
        yield from self._workspace(path, member)
        yield from self._beside_pools(path, member)
        yield from self._stand_ins(path, member)

    def _stand_ins(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Say which stand-ins could not take the role of a member, and which are on other machines."""
        for text, severity in stand_in_problems(self._team, member, self._root, self._environ):
            yield self._problem((*path, "stand_in"), text, severity)

    def _beside_pools(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Warn that nothing is seen of what a member does to files on a node: another node could not take it back."""
        if member.permissions != "read-only" and any(agent.pool for agent in self._team.agents):
            text = (
                f"{member.name} is in no pool, so it runs on the node, where what it changes in files is not shown and "
                "cannot be taken back. A worker on that machine would keep it"
            )
            yield self._problem((*path, "permissions"), text, "warning")

    def _in_a_pool(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Check what can be known here of a member whose turns run on other machines."""
        text = (
            f"its turns run on workers of {member.pool!r}, which needs `bullpen serve --cluster`: its programs are not "
            "looked for here, and `bullpen check --cluster ADDRESS` asks whether workers run them"
        )
        yield self._problem((*path, "pool"), text, "remark")
        if not member.command and member.agent and not is_restricted(member.agent):
            yield self._problem((*path, "agent"), _unknown_agent(member.agent))
        elif len(Path(member.cwd).parts) > 1 and spec_for(member.agent, member.command).instruction_files:
            text = "on a worker, its CLI's rule files are read at the top of the worker's folder only, not further down"
            yield self._problem((*path, "cwd"), text, "remark")
        try:
            check_model(member.model or "default")
        except ValueError as error:
            yield self._problem((*path, "model"), str(error))
        yield from self._permissions(path, member)
        yield from self._may_address(path, member)
        yield from self._allow(path, member)
        yield from self._stand_ins(path, member)
        yield from self._memory(path, member)

    def _program(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        if not member.command and not member.agent:
            return
        try:
            spec = spec_for(member.agent, member.command)
        except UnknownAgent:
            yield self._problem((*path, "agent"), _unknown_agent(member.agent))
            return
        if member.agent and not is_known(member.agent):
            text = f"{member.agent!r} is not a known agent type, so it gets its prompt as plain text"
            yield self._problem((*path, "agent"), text, "warning")
        elif self._team.prompts == "specification" and member.agent and not has_own_layout(spec.name):
            text = f"{member.agent} gets its prompt as plain text: the specification has no layout for it"
            yield self._problem((*path, "agent"), text, "remark")
        if not self._finds(spec, member):
            folder = self._root / member.cwd
            yield self._problem((*path, "command" if member.command else "agent"), not_found(spec, folder))
        try:
            spec.arguments(member.permissions, member.model)
        except ValueError as error:
            yield self._problem((*path, "model" if member.model else "permissions"), str(error))
        asking = spec.with_permissions(member.permissions)
        if member.permissions == "ask" and (
            why := asking.why_not_asked(child_environment(asking, None, self._environ))
        ):
            yield self._problem((*path, "permissions"), why)
        if member.model and not spec.model_flag and spec.driver is None:
            yield self._problem(
                (*path, "model"), "has no effect: bullpen cannot set the model of this program", "warning"
            )

    def _permissions(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        if not is_known(member.agent) and is_member_held(member):
            pass  # the system restricts it, whichever program it is
        elif is_known(member.agent) and not is_restricted(member.agent):
            text = "only decides what is answered: what its program does unasked is up to that program's own settings"
            yield self._problem((*path, "permissions"), text, "remark")
        elif not is_known(member.agent) and member.permissions == "full":
            text = "bullpen cannot restrict what a command does; you are asked before other agents hand over to it"
            yield self._problem((*path, "permissions"), text, "remark")
        elif not is_known(member.agent) and member.permissions != "read-only":
            self._unrestricted.append((path, member.name))
        elif member.command and not is_known(member.agent) and self._lines.has((*path, "permissions")):
            text = "is not enforced: bullpen cannot restrict what a command does, and this one may do anything"
            yield self._problem((*path, "permissions"), text, "warning")
        elif member.permissions == "full":
            text = "this agent may run any command and change any file without being asked"
            yield self._problem((*path, "permissions"), text, "remark")
        if member.permissions != "ask" and member.deny:
            text = 'has no effect: what an agent may never do is only known with permissions = "ask"'
            yield self._problem((*path, "deny"), text, "warning")

    def _sandbox(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Say what has no effect here, or not what it seems."""
        if without := of_no_effect(member):
            yield self._problem((*path, "sandbox"), without, "warning")
        elif not member.network and is_known(member.agent):
            yield self._problem((*path, "network"), NO_NETWORK_NEEDS_COMMAND)
        if fails := what_fails_within(member):
            yield self._problem((*path, "sandbox"), fails, "warning")

    def _may_address(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Warn about hand-overs to members with full permissions that the team file makes free."""
        raised = [name for name in agents_reached(self._team, member, "freely") if self._is_raised(member, name)]
        if raised:
            text = (
                f"lets {member.name} ({member.permissions}) hand over to {listed(raised)} (full) without a person's "
                f"yes, and with it every agent that can hand over to {member.name}"
            )
            yield self._problem((*path, "may_address"), text, "warning")
        # It may name nobody in the team, which is said elsewhere.
        if member.reviews in {agent.name for agent in self._team.agents} and self._is_raised(member, member.reviews):
            text = (
                f"sends what {member.name} ({member.permissions}) asks for to {member.reviews} (full) without a "
                "person's yes: it may have read in the work what to ask for"
            )
            yield self._problem((*path, "reviews"), text, "warning")

    def _is_raised(self, member: Member, name: str) -> bool:
        return member.permissions != "full" and self._team.member(name).permissions == "full"

    def _allow(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Remark on allowed commands that change nothing; one that would not run at all is a warning."""
        if not member.allow or not (member.command or is_restricted(member.agent)):
            return
        rules = spec_for(member.agent, member.command).allow
        if member.permissions == "ask":
            return
        if star := next((rule for rule in member.allow if not is_plain_command(rule)), ""):
            text = f'{star!r} can be allowed only with permissions = "ask", where bullpen answers'
            yield self._problem((*path, "allow"), text)
        elif member.permissions == "full":
            yield self._problem((*path, "allow"), "has no effect: this agent may run any command", "remark")
        elif isinstance(rules, str):
            yield self._problem((*path, "allow"), f"has no effect: {rules}", "remark")
        elif member.permissions not in rules.permissions:
            text = f"has no effect: with allowed commands, this CLI could do more than {member.permissions}"
            yield self._problem((*path, "allow"), text, "warning")

    def _memory(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Check that an agent can remember what the team file says it remembers."""
        if not member.command and not is_restricted(member.agent):
            return
        spec = spec_for(member.agent, member.command)
        why = why_shared(member, spec)
        if member.memory == "own" and why:
            text = f'"own" is not possible: {why}. Write "shared", or choose {_with_sessions()} as the agent'
            yield self._problem((*path, "memory"), text)
        elif member.memory == "own" and spec.sessions is not None and not spec.sessions.is_proven:
            text = (
                f"{member.agent} does not continue a session exactly as it was: its model gets things twice, such as "
                'the results of tools. With "shared", each turn is given the conversation instead'
            )
            yield self._problem((*path, "memory"), text, "warning")
        elif member.memory == "own" and member.command:
            text = f"works only if this command keeps sessions as {member.agent} does; if not, every turn begins one"
            yield self._problem((*path, "memory"), text, "remark")
        if member.memory_tokens is not None and why:
            yield self._problem((*path, "memory_tokens"), f"has no effect: {why}", "remark")
        yield from self._session_arguments(path, member, spec)

    def _session_arguments(self, path: KeyPath, member: Member, spec: AgentSpec) -> Iterator[TeamProblem]:
        """Check that no argument takes the choice of a session from bullpen, which knows what is in its own."""
        sessions = spec.sessions
        if sessions is None:
            return
        for argument in dict.fromkeys(argument.partition("=")[0] for argument in member.arguments):
            if argument in sessions.chosen_by:
                text = (
                    f"{argument} chooses a session, which may be somebody else's; bullpen chooses it for each turn. "
                    f"Take it out; to continue a session of yours: bullpen import --from {spec.short_name} --list"
                )
                yield self._problem((*path, "arguments"), text)
            elif argument in sessions.not_kept_with and not why_shared(member, spec):
                text = f'with {argument} every turn begins a new session: take it out, or write memory = "shared"'
                yield self._problem((*path, "arguments"), text, "warning")

    def _workspace(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Check that an agent can have the worktree of its own that the team file gives it."""
        folder = self._root / member.cwd
        if member.workspace == "own" and member.permissions == "read-only":
            yield self._problem((*path, "workspace"), "has no effect: this agent may not edit files", "remark")
        elif member.workspace == "own" and not _folder_problem(folder) and (reason := why_no_worktree(folder)):
            text = f'"own" is not possible: {reason}, or write "shared"'
            yield self._problem((*path, "workspace"), text)

    def _finds(self, spec: AgentSpec, member: Member) -> bool:
        return finds(spec, member, self._root, self._environ)

    def _own_instruction_file(self, path: KeyPath, member: Member) -> Iterator[TeamProblem]:
        """Check the instruction file that a member names, or else the CLI's usual one, if there is one."""
        if member.instruction_file:
            yield from self._instruction_file((*path, "instruction_file"), member.instruction_file)
        elif member.instruction_file is None and is_known(member.agent):
            usual, allowed = agent_spec(member.agent).instruction_files, self._team.outside_files
            found = find_instruction_files(self._root, self._root / member.cwd, usual, outside_allowed=allowed)
            yield from self._instruction_files(path, *found)

    def _instruction_file(self, path: KeyPath, name: str) -> Iterator[TeamProblem]:
        yield from self._instruction_files(path, InstructionFile(name=name, folder=self._root))

    def _instruction_files(self, path: KeyPath, *files: InstructionFile) -> Iterator[TeamProblem]:
        read = ReadInstructions(outside_allowed=self._team.outside_files)
        for file in files:
            read.add(file)
        for problem in read.problems:
            yield self._problem(path, f"{problem} Agents will work without it", "warning")
        size = sum(map(byte_length, read.texts))
        if size > DEFAULT_MAX_BYTES // 2:
            more = f" with {len(read.names) - 1:,} more" if len(read.names) > 1 else ""
            text = f"{read.names[0]!r}{more} has {size:,} bytes, so agents get only its beginning and end"
            yield self._problem(path, text, "remark")

    def _problem(self, path: KeyPath, text: str, severity: Severity = "error") -> TeamProblem:
        return problem_at(self._lines, path, text, severity)


def _folder_problem(folder: Path) -> str | None:
    try:
        found = folder.stat()
    except PermissionError:
        return f"{folder} cannot be accessed"
    except OSError:
        return f"there is no folder {folder}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{folder} is not a folder"
    return None if os.access(folder, os.R_OK | os.X_OK) else f"{folder} cannot be read"


def _unknown_agent(name: str) -> str:
    if is_known(name):
        return f'{name!r} is a protocol, not a program: add a command, such as command = ["opencode", "acp"]'
    known = [word for spec in known_agents().values() for word in (*spec.aliases, spec.name)]
    close = nearest(name, known)
    advice = f"Did you mean {' or '.join(close)}?" if close else f"Known types: {', '.join(short_names())}."
    return f'there is no agent type {name!r}. {advice} For any other program, use command = ["program"]'


def _with_sessions() -> str:
    """Return the agent types that have a memory of their own, as people write them."""
    specs = known_agents().values()
    names = [spec.short_name for spec in specs if spec.sessions and spec.sessions.is_proven]
    return " or ".join([", ".join(names[:-1]), names[-1]])


def _level(agent: Member) -> str:
    """Return what an agent may do. What a program does that is not a known CLI cannot be restricted."""
    return (
        agent.permissions if is_restricted(agent.agent) or agent.permissions == "full" else "a command: not restricted"
    )
