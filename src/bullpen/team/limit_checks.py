"""Limits that cannot be measured for everybody: one that counts nothing would hold nobody."""

from collections.abc import Iterator, Sequence

from bullpen.agents.registry import is_restricted, spec_for
from bullpen.prices.lists import Prices
from bullpen.team.stand_ins import programs
from bullpen.team.team import Member, Team
from bullpen.text.names import listed

INSTEAD = "Limit minutes or turns_per_message instead"


def unmeasured_limits(team: Team) -> Iterator[tuple[str, str]]:
    """Yield each limit that cannot hold, and why."""
    limits, prices = team.limits, Prices(team.prices)
    silent, counting = _that_report("nothing", team), _that_report("tokens", team)
    unpriced = [member for member in counting if prices.of(member.model) is None]
    if limits.cost_usd is not None and silent:
        why = f"whose program reports neither money nor tokens. {INSTEAD}"
        yield "cost_usd", f"cannot be measured for {_names(silent)}, {why}"
    if limits.cost_usd is not None and unpriced:
        why = (
            f"whose CLI reports tokens only: {_models(unpriced)}. Set a model that `bullpen prices` knows, or add its "
            "price to [prices]"
        )
        yield "cost_usd", f"cannot be measured for {_names(unpriced)}, {why}"
    if limits.tokens is not None and silent:
        yield "tokens", f"cannot be measured for {_names(silent)}, whose program reports no tokens. {INSTEAD}"


def _that_report(what: str, team: Team) -> list[Member]:
    """Return the agents whose programs, or whose stand-ins' programs, report only this of what they use."""
    all_of = [one for member in team.agents for _, one in programs(team, member)]
    known = [member for member in all_of if member.command or is_restricted(member.agent)]
    return [member for member in known if _reports(member) == what]


def _reports(member: Member) -> str:
    return spec_for(member.agent, member.command).with_permissions(member.permissions).reports


def _names(members: Sequence[Member]) -> str:
    return listed(dict.fromkeys(member.name for member in members))


def _models(members: Sequence[Member]) -> str:
    named = list(dict.fromkeys(member.model for member in members if member.model))
    return f"nobody knows the price of {listed(named)}" if named else "nobody knows which model it uses"
