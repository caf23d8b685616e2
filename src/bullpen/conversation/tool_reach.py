"""Which files a tool may change, by its name and what it is given: those that it names, none, or any."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

Reach = frozenset[str] | None
"""The paths from the root that a tool may change; None: any."""

ANY: Reach = None
NOTHING: Reach = frozenset()
ONLY_READS = frozenset(
    # claude
    {"Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "BashOutput", "ToolSearch"}
    # gemini, qwen
    | {"read_file", "read_many_files", "list_directory", "glob", "grep_search", "search_file_content", "web_fetch"}
    | {"google_web_search", "write_todos", "todo_write"}
    # codex
    | {"web_search"}
)
NAMES_ITS_FILE = {
    **dict.fromkeys(("Edit", "MultiEdit", "Write", "replace", "edit", "write_file"), "file_path"),
    "NotebookEdit": "notebook_path",
}
LISTS_ITS_FILES = {"file_change": "changes"}


def reach_of(tool: str, given: Mapping[str, Any], root: str, folder: str) -> Reach:
    """Return which files below a root a tool may change whose agent works in a folder."""
    if tool in ONLY_READS:
        return NOTHING
    if tool in NAMES_ITS_FILE:
        path = given.get(NAMES_ITS_FILE[tool])
        return named([path], root, folder) if isinstance(path, str) else ANY
    match given.get(LISTS_ITS_FILES.get(tool, "")):
        case [*changes] if all(isinstance(one, dict) and isinstance(one.get("path"), str) for one in changes):
            return named([one["path"] for one in changes], root, folder)
        case _:
            return ANY


def named(paths: Iterable[str], root: str, folder: str) -> frozenset[str]:
    """Return files that an agent names as paths from the root, without those that are not below it."""
    found = (_below(root, Path(folder, path)) for path in paths)
    return frozenset(path for path in found if path)


def _below(root: str, path: Path) -> str:
    try:
        # The file itself may be a link, which is what changes.
        real = Path(os.path.realpath(path.parent), path.name)
        return str(real.relative_to(root))
    except ValueError:
        # Not below it; or a path with a zero byte.
        return ""
