"""`lead` in a team file: one agent, or several as in [NEXT: …], who answer a person who names nobody."""

import re
from functools import lru_cache

from bullpen.markers.grammar import Addressee, Markers, read_markers

_SEVERAL = re.compile("[,，、&＆|｜]")
"""What is between names, and cannot be in one."""


@lru_cache(maxsize=64)
def read_lead(lead: str) -> Markers:
    """Return what a lead means, as if a message said so."""
    return read_markers(f"[NEXT: {lead}]") if _SEVERAL.search(lead) else Markers(next=((Addressee(lead),),))


def first_to_answer(lead: str) -> tuple[str, ...]:
    """Return who answers first: those that a lead begins with."""
    return tuple(addressee.name for group in read_lead(lead).next[:1] for addressee in group)
