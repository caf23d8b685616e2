"""Reach: whom an agent can hand over to by itself, whom only with a person's yes, and whom not at all."""

from typing import Literal

from bullpen.team.team import Member, Team

Reach = Literal["freely", "if_allowed", "never"]


def reach(sender: Member, member: Member) -> Reach:
    """Return how one member can hand over to another. What may_address lists is free, and nobody else can be reached.

    Without it, an agent needs a person's yes for a member with full permissions, unless it has them itself: what it
    has read may have told it to ask for something that it may not do.
    """
    if sender.may_address is not None:
        return "freely" if member.name in sender.may_address else "never"
    is_raised = sender.type == "ai" and sender.permissions != "full" and member.permissions == "full"
    return "if_allowed" if is_raised else "freely"


def agents_reached(team: Team, sender: Member, how: Reach) -> list[str]:
    """Return the other agents that one can hand over to in this way."""
    others = (agent for agent in team.agents if agent.name != sender.name)
    return [agent.name for agent in others if reach(sender, agent) == how]
