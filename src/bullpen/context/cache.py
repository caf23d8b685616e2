"""A cache that holds about so many bytes of text, and forgets what came first."""

from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class ByteBoundedCache(Generic[Key, Value]):
    """Values by key, together at most max_bytes by the sizes they were added with."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._bytes = 0
        self._entries: dict[Key, tuple[Value, int]] = {}
        # Bound once: a prompt asks for every line it holds.
        self.get = self._entries.get

    def add(self, key: Key, value: Value, size: int) -> tuple[Value, int]:
        """Remember the value of a new key, and return what `get` will return for it."""
        entry = self._entries[key] = value, size
        self._bytes += size
        while self._bytes > self.max_bytes:
            oldest = next(iter(self._entries))
            self._bytes -= self._entries.pop(oldest)[1]
        return entry
