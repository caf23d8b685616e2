"""What is wrong with who reviews whom in a team file."""

from collections.abc import Iterator

from bullpen.team.table_reader import Path, shown, suggestion
from bullpen.team.team import Member, Team

MOST_ROUNDS = Member(name="", type="ai").most_rounds


def review_problems(team: Team) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong, each with the place in the file."""
    seen: dict[str, str] = {}
    for index, member in enumerate(team.members):
        path: Path = ("member", index)
        if not member.reviews:
            yield from _without_effect(member, path)
            continue
        if member.until is None:
            yield (*path, "reviews"), 'needs until = "approved", which ends the review'
        if problem := _why_not(team, member):
            yield (*path, "reviews"), problem
        elif other := seen.get(member.reviews):
            yield (
                (*path, "reviews"),
                f"{other} reviews {shown(member.reviews)} already. One agent reviews another's work",
            )
        seen.setdefault(member.reviews, member.name)


def _without_effect(member: Member, path: Path) -> Iterator[tuple[Path, str]]:
    if member.until is not None:
        yield (*path, "until"), 'has an effect only with reviews = "NAME", whose work is reviewed'
    elif member.most_rounds != MOST_ROUNDS:
        yield (*path, "most_rounds"), 'has an effect only with reviews = "NAME", whose work is reviewed'


def _why_not(team: Team, member: Member) -> str:
    agents = {agent.name: agent for agent in team.agents}
    if member.reviews == member.name:
        return "an agent cannot review its own work. Name another one"
    if member.reviews in (person.name for person in team.people):
        return f"{shown(member.reviews)} is a person. Name an agent"
    if member.reviews not in agents:
        return f"there is no such agent: {shown(member.reviews)}.{suggestion(member.reviews, list(agents))}"
    if agents[member.reviews].reviews:
        return f"{shown(member.reviews)} reviews somebody itself, and what a reviewer says is not reviewed"
    return ""
