"""`python -m proofs.torture.planted kills|loops COUNT SEED FOLDER`: the same with a fault that it must find."""

import json
import sys
from pathlib import Path

from proofs.torture import kills, loops
from proofs.torture.teams import tell_agents_their_turns

from bullpen.conversation import turn_loop
from bullpen.routing.progress import Progress
from bullpen.store.base import Owner, Turn
from bullpen.store.sqlite import SqliteStore
from bullpen.team.team import Limits


def no_recovery(self: SqliteStore, conversation_id: str, *, at: int, owner: Owner | None = None) -> list[Turn]:
    """Take what a killed process ran for something that still runs."""
    return []


def no_cap(progress: Progress, limits: Limits, now: int) -> str | None:
    """Let everything go on for ever."""
    return None


def plenty(progress: Progress, limits: Limits) -> int:
    """Count nothing."""
    return 100


if __name__ == "__main__":
    which, count, seed, folder = sys.argv[1:]
    tell_agents_their_turns()
    if which == "kills":
        setattr(SqliteStore, "recover", no_recovery)  # noqa: B010
        found = kills.Torture(Path(folder), int(seed)).run(int(count), rounds=1)
    else:
        loops.LONGEST_SECONDS = 2
        setattr(turn_loop, "cap_reached", no_cap)  # noqa: B010
        setattr(turn_loop, "room_for_turns", plenty)  # noqa: B010
        found = loops.Loops(Path(folder), int(seed)).run(int(count))
    print(json.dumps(found))
