"""Where bullpen stores its files, and what else environment variables decide. --db names another database."""

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """Return the folder for conversations: BULLPEN_HOME, else the system's usual place for user data."""
    if chosen := os.environ.get("BULLPEN_HOME"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "bullpen"
    data_home = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says to ignore a relative path.
    base = Path(data_home) if data_home.startswith("/") else Path.home() / ".local" / "share"
    return base / "bullpen"


def state_folder() -> Path:
    """Return the folder for what is needed only while something runs: sockets, locks, records of processes."""
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:
        # No home folder: a container may run us as a user id without a name.
        import tempfile

        state = Path(tempfile.gettempdir(), f"bullpen-{os.getuid()}")
    return state / "bullpen"


def default_database() -> Path:
    """Return the file with all conversations."""
    return data_folder() / "conversations.db"


def trust_file() -> Path:
    """Return the file that says which team files may run their commands."""
    return data_folder() / "trusted.json"


def standing_answers_file() -> Path:
    """Return where it is recorded what people have allowed agents once and for all."""
    return data_folder() / "allowed-for-good.json"


def prices_file() -> Path:
    """Return where the list of prices is that a person has imported."""
    return data_folder() / "prices.json"


def is_yes(value: str | None) -> bool:
    """Return whether an environment variable says yes."""
    return (value or "").strip().lower() in ("1", "true", "yes", "on")


def wants_telemetry() -> bool:
    """Return whether traces and metrics are asked for."""
    return is_yes(os.environ.get("BULLPEN_TELEMETRY"))


DEPTH_VARIABLE = "BULLPEN_DEPTH"
"""Set for every program that takes a turn: how many bullpens there are above it, since a team may be a member."""


def depth() -> int:
    """Return how many bullpens there are above this process."""
    said = os.environ.get(DEPTH_VARIABLE, "")
    return int(said) if said.isdecimal() and len(said) < 10 else 0


def program_path(path: str | None = None) -> str:
    """Return PATH without folders that depend on where we are: a cloned repository may have a `./bin/git`."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if os.path.isabs(folder))  # noqa: PTH117
