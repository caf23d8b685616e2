"""What an agent does with tools, a line for each thing."""

from collections.abc import Iterable

from bullpen.terminal.cells import cut
from bullpen.terminal.tables import safe_line
from bullpen.turn_events import TodoItem, ToolFinished, ToolStarted
from bullpen.turns.tool_summary import asked_of

LONGEST = 110
# Their lists are shown as lists.
TODO_TOOLS = frozenset({"TodoWrite", "write_todos", "todo_write"})


def tool_line(tool: ToolStarted) -> str:
    """Return what an agent begins to do."""
    return cut(f"{safe_line(tool.name)}  {safe_line(asked_of(tool.input))}".rstrip(), LONGEST)


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
