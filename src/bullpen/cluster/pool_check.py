"""Whether the workers of a cluster run what a team needs: each pool has one, whose own file allows it."""

from collections.abc import Iterator, Sequence

from bullpen.agents.registry import spec_for
from bullpen.cluster.orders import work_for
from bullpen.cluster.survey import Seen, Survey
from bullpen.context.prompt import AssemblerOutput
from bullpen.errors import NotAllowedHere, TeamProblem
from bullpen.team.checks import problem_at
from bullpen.team.stand_ins import programs
from bullpen.team.team import Check, Member, Team
from bullpen.team.toml_lines import TomlLines

ANNOUNCES_NOTHING = "it does not say what it runs"


def pool_problems(team: Team, text: str, found: Survey) -> list[TeamProblem]:
    """Return what would keep the members of a team that are in pools from working now, with lines of its file."""
    lines = TomlLines(text)
    problems = [
        problem_at(lines, ("member", index, "pool"), said, "error" if is_error else "warning")
        for index, member in enumerate(team.members)
        if member.pool
        for said, is_error in _of_member(member, found)
    ]
    problems += [
        problem_at(lines, ("member", index, "stand_in"), f"{by} is not ready: {said}", "warning")
        for index, member in enumerate(team.members)
        for by, other in programs(team, member)
        if by != member.name and other.pool
        for said, _ in _of_member(other, found)
    ]
    pools = {member.pool for member in team.agents if member.pool and member.permissions != "read-only"}
    workers = [seen for pool in sorted(pools) for seen in _workers(found, pool)]
    for index, check in enumerate(team.checks):
        refusals = {found.called(seen): reason for seen in workers if (reason := _refused_check(seen, check))}
        problems += [problem_at(lines, ("check", index), said, "warning") for said in _lines(refusals, "")]
    return problems


def _of_member(member: Member, found: Survey) -> Iterator[tuple[str, bool]]:
    """Yield what is wrong with the workers of a member's pool, and whether none is left then."""
    workers = _workers(found, member.pool)
    if not workers:
        yield f"no worker serves {member.pool!r} now, so turns of {member.name} would wait for one", True
    refusals = {found.called(seen): reason for seen in workers if (reason := _refused(seen, member))}
    is_nobody = len(refusals) == len(workers)
    for said in _lines(refusals, f" of {member.pool!r}"):
        yield said, is_nobody


def _lines(refusals: dict[str, str], of_pool: str) -> Iterator[str]:
    for name, reason in refusals.items():
        yield f"the worker {name}{of_pool} does not run this: {reason}"


def _workers(found: Survey, pool: str) -> Sequence[Seen]:
    return [seen for seen in found.processes if seen.kind == "worker" and pool in seen.pools and not seen.is_stale]


def _refused(seen: Seen, member: Member) -> str:
    """Return why a worker would not run a member; empty: it would."""
    allows = seen.announced.allows
    if allows is None:
        return ANNOUNCES_NOTHING
    work = work_for(member, AssemblerOutput(prompt=""))
    try:
        allows.check(work)
        allows.spec_for(work)
    except NotAllowedHere as error:
        return str(error)
    if not seen.announced.has_folder(member.cwd):
        return f"{member.cwd!r} is not in one of its folders ({', '.join(seen.announced.folders)})"
    name = spec_for(member.agent, member.command).name
    problems = [one for agent in seen.announced.agents if agent.name == name for one in agent.problems]
    return f"{member.agent} is not ready there: {' '.join(problems)}" if problems and not member.command else ""


def _refused_check(seen: Seen, check: Check) -> str:
    if seen.announced.allows is None:
        return ANNOUNCES_NOTHING
    try:
        seen.announced.allows.check_command(check.command)
    except NotAllowedHere as error:
        return str(error)
    return ""
