"""Stand-ins: other programs that take a member's role. The role stays what it is; only the program differs."""

from collections.abc import Iterator

from msgspec.structs import replace

from bullpen.team.team import Member, Team

RANKS = ("read-only", "edit", "ask", "full")
"""Permissions, from the least to the most."""


def programs(team: Team, member: Member) -> Iterator[tuple[str, Member]]:
    """Yield the member with its own program, and with each that may stand in for it, by the names in the team file."""
    yield member.name, member
    for by in member.stand_in:
        yield by, in_role(team, member, by)


def in_role(team: Team, member: Member, by: str) -> Member:
    """Return a member whose program is another member's, or an agent type's: all else stays its own.

    What it may do is what the member may. It has no session of its own: the next one may run with another program.
    """
    other = lender(team, member, by)
    return replace(
        member,
        agent=other.agent,
        command=other.command,
        model=other.model,
        arguments=other.arguments,
        env=other.env,
        pool=other.pool,
        memory="shared",
    )


def lender(team: Team, member: Member, by: str) -> Member:
    """Return whose program it is: an agent's of the team, or an agent type's, where the member itself runs."""
    named = (one for one in team.agents if one.name == by)
    return next(named, Member(name=by, type="ai", agent=by, pool=member.pool))


def why_not(member: Member, other: Member) -> str:
    """Return why another member's program could do more in a member's role than the member may; nothing if not."""
    # Nothing else here needs to know the CLIs, and who only looks at conversations does not load them.
    from bullpen.agents.registry import is_restricted

    if not is_restricted(other.agent) and is_restricted(member.agent):
        return f"names {other.name}, whose program nobody can restrict to what {member.name} may do"
    if (other.arguments or other.env) and RANKS.index(other.permissions) > RANKS.index(member.permissions):
        return (
            f"names {other.name}, which has arguments or variables of its own and may do more than {member.name}: "
            "they could let it do so here, too"
        )
    if other.pool != member.pool and member.permissions != "read-only":
        return (
            f"names {other.name}, which runs elsewhere, and {member.name} may change files, which are not there: "
            "only for a member that is read-only can a stand-in be in another pool"
        )
    return ""


def program_key(member: Member) -> str:
    """Return what has a quota of its own: a CLI with a model and an account, where it runs."""
    account = (*member.command, *member.arguments, *member.env)
    program = "/".join(filter(None, (member.agent, member.model, " ".join(account))))
    return f"{program}@{member.pool}" if member.pool else program
