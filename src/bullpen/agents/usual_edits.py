"""Edits that need no question: of files in the agent's own folder that decide nothing about what agents may do."""

import os.path
from pathlib import PurePath

from bullpen.turn_events import ApprovalAsked

SETTINGS_FOLDERS = frozenset(
    {".agents", ".aws", ".claude", ".codex", ".gemini", ".git", ".github", ".opencode", ".qwen", ".vibe", ".vscode"}
)
"""Folders with settings, hooks and workflows: what is in there makes programs run, of this agent or of another one."""
SETTINGS_FILES = frozenset({"opencode.json", "opencode.jsonc", "team.toml"})
"""Files that are not hidden and say what agents may do."""


def is_usual_edit(question: ApprovalAsked, folder: str) -> bool:
    """Return whether all that is asked for is to change such files, and the changes are shown.

    Hidden files and folders are not among them: hooks of git, workflows and settings of CLIs let something else run.
    """
    if question.kind != "edit" or question.command or not question.diff or not question.paths:
        return False
    root = os.path.realpath(folder)
    return all(_is_usual(os.path.realpath(os.path.join(root, path)), root) for path in question.paths)  # noqa: PTH118


def _is_usual(path: str, root: str) -> bool:
    if os.path.commonpath([path, root]) != root or path == root:
        return False
    parts = PurePath(path).relative_to(root).parts
    return not any(part.startswith(".") for part in parts) and parts[-1] not in SETTINGS_FILES
