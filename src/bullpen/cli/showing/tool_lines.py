"""What an agent does with tools, a line for each thing."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from bullpen.cli.showing.columns import cut
from bullpen.cli.showing.screen import safe_line
from bullpen.events import TodoItem, ToolFinished, ToolStarted

LONGEST = 110
# What tells most about a call, in this order.
TELLING = ("command", "file_path", "path", "absolute_path", "pattern", "query", "url", "prompt", "description")
# Their lists are shown as lists.
TODO_TOOLS = frozenset({"TodoWrite", "write_todos", "todo_write"})

# Codex tells every command so.
_IN_A_SHELL = re.compile(r"\A/bin/(?:ba|z|da)?sh -l?c '([^']*)'\Z")


def tool_line(tool: ToolStarted) -> str:
    """Return what an agent begins to do."""
    return cut(f"{safe_line(tool.name)}  {_short_input(tool.input)}".rstrip(), LONGEST)


def result_line(result: ToolFinished) -> str:
    """Return what came of it."""
    lines = [line for line in result.output.strip().splitlines() if line.strip()]
    said = cut(safe_line(lines[0]).strip(), LONGEST) if lines else ""
    more = f" (+{len(lines) - 1:,} lines)" if len(lines) > 1 else ""
    changed = ", ".join(map(safe_line, result.changed_files))
    parts = [part for part in (said + more, f"changed {changed}" if changed else "") if part]
    return " · ".join(parts) or ("failed" if result.failed else "done")


def todo_line(items: Iterable[TodoItem]) -> str:
    """Return a list of things to do on one line."""
    return "  ".join(f"{'☑' if item.done else '☐'} {safe_line(item.text)}" for item in items)


def _short_input(values: Mapping[str, Any]) -> str:
    for name in TELLING:
        if isinstance(said := values.get(name), str):
            return safe_line(_IN_A_SHELL.sub(r"\1", said))
    if isinstance(changes := values.get("changes"), list):
        return safe_line(", ".join(str(change.get("path", "")) for change in changes if isinstance(change, dict)))
    return safe_line(json.dumps(values, ensure_ascii=False, default=str)) if values else ""
