"""Byte budgets: one for the sections of a prompt, and the newest lines that fit into it."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

SECTION_SEPARATOR = "\n\n"


class _HasSize(Protocol):
    @property
    def size(self) -> int: ...


Sized = TypeVar("Sized", bound=_HasSize)


class Budget:
    """The bytes one prompt has left, and how many each section has used."""

    def __init__(self, max_bytes: int) -> None:
        self.left = max_bytes
        self.section_bytes = {"system": 0, "team_task": 0, "context": 0, "message": 0, "separators": 0}
        self._next_separator = 0

    @property
    def room(self) -> int:
        """The bytes left for one more section after the separator it needs."""
        return self.left - self._next_separator

    def spend(self, section: str, size: int) -> None:
        """Count a section of the prompt and the separator before it."""
        if size:
            self.section_bytes["separators"] += self._next_separator
            self.left -= self._next_separator
            self._next_separator = len(SECTION_SEPARATOR)
            self.spend_separately(section, size)

    def spend_separately(self, section: str, size: int) -> None:
        """Count a section that is passed separately from the prompt."""
        self.section_bytes[section] = size
        self.left -= size


def newest_that_fit(newest_first: Iterable[Sized], room: int) -> tuple[list[Sized], int]:
    """Return the lines, oldest first, that fit into room bytes when joined by newlines, and the bytes they take.

    The first line that does not fit is left out, and so are all older ones.
    """
    fitting: list[Sized] = []
    # Every line counts a newline. The last one does not need it, hence the extra byte.
    left = room + 1
    for line in newest_first:
        if line.size >= left:
            break
        left -= line.size + 1
        fitting.append(line)
    fitting.reverse()
    return fitting, room - left if fitting else 0
