"""Broadcast: events for many viewers, none of whom can delay the others or fill the memory.

A viewer that does not keep up loses pieces of streams first: the whole text follows at the end of the turn.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from bullpen.conversation.events import ConversationEvent, Lagged, TurnEvent
from bullpen.turn_events import TextDelta, Thinking

MOST_PIECES = 2_000
"""Unread events from which on a viewer gets no pieces of streams."""
MOST_EVENTS = 20_000
"""Unread events from which on a viewer is disconnected; it can reconnect and continue from its last event."""
RECENT_EVENTS = 5_000
"""Events kept for viewers that reconnect."""


class Numbered(Struct, frozen=True):
    """An event and its number among all events of one conversation in one process."""

    number: int
    event: ConversationEvent


class Broadcast:
    """Sends every event to every viewer. Only for the event loop's thread."""

    def __init__(self) -> None:
        self.number = 0
        """The number of the last event."""
        self._recent: deque[Numbered] = deque(maxlen=RECENT_EVENTS)
        self._viewers: set[Viewer] = set()
        self._closed = False

    def publish(self, event: ConversationEvent) -> None:
        """Send an event to all viewers."""
        self.number += 1
        numbered = Numbered(self.number, event)
        self._recent.append(numbered)
        may_drop = _is_piece(event)
        for viewer in self._viewers:
            viewer.add(numbered, may_drop)

    @contextmanager
    def viewing(self, after: int | None = None) -> Iterator["Viewer"]:
        """Yield the events from now on, or those after a number; a Lagged comes first if some of them are gone.

        No event is missed between entering and reading the first one.
        """
        viewer = Viewer()
        for numbered in self._missed_since(after):
            viewer.add(numbered, may_drop=False)
        self._viewers.add(viewer)
        if self._closed:
            viewer.close()
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)
            viewer.close()

    def close(self) -> None:
        """Let every viewer end after its unread events."""
        self._closed = True
        for viewer in self._viewers:
            viewer.close()

    def _missed_since(self, after: int | None) -> list[Numbered]:
        if after is None or after == self.number:
            return []
        # A higher number is from an earlier process: all events of this one are new to this viewer.
        is_from_earlier_process = after > self.number
        after = 0 if is_from_earlier_process else after
        kept = [numbered for numbered in self._recent if numbered.number > after]
        gone = self.number - after - len(kept)
        first = kept[0].number - 1 if kept else self.number
        return [Numbered(first, Lagged(missed=gone)), *kept] if gone or is_from_earlier_process else kept


class Viewer:
    """The unread events of one viewer."""

    def __init__(self) -> None:
        self._unread: deque[Numbered] = deque()
        self._missed = 0
        self._ended = False
        self._is_ready = asyncio.Event()

    def add(self, numbered: Numbered, may_drop: bool) -> None:
        """Keep an event until it is read; drop pieces of streams if too many are unread."""
        if self._ended:
            return
        if may_drop and len(self._unread) >= MOST_PIECES:
            self._missed += 1
            return
        self._report_missed(numbered.number)
        self._unread.append(numbered)
        if len(self._unread) >= MOST_EVENTS:
            self._unread.append(Numbered(numbered.number, Lagged(missed=0)))
            self._ended = True
        self._is_ready.set()

    def close(self) -> None:
        """End after the unread events."""
        self._ended = True
        self._is_ready.set()

    def __aiter__(self) -> "Viewer":
        return self

    async def __anext__(self) -> Numbered:
        while not self._unread:
            if self._ended:
                raise StopAsyncIteration
            self._is_ready.clear()
            await self._is_ready.wait()
        return self._unread.popleft()

    async def several(self) -> list[Numbered]:
        """Wait for events, and return all unread ones, so that a slow reader handles many at once."""
        numbered = [await anext(self)]
        numbered += self._unread
        self._unread.clear()
        return numbered

    def _report_missed(self, number: int) -> None:
        if self._missed:
            self._unread.append(Numbered(number - 1, Lagged(missed=self._missed)))
            self._missed = 0


def _is_piece(event: ConversationEvent) -> bool:
    return isinstance(event, TurnEvent) and isinstance(event.event, TextDelta | Thinking)
