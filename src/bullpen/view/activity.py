"""Activity: what a conversation, a member or a turn does now: four states, each with a word, a shape and a colour."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Light = Literal["green", "red", "yellow", "grey"]
"""The colours that mean something, in every door."""
ActivityName = Literal["working", "waits", "asleep", "failed"]


class Activity(Struct, frozen=True, kw_only=True):
    """One of the four. Its colour never says anything that its sign and its word do not."""

    name: ActivityName
    word: str
    sign: str
    """One column wide in every terminal."""
    light: Light


WORKING = Activity(name="working", word="working", sign="●", light="green")
WAITS = Activity(name="waits", word="waits for you", sign="◆", light="yellow")
ASLEEP = Activity(name="asleep", word="asleep", sign="○", light="grey")
FAILED = Activity(name="failed", word="failed", sign="✗", light="red")

ACTIVITIES: dict[ActivityName, Activity] = {one.name: one for one in (ASLEEP, WORKING, WAITS, FAILED)}
"""The most urgent last."""


def turn_word(state: str) -> str:
    """Return what a turn does or how it ended, in a word."""
    return WORKING.word if state == "running" else state


def most_urgent(names: Iterable[ActivityName]) -> Activity:
    """Return the state of several conversations together."""
    urgency = list(ACTIVITIES)
    return ACTIVITIES[max(names, key=urgency.index, default="asleep")]
