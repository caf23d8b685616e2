"""AskedTime: for how long a turn has waited for answers of people. Its time limits do not count that."""

from collections.abc import Iterator
from contextlib import contextmanager

from bullpen.clock import monotonic


class AskedTime:
    """Several questions may be open at once."""

    def __init__(self) -> None:
        self._open = 0
        self._since = 0.0
        self._seconds = 0.0
        self.ended_at = 0.0
        """When nobody was asked any more."""

    @property
    def is_asking(self) -> bool:
        """Whether somebody is asked now."""
        return self._open > 0

    @property
    def seconds(self) -> float:
        """How long somebody was asked so far."""
        return self._seconds + (monotonic() - self._since if self._open else 0.0)

    def begin(self) -> None:
        """Note that a question is asked."""
        if not self._open:
            self._since = monotonic()
        self._open += 1

    def end(self) -> None:
        """Note that a question is answered, or not asked any more."""
        self._open -= 1
        if not self._open:
            self.ended_at = monotonic()
            self._seconds += self.ended_at - self._since

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Ask in the block."""
        self.begin()
        try:
            yield
        finally:
            self.end()
