"""A cache that holds about so many bytes of text, and forgets what came first."""

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class ByteBoundedCache(dict[Key, Value]):
    """Values by key, made when first asked for, together at most max_bytes.

    It is a dict because a prompt asks for every line it holds: what is known is found without running any Python.
    """

    def __init__(self, max_bytes: int, make: Callable[[Key], Value], size_of: Callable[[Value], int]) -> None:
        super().__init__()
        self.max_bytes = max_bytes
        self._make = make
        self._size_of = size_of
        self._bytes = 0

    def __missing__(self, key: Key) -> Value:
        value = self[key] = self._make(key)
        self._bytes += self._size_of(value)
        while self._bytes > self.max_bytes:
            self._bytes -= self._size_of(self.pop(next(iter(self))))
        return value
