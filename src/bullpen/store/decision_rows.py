"""What people decided, as rows: added with what follows from it, and never changed."""

from sqlite3 import Connection

import msgspec

from bullpen.store.base import Decision
from bullpen.store.packing import DamagedData


def add(db: Connection, conversation: int, decision: Decision) -> None:
    """Add a decision."""
    turns = msgspec.json.encode(decision.turns).decode()
    db.execute(
        "INSERT INTO decisions (conversation, at, person, choice, turns) VALUES (?, ?, ?, ?, ?)",
        (conversation, decision.at, decision.person, decision.choice, turns),
    )


def all_of(db: Connection, conversation: int) -> list[Decision]:
    """Return every decision in a conversation, oldest first."""
    rows = db.execute(
        "SELECT at, person, choice, turns FROM decisions WHERE conversation = ? ORDER BY number", (conversation,)
    )
    return [decision_from(row) for row in rows]


def decision_from(row: tuple[object, ...]) -> Decision:
    """Return the decision in a row, or raise DamagedData."""
    at, person, choice, turns = row
    try:
        ids = msgspec.json.decode(str(turns))
        return msgspec.convert({"at": at, "person": person, "choice": choice, "turns": ids}, Decision)
    except msgspec.MsgspecError as error:
        raise DamagedData(f"a decision cannot be read: {error}") from error
