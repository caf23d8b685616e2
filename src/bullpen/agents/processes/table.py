"""ProcessTable: what a system tells of its processes."""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct


class ProcessState(Struct, frozen=True):
    """What is known of one process."""

    start_time: int
    """In a unit of the table's own; a later process has a higher number, or the same one."""
    session: int | None
    """None if the system does not say."""
    is_zombie: bool


class ProcessTable(Protocol):
    """The processes as they are now. Of one that is gone, or that we may not look at, nothing is known."""

    def state(self, pid: int) -> ProcessState | None:
        """Return what is known of a process, dead ones that nobody has waited for included."""

    def children(self, pid: int) -> list[int]:
        """Return the children of a process."""

    def descendants(self, pid: int) -> list[int]:
        """Return the children of a process, their children, and so on."""

    def all(self) -> Iterable[int]:
        """Return every process of this machine."""

    def has_variable(self, pid: int, name: str, value: str) -> bool:
        """Tell whether a process was started with this in its environment."""
