"""Limits and budgets that cannot be measured for everybody: one that counts nothing would hold nobody."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from bullpen.agents.registry import is_restricted, spec_for
from bullpen.prices.lists import Prices
from bullpen.team.stand_ins import programs
from bullpen.team.team import Budget, Limits, Member, Team
from bullpen.text.names import listed

Path = tuple[str | int, ...]
INSTEAD = "Limit minutes or turns_per_message instead"
GIVE_INSTEAD = "Give it minutes or turns instead"


def unmeasured_limits(team: Team) -> Iterator[tuple[Path, str]]:
    """Yield each limit and budget that cannot hold, by its place in the team file, and why."""
    everyone = [one for member in team.agents for one in _called(team, member)]
    prices = Prices(team.prices)
    for key, why in _unmeasured(team.limits, everyone, prices, INSTEAD):
        yield ("limits", key), why
    for key, why in _unmeasured(team.budget, everyone, prices, GIVE_INSTEAD):
        yield ("budget", key), why
    for index, member in enumerate(team.members):
        for key, why in _unmeasured(member.budget, list(_called(team, member)), prices, GIVE_INSTEAD):
            yield ("member", index, "budget", key), why


def _called(team: Team, member: Member) -> Iterator[Member]:
    """Yield a member and those that may stand in for it, each with the name of whose program it is."""
    names = {one.name for one in team.agents}
    for by, one in programs(team, member):
        yield replace(one, name=by if by in names else f"{by} (a stand-in for {member.name})")


def _unmeasured(
    caps: Limits | Budget, agents: Sequence[Member], prices: Prices, instead: str
) -> Iterator[tuple[str, str]]:
    silent, counting = _that_report("nothing", agents), _that_report("tokens", agents)
    unpriced = [member for member in counting if prices.of(member.model) is None]
    if caps.cost_usd is not None and silent:
        why = f"whose program reports neither money nor tokens. {instead}"
        yield "cost_usd", f"cannot be measured for {_names(silent)}, {why}"
    if caps.cost_usd is not None and unpriced:
        why = (
            f"whose CLI reports tokens only: {_models(unpriced)}. Set a model that `bullpen prices` knows, or add its "
            "price to [prices]"
        )
        yield "cost_usd", f"cannot be measured for {_names(unpriced)}, {why}"
    if caps.tokens is not None and silent:
        yield "tokens", f"cannot be measured for {_names(silent)}, whose program reports no tokens. {instead}"


def _that_report(what: str, agents: Iterable[Member]) -> list[Member]:
    """Return the agents whose programs report only this of what they use."""
    known = [member for member in agents if member.command or is_restricted(member.agent)]
    return [member for member in known if _reports(member) == what]


def _reports(member: Member) -> str:
    return spec_for(member.agent, member.command).with_permissions(member.permissions).reports


def _names(members: Sequence[Member]) -> str:
    return listed(dict.fromkeys(member.name for member in members))


def _models(members: Sequence[Member]) -> str:
    named = list(dict.fromkeys(member.model for member in members if member.model))
    return f"nobody knows the price of {listed(named)}" if named else "nobody knows which model it uses"
