"""A cache that holds about so many bytes of text, and forgets what came first."""

from collections.abc import Callable
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class ByteBoundedCache(dict[Key, Value]):
    """Values by key, together at most max_bytes.

    It is a dict because a prompt asks for every line it holds: what is known is found without running any Python.
    """

    def __init__(self, max_bytes: int, size_of: Callable[[Value], int]) -> None:
        super().__init__()
        self.max_bytes = max_bytes
        self._size_of = size_of
        self._bytes = 0

    def forget(self, key: Key) -> None:
        """Forget the value of a key, if it is known."""
        if key in self:
            self._bytes -= self._size_of(self.pop(key))

    def forget_all(self) -> None:
        """Be empty again."""
        self.clear()
        self._bytes = 0

    def add(self, key: Key, value: Value) -> None:
        """Remember the value of a new key."""
        self[key] = value
        self._bytes += self._size_of(value)
        while self._bytes > self.max_bytes:
            self._bytes -= self._size_of(self.pop(next(iter(self))))


class SelfFillingCache(ByteBoundedCache[Key, Value]):
    """The same, and a value is made when it is first asked for."""

    def __init__(self, max_bytes: int, make: Callable[[Key], Value], size_of: Callable[[Value], int]) -> None:
        super().__init__(max_bytes, size_of)
        self._make = make

    def __missing__(self, key: Key) -> Value:
        value = self._make(key)
        self.add(key, value)
        return value
