"""The difference of two texts, by lines: what is copied from the first, and what is new."""

import msgspec

from bullpen.store.packing import DamagedData

SMALLEST_COPY = 64
"""Bytes. A shorter run is written out: naming its place would take as much."""

Part = tuple[int, int] | str
"""A place in the first text, in characters, from one up to another; or new text."""


def delta(before: str, after: str) -> bytes | None:
    """Return how a text differs from another, or None if little of it is the same."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    places = {line: number for number, line in reversed(list(enumerate(old))) if len(line) > 1}
    parts: list[Part] = []
    fresh: list[str] = []
    number = copied = 0
    while number < len(new):
        first = places.get(new[number])
        length = 0 if first is None else _run(old, first, new, number)
        if first is not None and starts[first + length] - starts[first] >= SMALLEST_COPY:
            parts += ["".join(fresh)] if fresh else []
            parts.append((starts[first], starts[first + length]))
            copied += starts[first + length] - starts[first]
            fresh = []
            number += length
        else:
            # Also the lines of a run that is too short: none of them is compared again.
            fresh += new[number : number + max(length, 1)]
            number += max(length, 1)
    parts += ["".join(fresh)] if fresh else []
    return msgspec.json.encode(parts) if 2 * copied > len(after) else None


def applied(before: str, difference: bytes) -> str:
    """Return the second text, or raise DamagedData."""
    try:
        parts = msgspec.json.decode(difference, type=list[Part])
    except msgspec.MsgspecError as error:
        raise DamagedData(f"a difference cannot be read: {error}") from error
    if not all(isinstance(part, str) or 0 <= part[0] <= part[1] <= len(before) for part in parts):
        raise DamagedData("a difference does not fit its text")
    return "".join(part if isinstance(part, str) else before[part[0] : part[1]] for part in parts)


def _run(old: list[str], first: int, new: list[str], number: int) -> int:
    """Return how many lines from two places on are the same."""
    length = 0
    while first + length < len(old) and number + length < len(new) and old[first + length] == new[number + length]:
        length += 1
    return length
