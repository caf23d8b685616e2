"""Attention: what in a conversation waits for a person, counted and in words, for titles and notifications."""

from msgspec import Struct

from bullpen.text.clean import one_line
from bullpen.view.activity import ActivityName
from bullpen.view.state import ConversationView

MOST_SHOWN = 120
"""Characters of what an agent would do."""


class Attention(Struct, frozen=True, kw_only=True):
    """What a conversation does now, how many things wait for a person, and the first of them."""

    activity: ActivityName = "asleep"
    count: int = 0
    text: str = ""


def attention(view: ConversationView, person: str | None = None) -> Attention:
    """Return what waits for a person, or for anybody: every decision, or an answer."""
    now = view.activity_for(person).name
    if view.decisions:
        first = view.decisions[0]
        # Of two questions that read alike, the second one is told, too.
        about = f" {one_line(first.shown)[:MOST_SHOWN]}" if first.shown else ""
        return Attention(activity=now, count=len(view.decisions), text=f"{first.text}{about}")
    if view.status == "your_turn" and person in (None, view.waits_for):
        return Attention(activity=now, count=1, text=f"It waits for you, {view.waits_for}.")
    return Attention(activity=now)
