"""Where a conversation is written to: a stream that grows at its end."""

import os
from typing import Protocol, TextIO


class Page(Protocol):
    """Takes texts that are safe and wrapped already."""

    @property
    def columns(self) -> int | None:
        """How wide a line may be; None: as wide as it is."""

    def write(self, text: str) -> None:
        """Write something; it may begin or end within a line."""


class StreamPage:
    """Writes to a stream, at once."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def columns(self) -> int | None:
        """As wide as the terminal, less the last column, where terminals differ."""
        return terminal_columns(self._stream)

    def write(self, text: str) -> None:
        """Write it, and let it be seen."""
        self._stream.write(text)
        self._stream.flush()


def terminal_columns(stream: TextIO) -> int | None:
    """Return how wide a text on this terminal may be, or None if it is none."""
    if not stream.isatty():
        return None
    try:
        return max(os.get_terminal_size(stream.fileno()).columns - 1, 1)
    except OSError:
        return None
