"""Telemetry: follows conversations as any viewer does, and tells of their turns; it cannot delay them."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from opentelemetry.trace import SpanContext

from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.team.stand_ins import in_role
from bullpen.telemetry.metrics import Metrics
from bullpen.telemetry.settings import settings_from
from bullpen.telemetry.traces import Traces
from bullpen.telemetry.turns import TurnRecord, Turns

logger = logging.getLogger(__name__)

CLOSE_SECONDS = 1.0
"""How long closing may wait for a collector."""
MOST_REFERRED = 1_000
"""Turns that later ones can refer to, in each conversation."""


class Telemetry:
    """The traces and metrics of one process or server."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        settings = settings_from(environ)
        self.metrics = Metrics()
        self._traces = Traces(content=settings.content) if settings.traces else None

    @asynccontextmanager
    async def following(self, conversation: Conversation) -> AsyncIterator[None]:
        """Follow a conversation, which must be closed when the context is left."""
        following = asyncio.create_task(self._follow(conversation))
        self.metrics.conversations.add(conversation)
        try:
            yield
        finally:
            self.metrics.conversations.discard(conversation)
            # It ends after the last event of the closed conversation.
            await asyncio.wait({following}, timeout=CLOSE_SECONDS)
            following.cancel()

    async def close(self) -> None:
        """Send what is left, but do not wait long for a collector."""
        if self._traces is not None:
            await self._traces.close(CLOSE_SECONDS)

    async def _follow(self, conversation: Conversation) -> None:
        """Read all events. A viewer that was too slow is disconnected, and continues after its last event."""
        reader = _Reader(conversation, self.metrics, self._traces)
        last = -1
        while reader.number != last:
            last = reader.number
            with conversation.viewing(last) as viewer, suppress(StopAsyncIteration):
                while True:
                    reader.read(await viewer.several(), time.time_ns())


class _Reader:
    """Reads the events of one conversation."""

    def __init__(self, conversation: Conversation, metrics: Metrics, traces: Traces | None) -> None:
        self.number = 0
        """The number of the last event that was read."""
        self._conversation = conversation
        self._metrics = metrics
        self._traces = traces
        self._turns = Turns(conversation.id)
        self._sent: dict[str, SpanContext] = {}
        """What later turns can refer to, by the ids of turns."""

    def read(self, events: list[Numbered], now: int) -> None:
        """Read events that have come now. What goes wrong here is logged, and changes nothing else."""
        for numbered in events:
            self.number = max(self.number, numbered.number)
            try:
                for ended in self._turns.take(numbered.event, now):
                    self._tell(ended)
            except Exception:
                logger.exception("event not recorded conversation=%s", self._conversation.id)

    def _tell(self, ended: TurnRecord) -> None:
        team = self._conversation.team
        member = team.member(ended.turn.member)
        if ended.stand_in:
            # Its role is the member's, and the program is another one's.
            member = in_role(team, member, ended.stand_in)
        self._metrics.add(ended, member)
        if self._traces is not None:
            self._sent[ended.turn.id] = self._traces.add(ended, member, self._sent.get(ended.handed_over_in))
            if len(self._sent) > MOST_REFERRED:
                del self._sent[next(iter(self._sent))]
