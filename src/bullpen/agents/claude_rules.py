"""Lets nothing be allowed by rules that the user has written for Claude Code alone, and keeps what these deny.

The CLI takes rules from the program that starts it. Then it ignores all others, even those that deny, so these are
passed on.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bullpen.agents.tool_server import SERVER

ASKED = ("Bash", "Edit", "Monitor", "NotebookEdit", "Write")
"""Tools that run commands or change files. By itself it asks for some of their calls, and for those in its own mode for
edits and those that it takes for harmless it does not."""
FREE = (
    *("Agent", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "ListAgents", "ListMcpResourcesTool", "Read"),
    *("ReadMcpResourceTool", "ReportFindings", "Skill", "TaskStop", "TodoWrite", "ToolSearch", "WebFetch"),
    *("WebSearch", "Workflow"),
)
"""Its other tools of which no more than a question or a subagent comes, or before which it asks by itself."""
OFFERED = ("--tools", ",".join((*ASKED, *FREE)))
"""All that it has unless it may do everything. What is on neither list, it does not have: tools that plan prompts for
later (CronCreate, ScheduleWakeup), change its own settings, speak with other sessions, or make a git worktree."""
DENIED = ("Agent(isolation:*)",)
"""A subagent in a git worktree and with a branch: another folder than the one that it was given."""
_FROM_ITS_FOLDER = re.compile(r"^(\w+)\(/(?!/)")
"""A rule for a path that begins at the folder of the settings."""


def rule_arguments(environment: Mapping[str, str], has_tools: bool) -> tuple[str, ...]:
    """Return the arguments that give the CLI its rules."""
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or Path(environment.get("HOME", "~"), ".claude")).expanduser()
    strict = _strict_rules(folder)
    rules = {
        "allow": [f"mcp__{SERVER}"] if has_tools else [],
        "deny": [*DENIED, *strict.get("deny", ())],
        "ask": [*ASKED, *strict.get("ask", ())],
    }
    settings = {
        "allowManagedPermissionRulesOnly": True,
        "permissions": rules,
        # Otherwise the user's own sandbox would let commands run unasked.
        "sandbox": {"autoAllowBashIfSandboxed": False},
    }
    return ("--managed-settings", msgspec.json.encode(settings).decode())


def _strict_rules(folder: Path) -> dict[str, list[str]]:
    """Return the user's rules on what is denied or asked. Settings that cannot be read, the CLI ignores as well."""
    try:
        settings: Any = msgspec.json.decode((folder / "settings.json").read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    permissions = settings.get("permissions") if isinstance(settings, dict) else None
    if not isinstance(permissions, dict):
        return {}
    lists = {name: permissions.get(name) for name in ("deny", "ask")}
    return {
        name: [
            _FROM_ITS_FOLDER.sub(lambda found: f"{found[1]}(/{folder}/", rule)
            for rule in rules
            if isinstance(rule, str)
        ]
        for name, rules in lists.items()
        if isinstance(rules, list)
    }
