"""Broadcast: events for many viewers, none of whom can delay the others or fill the memory.

A viewer that does not keep up loses pieces of streams first: what they add up to comes whole at the end of the turn.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from bullpen.conversation.events import ConversationEvent, Lagged, TurnEvent
from bullpen.turn_events import TextDelta, Thinking

MOST_PIECES = 2_000
"""Waiting events above which a viewer gets no more pieces of streams."""
MOST_EVENTS = 20_000
"""Waiting events above which a viewer is sent away; it can look again from where it was."""
RECENT_EVENTS = 5_000
"""ConversationEvent kept for viewers that come back."""


class Numbered(Struct, frozen=True):
    """An event with its place in the order of all events of one conversation in one process."""

    number: int
    event: ConversationEvent


class Broadcast:
    """Hands every event to every viewer. All in one thread: that of the event loop."""

    def __init__(self) -> None:
        self.number = 0
        """The last number that was given."""
        self._recent: deque[Numbered] = deque(maxlen=RECENT_EVENTS)
        self._viewers: set[Viewer] = set()
        self._closed = False

    def publish(self, event: ConversationEvent) -> None:
        """Hand an event to all who watch."""
        self.number += 1
        numbered = Numbered(self.number, event)
        self._recent.append(numbered)
        may_drop = _is_piece(event)
        for viewer in self._viewers:
            viewer.take(numbered, may_drop)

    @contextmanager
    def viewing(self, after: int | None = None) -> Iterator["Viewer"]:
        """Yield the events from now on, or those after a number; a first Lagged says that some of them are gone.

        Nothing is missed between entering and the first event that is asked for.
        """
        viewer = Viewer()
        for numbered in self._missed_since(after):
            viewer.take(numbered, may_drop=False)
        self._viewers.add(viewer)
        if self._closed:
            viewer.close()
        try:
            yield viewer
        finally:
            self._viewers.discard(viewer)
            viewer.close()

    def close(self) -> None:
        """End every viewer's events after those it has not read yet."""
        self._closed = True
        for viewer in self._viewers:
            viewer.close()

    def _missed_since(self, after: int | None) -> list[Numbered]:
        if after is None or after == self.number:
            return []
        # A number that was never given is from an earlier process: what there is now is all new to this viewer.
        is_from_elsewhere = after > self.number
        after = 0 if is_from_elsewhere else after
        kept = [numbered for numbered in self._recent if numbered.number > after]
        gone = self.number - after - len(kept)
        first = kept[0].number - 1 if kept else self.number
        return [Numbered(first, Lagged(missed=gone)), *kept] if gone or is_from_elsewhere else kept


class Viewer:
    """One viewer's events that it has not read."""

    def __init__(self) -> None:
        self._unread: deque[Numbered] = deque()
        self._missed = 0
        self._ended = False
        self._something = asyncio.Event()

    def take(self, numbered: Numbered, may_drop: bool) -> None:
        """Keep an event until it is read; pieces of streams only while there are not too many."""
        if self._ended:
            return
        if may_drop and len(self._unread) >= MOST_PIECES:
            self._missed += 1
            return
        self._tell_what_was_missed(numbered.number)
        self._unread.append(numbered)
        if len(self._unread) >= MOST_EVENTS:
            self._unread.append(Numbered(numbered.number, Lagged(missed=0)))
            self._ended = True
        self._something.set()

    def close(self) -> None:
        """End after what is there."""
        self._ended = True
        self._something.set()

    def __aiter__(self) -> "Viewer":
        return self

    async def __anext__(self) -> Numbered:
        while not self._unread:
            if self._ended:
                raise StopAsyncIteration
            self._something.clear()
            await self._something.wait()
        return self._unread.popleft()

    async def several(self) -> list[Numbered]:
        """Wait for events, and return all that there are: the more there is to do, the fewer times it is done."""
        numbered = [await anext(self)]
        numbered += self._unread
        self._unread.clear()
        return numbered

    def _tell_what_was_missed(self, number: int) -> None:
        if self._missed:
            self._unread.append(Numbered(number - 1, Lagged(missed=self._missed)))
            self._missed = 0


def _is_piece(event: ConversationEvent) -> bool:
    return isinstance(event, TurnEvent) and isinstance(event.event, TextDelta | Thinking)
