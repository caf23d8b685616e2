"""A room: one open conversation with what all who look at it share, so that nothing is rendered for each anew."""

import asyncio
import secrets
from time import monotonic

from markupsafe import Markup

from bullpen.cache import ByteBoundedCache
from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import TurnEnded
from bullpen.conversation.running_turn import RunningTurn
from bullpen.web.state import Spent, State, spent_by_member, state_of
from bullpen.web.updates import live_turn, message_frame, quick_frame, state_frame

FRAME_BYTES = 8 * 1024 * 1024
LIVE_SECONDS = 0.4
LIVE_SHARE = 20
MOST_ENDED = 1_000

Standing = tuple[object, State, bytes]
"""What the state depends on, the state, and what a page is sent of it."""


class Room:
    """What is known of one open conversation beyond the conversation itself."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.epoch = secrets.token_hex(4)
        """Events are numbered from one again whenever a conversation is opened; this tells the numbers apart."""
        self._frames: ByteBoundedCache[int, bytes] = ByteBoundedCache(FRAME_BYTES, size_of=len)
        self._making: dict[int, asyncio.Future[bytes]] = {}
        self._live: dict[str, tuple[float, Markup]] = {}
        self._ended: dict[str, None] = {}
        self._spent: tuple[int, dict[str, Spent]] = (-1, {})
        self._standing: Standing | None = None
        self._looking = asyncio.Lock()

    @property
    def working(self) -> tuple[RunningTurn, ...]:
        """The turns at work; the conversation forgets one only a moment after it has told that it ended."""
        return tuple(one for turn_id, one in self.conversation.running.items() if turn_id not in self._ended)

    async def frame(self, numbered: Numbered) -> bytes:
        """Return what a page is sent for one news."""
        known = self._frames.get(numbered.number)
        if known is not None:
            return known
        self._note(numbered)
        frame = quick_frame(numbered, self.conversation)
        if frame is None:
            frame = await self._made(numbered)
        if self._frames.get(numbered.number) is None:
            self._frames.add(numbered.number, frame)
        return frame

    async def state(self) -> State:
        """Return how the conversation stands."""
        return (await self._look())[1]

    async def state_frame(self) -> bytes:
        """Return how the conversation stands, as a page is sent it."""
        return (await self._look())[2]

    def at_work(self) -> list[Markup]:
        """Return every turn at work as part of a page, with all that was said until now."""
        return [live_turn(one, self.conversation.last_number, self.conversation) for one in self.working]

    def live(self, turn_id: str) -> Markup:
        """Return a turn at work as part of a page; nothing if it has ended.

        It may be a moment old: it says up to which news it goes, and a page that watches has those after that.
        """
        running = self.conversation.running.get(turn_id)
        if running is None or turn_id in self._ended:
            self._live.pop(turn_id, None)
            return Markup()
        good_until, html = self._live.get(turn_id, (0.0, Markup()))
        began = monotonic()
        if began > good_until:
            html = live_turn(running, self.conversation.last_number, self.conversation)
            # A long text takes long to render, and so is rendered more seldom.
            took = monotonic() - began
            self._live[turn_id] = monotonic() + max(LIVE_SECONDS, LIVE_SHARE * took), html
        return html

    async def _made(self, numbered: Numbered) -> bytes:
        """Make a frame that takes longer, once for all who want it."""
        task = self._making.get(numbered.number)
        if task is None:
            task = self._making[numbered.number] = asyncio.ensure_future(message_frame(numbered, self.conversation))
            task.add_done_callback(lambda _: self._making.pop(numbered.number))
        # Shielded: who goes away must not take it from the others.
        return await asyncio.shield(task)

    async def _look(self) -> Standing:
        """Look at most once for each news, however many ask."""
        async with self._looking:
            working = self.working
            depends_on = self.conversation.last_number, [running.turn.id for running in working]
            if self._standing is None or self._standing[0] != depends_on:
                state = await state_of(self.conversation, await self._spent_until_now(), working, self.epoch)
                self._standing = depends_on, state, state_frame(state)
            return self._standing

    async def _spent_until_now(self) -> dict[str, Spent]:
        ended = self.conversation.progress.turns_made - len(self.conversation.waiting) - len(self.working)
        if self._spent[0] != ended:
            self._spent = ended, await self.conversation.read(spent_by_member)
        return self._spent[1]

    def _note(self, numbered: Numbered) -> None:
        if isinstance(numbered.event, TurnEnded):
            self._ended[numbered.event.turn_id] = None
            while len(self._ended) > MOST_ENDED:
                del self._ended[next(iter(self._ended))]
