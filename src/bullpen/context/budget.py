"""Spending bytes: a budget for the sections of one prompt, and the newest lines that fit into it."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

SECTION_SEPARATOR = "\n\n"


class _HasSize(Protocol):
    @property
    def size(self) -> int: ...


Sized = TypeVar("Sized", bound=_HasSize)


class Budget:
    """What one prompt may still spend, and what each section has cost."""

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes
        self.section_bytes = {"system": 0, "team_task": 0, "context": 0, "message": 0, "separators": 0}
        self._next_separator = 0

    @property
    def room(self) -> int:
        """The bytes left for one more section after the separator it needs."""
        return self.left - self._next_separator

    def spend(self, section: str, size: int) -> None:
        """Pay for a section of the prompt, and for the separator between it and the others."""
        if size:
            self.section_bytes["separators"] += self._next_separator
            self.left -= self._next_separator
            self._next_separator = len(SECTION_SEPARATOR)
            self.spend_beside(section, size)

    def spend_beside(self, section: str, size: int) -> None:
        """Pay for a section that travels beside the prompt."""
        self.section_bytes[section] = size
        self.left -= size


def newest_that_fit(newest_first: Iterable[Sized], room: int) -> tuple[list[Sized], int]:
    """Return the lines, oldest first, that fit into room bytes when joined by newlines, and the bytes they take.

    The first that does not fit ends the walk: what is older is left out too.
    """
    fitting: list[Sized] = []
    # Every line pays for a newline, so the one that the last line does not need is given back beforehand.
    left = room + 1
    for line in newest_first:
        if line.size >= left:
            break
        left -= line.size + 1
        fitting.append(line)
    fitting.reverse()
    return fitting, room - left if fitting else 0
