"""Sequences that build their items on access, so that a long conversation costs only what is read."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar, overload

Item = TypeVar("Item")


class View(Sequence[Item], Generic[Item]):
    """A read-only sequence of what `make` returns for some positions. Equal to any sequence of equal items."""

    __slots__ = ("_make", "_positions")

    def __init__(self, positions: Sequence[int], make: Callable[[int], Item]) -> None:
        self._positions = positions
        self._make = make

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> "View[Item]": ...
    def __getitem__(self, index: int | slice) -> "Item | View[Item]":
        if isinstance(index, slice):
            return View(self._positions[index], self._make)
        return self._make(self._positions[index])

    def __iter__(self) -> Iterator[Item]:
        return map(self._make, self._positions)

    def __reversed__(self) -> Iterator[Item]:
        return map(self._make, reversed(self._positions))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({list(self)!r})"


class Window(View[Item]):
    """A view of messages that also knows their ids, and which history they are from."""

    __slots__ = ("ids", "source")

    def __init__(
        self, positions: Sequence[int], make: Callable[[int], Item], id_of: Callable[[int], str], source: object
    ) -> None:
        super().__init__(positions, make)
        self.ids = View(positions, id_of)
        self.source = source
        """The same for all windows in which the same position holds the same message."""

    @property
    def positions(self) -> Sequence[int]:
        """Where in the history the messages are."""
        return self._positions

    def mapped(self, change: Callable[[Item], Item]) -> "Window[Item]":
        """Return the same messages, each changed when it is read."""
        make = self._make
        return Window(self._positions, lambda position: change(make(position)), self.ids._make, object())

    def at(self, positions: Iterable[int]) -> Iterator[Item]:
        """Return the messages at some of the positions."""
        return map(self._make, positions)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> "Window[Item]": ...
    def __getitem__(self, index: int | slice) -> "Item | Window[Item]":
        if isinstance(index, slice):
            return Window(self._positions[index], self._make, self.ids._make, self.source)
        return self._make(self._positions[index])
