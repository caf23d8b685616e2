"""Modes: whom a message asks that names nobody. An editor lets people choose one."""

from typing import Any

from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError
from bullpen.team.team import EVERYONE, Team
from bullpen.view.addressees import WHO_ANSWERS

DEFAULT = "default"
"""As in every other door. Programs that choose a mode by themselves know this name."""


def modes_of(team: Team, current: str) -> dict[str, Any]:
    """Return the modes of a team, as an editor is told."""
    offered = [{"id": DEFAULT, "name": "Team", "description": WHO_ANSWERS}]
    for agent in team.agents:
        about = f"Ask {agent.name}{f' ({agent.role})' if agent.role else ''}"
        offered.append({"id": f"@{agent.name}", "name": agent.name, "description": about})
    if len(team.agents) > 1:
        offered.append({"id": f"@{EVERYONE}", "name": "Everyone", "description": "Ask all agents, one after the other"})
    return {"currentModeId": current, "availableModes": offered}


def check_mode(team: Team, mode: str) -> None:
    """Raise an error if a team has no such mode."""
    known = [one["id"] for one in modes_of(team, mode)["availableModes"]]
    if mode not in known:
        raise BullpenError(f"There is no mode {mode!r}. There are: {', '.join(known)}.")


def addressed(conversation: Conversation, text: str, mode: str, sender: str | None) -> str:
    """Return a message with whom the mode asks, unless it names somebody itself."""
    route = conversation.route_of(text, sender=sender)
    if mode == DEFAULT or not route.reason:
        return text
    return f"{text}\n\n[NEXT: {', '.join([mode.removeprefix('@'), *route.added])}]"
