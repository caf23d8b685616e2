"""What people decided, as rows: added with what follows from it, and never changed."""

import msgspec

from bullpen.store.base import Decision
from bullpen.store.decision_rows import decision_from
from bullpen.store.postgres.place import CONVERSATION, Place

INSERT = """
    INSERT INTO decisions (conversation, at, person, choice, turns)
    VALUES (%(conversation)s, %(at)s, %(person)s, %(choice)s, %(turns)s)
"""
SELECT = f"SELECT at, person, choice, turns FROM decisions WHERE conversation = {CONVERSATION} ORDER BY number"


def add(place: Place, decision: Decision) -> None:
    """Add a decision."""
    place.ask(
        INSERT,
        conversation=place.found().number,
        at=decision.at,
        person=decision.person,
        choice=decision.choice,
        turns=msgspec.json.encode(decision.turns).decode(),
    )


def all_of(place: Place) -> list[Decision]:
    """Return every decision in a conversation, oldest first."""
    return [decision_from(row) for row in place.all(SELECT)]
