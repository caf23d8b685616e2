"""Records that several CLIs write in the same form under different names: counts, prices, usage, to-do lists."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from bullpen.turn_events import Quota, TodoItem, TodoList, Usage

MOST_SHARE = 1000
"""No quota is used a thousand times."""


def count(value: object) -> int:
    """Return a count that a CLI reports, or 0 if it is not a valid one."""
    return value if isinstance(value, int) and 0 <= value < 2**53 else 0


def price(dollars: object) -> float | None:
    """Return what a CLI says that something cost, or None if that cannot be a price."""
    if isinstance(dollars, bool) or not isinstance(dollars, int | float):
        return None
    return float(dollars) if 0 <= dollars < 2**53 else None


def quota(share: object, resets_at: object) -> Quota | None:
    """Return how much of a quota a CLI says is used; None if that cannot be a share."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < MOST_SHARE:
        return None
    return Quota(used=float(share), resets_at=count(resets_at))


def most_used(quotas: Iterable[Quota | None]) -> Quota | None:
    """Return the quota of which most is used."""
    return max(filter(None, quotas), key=lambda one: one.used, default=None)


def reset_at(used: Quota | None) -> str | None:
    """Return when a quota that is used up begins again, as a failure says it."""
    if used is None or used.used < 1 or not used.resets_at:
        return None
    try:
        return datetime.fromtimestamp(used.resets_at, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


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
