"""A cache with a limit in bytes that drops its oldest entries."""

from collections.abc import Callable
from threading import Lock
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class ByteBoundedCache(dict[Key, Value]):
    """Values by key, at most max_bytes in total. Several threads may use it.

    It is a dict because a prompt looks up each of its lines: a hit runs no Python code.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int]) -> None:
        super().__init__()
        self.max_bytes = max_bytes
        self._size_of = size_of
        self._bytes = 0
        self._lock = Lock()

    def forget(self, key: Key) -> None:
        """Forget the value of a key, if it is known."""
        with self._lock:
            self._remove(key)

    def forget_all(self) -> None:
        """Be empty again."""
        with self._lock:
            self.clear()
            self._bytes = 0

    def add(self, key: Key, value: Value) -> None:
        """Add the value of a key; another thread may have been faster."""
        with self._lock:
            self._remove(key)
            self[key] = value
            self._bytes += self._size_of(value)
            while self._bytes > self.max_bytes:
                self._remove(next(iter(self)))

    def _remove(self, key: Key) -> None:
        if key in self:
            self._bytes -= self._size_of(self.pop(key))


class SelfFillingCache(ByteBoundedCache[Key, Value]):
    """The same, with values made on first use."""

    def __init__(self, max_bytes: int, make: Callable[[Key], Value], size_of: Callable[[Value], int]) -> None:
        super().__init__(max_bytes, size_of)
        self._make = make

    def __missing__(self, key: Key) -> Value:
        value = self._make(key)
        self.add(key, value)
        return value
