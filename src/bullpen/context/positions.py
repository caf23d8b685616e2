"""Which messages a window contains: any number of positions in a history, in a few ranges."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import overload


class Ranges(Sequence[int]):
    """Increasing numbers, as a few ranges."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: Iterable[range]) -> None:
        self.ranges = tuple(filter(len, ranges))

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> "Ranges": ...
    def __getitem__(self, index: int | slice) -> "int | Ranges":
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise ValueError("the step of a slice must be 1")
            return Ranges(self._between(start, stop))
        left = index if index >= 0 else index + len(self)
        for numbers in self.ranges:
            if 0 <= left < len(numbers):
                return numbers[left]
            left -= len(numbers)
        raise IndexError(index)

    def __contains__(self, number: object) -> bool:
        return any(number in numbers for numbers in self.ranges)

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(self.ranges)

    def __reversed__(self) -> Iterator[int]:
        return chain.from_iterable(map(reversed, reversed(self.ranges)))

    def aligned(self, length: int) -> Iterator[range]:
        """Yield the numbers, the last first, in ranges cut at every multiple of a length: the same ones every time."""
        for numbers in reversed(self.ranges):
            stop = numbers.stop
            while stop > numbers.start:
                start = max(numbers.start, (stop - 1) // length * length)
                yield range(start, stop)
                stop = start

    def _between(self, start: int, stop: int) -> Iterator[range]:
        for numbers in self.ranges:
            yield numbers[max(start, 0) : max(stop, 0)]
            start, stop = start - len(numbers), stop - len(numbers)


def newest_positions(before: int, count: int | None, hidden: Collection[int] = ()) -> Sequence[int]:
    """Return the last positions before one, without the hidden ones; None means all."""
    ends = sorted((position for position in hidden if position < before), reverse=True)
    ranges: list[range] = []
    stop, left = max(before, 0), count
    for hidden_position in [*ends, -1]:
        start = hidden_position + 1 if left is None else max(hidden_position + 1, stop - left)
        ranges.append(range(start, max(start, stop)))
        left = None if left is None else left - len(ranges[-1])
        stop = hidden_position
    return Ranges(reversed(ranges))


def with_pinned(positions: Sequence[int], pinned: Collection[int], before: int) -> Sequence[int]:
    """Return the positions with the pinned ones that are before another."""
    missing = sorted(position for position in pinned if position < before and position not in positions)
    if not missing:
        return positions
    if isinstance(positions, Ranges) and (not positions or missing[-1] < positions[0]):
        return Ranges([*(range(position, position + 1) for position in missing), *positions.ranges])
    return sorted([*missing, *positions])
