"""What several CLIs report in the same shape, under other names: numbers, what a turn used, things to do."""

from collections.abc import Iterable
from typing import Any

from bullpen.turn_events import TodoItem, TodoList, Usage


def count(value: object) -> int:
    """Return a number that a CLI reports, and 0 for whatever else stands in its place."""
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def usage(counts: object, *, cached: str) -> Usage:
    """Return what a turn used; `cached` is what the CLI calls the tokens that it did not have to send again."""
    counts = counts if isinstance(counts, dict) else {}
    return Usage(
        input_tokens=count(counts.get("input_tokens")),
        output_tokens=count(counts.get("output_tokens")),
        cached_tokens=count(counts.get(cached)),
    )


def todo_list(todos: Iterable[Any], *, text: str) -> TodoList:
    """Return a list of things to do; `text` is what the CLI calls the words of each."""
    return TodoList(tuple(_todo(todo, text) for todo in todos))


def _todo(todo: Any, text: str) -> TodoItem:
    if isinstance(todo, dict) and isinstance(said := todo.get(text), str) and "status" in todo:
        return TodoItem(said, done=todo["status"] == "completed")
    return TodoItem(str(todo), done=False)
