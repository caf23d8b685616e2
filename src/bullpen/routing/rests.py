"""Rest: for how long a program is left alone that is out of quota, overloaded, not signed in or not installed."""

from collections.abc import Collection, Mapping

from msgspec import Struct

from bullpen.team.stand_ins import program_key, programs
from bullpen.team.team import Member, Team
from bullpen.turn_events import FailureKind

REST_SECONDS: Mapping[FailureKind, int] = {
    "quota": 30 * 60,
    "overloaded": 2 * 60,
    "not_signed_in": 10 * 60,
    "not_installed": 10 * 60,
}
"""After these failures another program may stand in for it. For how long, if nobody says when it is back."""
BACKOFF_SECONDS = (5, 15, 45, 120, 300)
"""Before a turn is tried again whose vendor is overloaded; the last one is repeated."""
LEAST_SECONDS = 20
"""Even if a vendor names less: a request in every second is not a rest."""
WHY: Mapping[FailureKind, str] = {
    "quota": "its quota is used up",
    "overloaded": "its vendor is overloaded or cannot be reached",
    "not_signed_in": "it is not signed in",
    "not_installed": "it is not installed",
}
WHY_OF: Mapping[FailureKind, str] = {
    "quota": "{}'s quota is used up",
    "overloaded": "{}'s vendor is overloaded or cannot be reached",
    "not_signed_in": "{} is not signed in",
    "not_installed": "{}'s program is not installed",
}


class Rest(Struct, frozen=True, kw_only=True):
    """Why a program is not used, and until when."""

    why: FailureKind
    until: int


class QuotaUse(Struct, frozen=True, kw_only=True):
    """How much of a program's quota is used, as its CLI reported it last."""

    used: float
    until: int
    """In milliseconds since 1970: when it begins again."""


def awake(
    team: Team,
    member: Member,
    rests: Mapping[str, Rest],
    now: int,
    tried: Collection[str] = (),
    *,
    is_spared: bool = False,
) -> str | None:
    """Return by which name a member can take a turn now: its own, else that of a stand-in; None if all rest.

    A program of its own that is spared takes it only if no stand-in can.
    """
    free = []
    for name, one in programs(team, member):
        rest = rests.get(program_key(one))
        if name not in tried and (rest is None or rest.until <= now):
            free.append(name)
    others = [name for name in free if name != member.name] if is_spared else []
    return next(iter(others or free), None)


def wakes(team: Team, member: Member, rests: Mapping[str, Rest], now: int) -> Rest | None:
    """Return the rest of a member's programs that ends first, if all of them rest; None if one can be used."""
    found = [rests.get(program_key(one)) for _, one in programs(team, member)]
    resting = [rest for rest in found if rest is not None and rest.until > now]
    return min(resting, key=lambda rest: rest.until) if len(resting) == len(found) else None


def asleep(team: Team, rests: Mapping[str, Rest], now: int) -> dict[str, int]:
    """Return the members for whom nobody can take a turn now, and when the first program can.

    Without stand-ins, that is only while a turn is tried again later. Else a person decides, and it may be tried.
    """
    if not rests:
        return {}
    found = [(member, wakes(team, member, rests, now)) for member in team.agents]
    return {
        member.name: rest.until
        for member, rest in found
        if rest is not None and (member.stand_in or (rest.why == "overloaded" and team.limits.overload_retries))
    }
