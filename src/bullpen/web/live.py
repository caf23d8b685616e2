"""LiveConversation: an open conversation and what all its pages share, so that it is rendered only once."""

import asyncio
import secrets
from time import monotonic

from markupsafe import Markup

from bullpen.cache import ByteBoundedCache
from bullpen.conversation.broadcast import Numbered
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Lagged
from bullpen.view.state import ConversationView, conversation_view
from bullpen.web.updates import lagged_frame, live_turn, message_frame, quick_frame, state_frame

FRAME_BYTES = 8 * 1024 * 1024
LIVE_SECONDS = 0.4
LIVE_SHARE = 20


class LiveConversation:
    """One open conversation and its rendered parts."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.epoch = secrets.token_hex(4)
        """Event numbers start at one again whenever a conversation is opened; the epoch distinguishes them."""
        self._frames: ByteBoundedCache[int, bytes] = ByteBoundedCache(FRAME_BYTES, size_of=len)
        self._rendering: dict[int, asyncio.Future[bytes]] = {}
        self._live: dict[str, tuple[float, Markup]] = {}
        self._state_frame: tuple[int, bytes] = (-1, b"")

    def view(self) -> ConversationView:
        """Return the state of the conversation."""
        return conversation_view(self.conversation, self.epoch)

    def state_frame(self) -> bytes:
        """Return the state as it is sent to pages; rendered once for each event, not for each page."""
        number = self.conversation.last_number
        if self._state_frame[0] != number:
            self._state_frame = number, state_frame(self.view())
        return self._state_frame[1]

    async def frame(self, numbered: Numbered) -> bytes:
        """Return what is sent to a page for one event."""
        if isinstance(numbered.event, Lagged):
            # It is for one viewer, and has the number of an event that others get.
            return lagged_frame(numbered.number)
        known = self._frames.get(numbered.number)
        if known is not None:
            return known
        frame = quick_frame(numbered, self.conversation)
        if frame is None:
            frame = await self._rendered(numbered)
        if self._frames.get(numbered.number) is None:
            self._frames.add(numbered.number, frame)
        return frame

    def running_turns(self) -> list[Markup]:
        """Return every running turn as part of a page, with its text so far."""
        running = self.conversation.running.values()
        return [live_turn(one, self.conversation.last_number, self.conversation) for one in running]

    def running_turn(self, turn_id: str) -> Markup:
        """Return a running turn as part of a page; empty if it has ended.

        It may be slightly old: it contains the number of its last event, and the page has received the later ones.
        """
        running = self.conversation.running.get(turn_id)
        if running is None:
            self._live.pop(turn_id, None)
            return Markup()
        good_until, html = self._live.get(turn_id, (0.0, Markup()))
        began = monotonic()
        if began > good_until:
            html = live_turn(running, self.conversation.last_number, self.conversation)
            # A long text takes longer to render, so it is rendered less often.
            took = monotonic() - began
            self._live[turn_id] = monotonic() + max(LIVE_SECONDS, LIVE_SHARE * took), html
        return html

    async def _rendered(self, numbered: Numbered) -> bytes:
        """Render a long message, once for all pages."""
        task = self._rendering.get(numbered.number)
        if task is None:
            task = asyncio.ensure_future(message_frame(numbered, self.conversation))
            self._rendering[numbered.number] = task
            task.add_done_callback(lambda _: self._rendering.pop(numbered.number))
        # Shielded: a page that disconnects must not cancel it for the others.
        return await asyncio.shield(task)
