"""Which stand-ins of a team can be used here, and what keeps the others from it."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from bullpen.agents.registry import is_known, short_names, spec_for
from bullpen.errors import Severity, UnknownAgent
from bullpen.team.programs_here import finds, not_found
from bullpen.team.stand_ins import programs
from bullpen.team.team import Member, Team
from bullpen.text.names import listed


def stand_in_problems(
    team: Team, member: Member, root: Path, environ: Mapping[str, str]
) -> Iterator[tuple[str, Severity]]:
    """Yield what is to be known of a member's stand-ins: which cannot take its role, and which are elsewhere."""
    for by, other in programs(team, member):
        if by == member.name:
            continue
        try:
            spec = spec_for(other.agent, other.command)
            spec.arguments(other.permissions, other.model)
        except UnknownAgent:
            known = ", ".join(short_names())
            yield f"{by!r} is neither an agent of this team nor an agent type. Agent types: {known}", "error"
            continue
        except ValueError as error:
            yield f"{by} cannot stand in for {member.name}: {error}", "error"
            continue
        if other.pool != member.pool:
            where = f"on workers of {other.pool!r}" if other.pool else "where the conversation is open"
            yield f"{by} runs {where}: in the role of {member.name} it reads the files of {other.cwd!r} there", "remark"
        elif not other.pool and not finds(spec, other, root, environ):
            yield f"{by} is not ready: {not_found(spec, root / member.cwd)}", "warning"


def stand_in_sentences(team: Team, root: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each member with stand-ins: which of them are here."""
    for member in team.agents:
        here = {
            by: is_known(other.agent)
            for by, other in programs(team, member)
            if by != member.name
            and not other.pool
            and finds(spec_for(other.agent, other.command), other, root, environ)
        }
        if here and all(here.values()):
            yield f"{listed(here)} can stand in for {member.name}, if signed in."
        elif here:
            # A command has no login that bullpen knows of.
            names = [f"{by} (if signed in)" if has_login else by for by, has_login in here.items()]
            yield f"{listed(names)} can stand in for {member.name}."
        elif member.stand_in:
            yield f"Nobody can stand in for {member.name} on this machine."
