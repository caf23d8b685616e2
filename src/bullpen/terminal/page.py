"""Where a conversation is written: a stream that only grows."""

import os
from typing import Protocol, TextIO


class Page(Protocol):
    """Receives texts that are already safe and wrapped."""

    @property
    def columns(self) -> int | None:
        """How wide a line may be; None means no limit."""

    def write(self, text: str) -> None:
        """Write something; it may begin or end within a line."""


class StreamPage:
    """Writes to a stream, without buffering."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def columns(self) -> int | None:
        """As wide as the terminal, less the last column, where terminals differ."""
        return terminal_columns(self._stream)

    def write(self, text: str) -> None:
        """Write and flush."""
        self._stream.write(text)
        self._stream.flush()


def terminal_columns(stream: TextIO) -> int | None:
    """Return how wide a text on this terminal may be, or None if it is not a terminal."""
    if not stream.isatty():
        return None
    try:
        return max(os.get_terminal_size(stream.fileno()).columns - 1, 1)
    except OSError:
        return None
