"""Where the worktrees of agents are: always at the same place, since sessions of CLIs are bound to a folder."""

import hashlib
import os
import re
from pathlib import Path

FOLDER = "worktrees"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def own_path(home: Path, conversation_id: str, member: str) -> Path:
    """Return where the worktree of a member is."""
    conversation = _safe(conversation_id)
    # git calls it by its last part, which must be like nobody else's.
    return Path(os.path.realpath(home)) / FOLDER / conversation / f"{conversation}.{_safe(member)}"


def candidate_path(home: Path, conversation_id: str, member: str, turn_id: str) -> Path:
    """Return where a member works in one turn only, in which others do the same task."""
    own = own_path(home, conversation_id, member)
    return own.with_name(f"{own.name}.{_safe(turn_id)}")


def is_candidates(folder: str) -> bool:
    """Return whether a folder is a worktree for one turn only."""
    path = Path(folder)
    return (
        path.parent.parent.name == FOLDER and path.name.startswith(f"{path.parent.name}.") and path.name.count(".") == 2
    )


def _safe(name: str) -> str:
    """Return a name for a file that is like no other one's."""
    plain = _UNSAFE.sub("-", name)[:40]
    return plain if plain == name else f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
