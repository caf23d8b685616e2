"""Where bullpen keeps things. Every place can be moved with a variable, and the database with --db."""

import os
import sys
from pathlib import Path


def data_folder() -> Path:
    """Return the folder for conversations: BULLPEN_HOME, else the usual place of the system for a user's data."""
    if chosen := os.environ.get("BULLPEN_HOME"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "bullpen"
    data_home = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification says that a relative path there is to be ignored.
    base = Path(data_home) if data_home.startswith("/") else Path.home() / ".local" / "share"
    return base / "bullpen"


def default_database() -> Path:
    """Return the file that holds every conversation."""
    return data_folder() / "conversations.db"


def trust_file() -> Path:
    """Return the file that says which team files may run their commands."""
    return data_folder() / "trusted.json"
