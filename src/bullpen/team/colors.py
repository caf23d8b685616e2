"""The color of each member: the same one in the terminal, on the full screen and in the browser."""

from itertools import cycle

from bullpen.team.team import Team

# Red is for errors and white is neutral, so both come last.
PALETTE = ("cyan", "magenta", "green", "yellow", "blue", "white", "red")


def colours_of(team: Team) -> dict[str, str]:
    """Return a color for every member: the one in the team file, else one that few others have."""
    given = {member.color for member in team.members}
    free = cycle([color for color in PALETTE if color not in given] or PALETTE)
    return {member.name: member.color or next(free) for member in team.members}
