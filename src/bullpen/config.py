"""Where bullpen stores its files. Environment variables can change each location, and --db that of the database."""

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


def default_database() -> Path:
    """Return the file with all conversations."""
    return data_folder() / "conversations.db"


def trust_file() -> Path:
    """Return the file that says which team files may run their commands."""
    return data_folder() / "trusted.json"
