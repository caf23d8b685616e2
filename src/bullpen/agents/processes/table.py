"""ProcessTable: the processes of a system."""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct


class ProcessState(Struct, frozen=True):
    """The state of one process."""

    start_time: int
    """In a unit of the table's own; a later process has the same or a higher number."""
    is_zombie: bool
    parent: int
    """Its pid; 0, if there is none that can be named."""


class ProcessTable(Protocol):
    """The current processes. Nothing is known of a process that is gone, or that we may not inspect."""

    def state(self, pid: int) -> ProcessState | None:
        """Return the state of a process, including zombies."""

    def descendants(self, pid: int) -> list[int]:
        """Return the children of a process, their children, and so on."""

    def all(self) -> Iterable[int]:
        """Return every process of this machine."""

    def has_variable(self, pid: int, name: str, value: str | None = None) -> bool | None:
        """Return whether a process was started with this variable, with any value or this one; None: nobody knows."""
