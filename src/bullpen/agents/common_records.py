"""Records that several CLIs write in the same form under different names: counts, prices, usage, to-do lists."""

from collections.abc import Iterable
from typing import Any

from bullpen.turn_events import TodoItem, TodoList, Usage


def count(value: object) -> int:
    """Return a count that a CLI reports, or 0 if it is not a valid one."""
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def price(dollars: object) -> float | None:
    """Return what a CLI says that something cost, or None if that cannot be a price."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float):
        return None
    return float(dollars) if 0 <= dollars < 2**53 else None


def usage(counts: object, *, cached: str) -> Usage:
    """Return what a turn used; `cached` is the CLI's name for cached tokens."""
    counts = counts if isinstance(counts, dict) else {}
    return Usage(
        input_tokens=count(counts.get("input_tokens")),
        output_tokens=count(counts.get("output_tokens")),
        cached_tokens=count(counts.get(cached)),
    )


def todo_list(todos: Iterable[Any], *, text: str) -> TodoList:
    """Return a to-do list; `text` is the CLI's name for the text of an item."""
    return TodoList(tuple(_todo(todo, text) for todo in todos))


def _todo(todo: Any, text: str) -> TodoItem:
    if isinstance(todo, dict) and isinstance(item := todo.get(text), str) and "status" in todo:
        return TodoItem(item, done=todo["status"] == "completed")
    return TodoItem(str(todo), done=False)
