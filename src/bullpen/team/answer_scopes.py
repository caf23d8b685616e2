"""For how long a yes may hold: for longer than once only if all that it is about is in the agent's own folder."""

import os.path
import re
from collections.abc import Iterator

from bullpen.agents.free_reading import is_inside
from bullpen.team.approval_rules import MORE_THAN_ASKED
from bullpen.turn_events import ApprovalAsked

_PATH = re.compile(r"(?:file:|[/~])|(?:.*[/\\])?\.\.(?:[/\\]|\Z)")
"""A value that may lead out of a folder."""


def may_hold_longer(asked: ApprovalAsked) -> bool:
    """Return whether a yes may hold for longer than once: it names no file outside, and widens nothing."""
    if not MORE_THAN_ASKED.isdisjoint(asked.details) or (asked.kind == "edit" and not asked.paths):
        return False
    named = () if asked.kind in ("command", "network") else _values(asked.details)
    paths = (*asked.paths, *(value for value in named if _PATH.match(value)))
    return all(_is_inside(path, asked.folder) for path in paths)


def _is_inside(path: str, folder: str) -> bool:
    if not folder or path.startswith(("~", "file:")) or "\0" in path:
        return False
    return is_inside(os.path.join(folder, path), folder)  # noqa: PTH118


def _values(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list() | tuple():
            for item in value:
                yield from _values(item)
        case dict():
            for item in value.values():
                yield from _values(item)
