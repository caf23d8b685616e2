"""Which colour each member has: the same one in every door."""

from itertools import cycle

from bullpen.team.team import Team

# Red is for what went wrong, and white for nobody in particular, so both come last.
PALETTE = ("cyan", "magenta", "green", "yellow", "blue", "white", "red")


def colours_of(team: Team) -> dict[str, str]:
    """Return a colour for every member: the one its team file gives, else one that few others have."""
    given = {member.color for member in team.members}
    free = cycle([colour for colour in PALETTE if colour not in given] or PALETTE)
    return {member.name: member.color or next(free) for member in team.members}
