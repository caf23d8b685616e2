"""What a project has for a CLI, and a member does not get because of its permissions: skills, MCP servers, others."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bullpen.agents.folder_settings import SettingsFile, reading
from bullpen.agents.settings_choice import names_of
from bullpen.agents.spec import AgentSpec
from bullpen.permissions import Permission
from bullpen.team.settings_words import settings_words
from bullpen.text.names import listed

FOLDERS = {"skills": "skills", "agents": "subagents", "commands": "commands", "command": "commands"}
"""Folders in the settings of CLIs, and what is in them."""
WORDS = (("MCP server", "MCP servers"), ("hook", "hooks"), ("extension", "extensions"))
OTHERS = "settings"


def left_out_words(spec: AgentSpec, permission: Permission, folder: Path) -> str:
    """Return what a member with these permissions does not get: "skills and MCP servers (.mcp.json, …)"."""
    found = reading(spec.with_permissions(permission).folder_settings, permission, folder)
    # With those that it cannot leave out, it does not start until people have agreed to them.
    return words_of(found.left_out, folder) if found.left_out else ""


def words_of(files: Sequence[SettingsFile], folder: Path) -> str:
    """Return what is in settings files for a folder, and their names."""
    kinds = {kind for file in files for kind in _kinds(folder, file.name)}
    order = [*dict.fromkeys(FOLDERS.values()), *(kind for _, kind in WORDS), OTHERS]
    return f"{listed([kind for kind in order if kind in kinds])} ({names_of(files)})"


def _kinds(folder: Path, name: str) -> Iterator[str]:
    """Yield the kinds of things in a settings file."""
    if kind := next((FOLDERS[part] for part in re.split(r"[/\\]", os.path.dirname(name)) if part in FOLDERS), ""):  # noqa: PTH120
        yield kind
        return
    words = settings_words(folder / name)
    named = [kind for word, kind in WORDS if any(said.startswith(word) for said in words)]
    yield from named or [OTHERS]
