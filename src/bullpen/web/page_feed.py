"""PageFeed: what the pages of one conversation are sent, rendered once for all of them, and only if there are any."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from markupsafe import Markup

from bullpen.conversation.broadcast import Numbered, Viewer
from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Asked, ConversationEvent, Lagged, Said, TurnBegan, TurnEnded, TurnEvent
from bullpen.turn_events import TextDelta, ToolStarted
from bullpen.view.state import ConversationView
from bullpen.view.stored_answers import answer_steps
from bullpen.web.frames import Frames, Reader
from bullpen.web.growing_markdown import GrowingMarkdown
from bullpen.web.updates import growth_json, live_turn, state_html, update

logger = logging.getLogger(__name__)

GROW_SECONDS = 0.04
"""Text is rendered this often while it is written: an eye sees no steps, and few characters come in between."""
UNSEEN_GROW_SECONDS = 1.0
"""The same while no page is open."""
EXPECT_SECONDS = 60.0
"""How long a page is waited for that was rendered, or that was open. Then nothing is rendered until one asks."""
GROW_SHARE = 8
"""A long block takes longer to render, so it is rendered less often: at most this fraction of the time."""


class PageFeed:
    """Follows a conversation, and publishes frames for its pages."""

    def __init__(
        self,
        conversation: Conversation,
        view: Callable[[], ConversationView],
        on_state: Callable[[ConversationView], None],
    ) -> None:
        self.frames = Frames()
        self._conversation = conversation
        self._view = view
        self._on_state = on_state
        """Called whenever the state has changed."""
        self._texts: dict[str, GrowingMarkdown] = {}
        """What each running turn has said."""
        self._grows_at = 0.0
        self._expected_until = 0.0

    async def follow(self) -> None:
        """Publish everything that happens until the conversation is closed."""
        with self._conversation.viewing(0) as viewer, contextlib.suppress(StopAsyncIteration):
            while True:
                events = await self._next(viewer)
                try:
                    await self._take(events)
                except Exception:
                    # The pages may have missed something; they read it again.
                    logger.exception("events not shown conversation=%s", self._conversation.id)
                    self.frames.publish("lagged", b"{}")
        self.frames.close()

    @property
    def number(self) -> int:
        """The number of the last frame, for a page that will ask for what comes after it."""
        self._expect_page()
        return self.frames.number

    @contextmanager
    def reading(self, after: int | None) -> Iterator[Reader]:
        """Yield the frames for one page, from now on or after a number."""
        self._grow_all()
        try:
            with self.frames.reading(after) as reader:
                yield reader
        finally:
            self._expected_until = monotonic() + EXPECT_SECONDS

    async def running_turns(self) -> list[Markup]:
        """Return every running turn as part of a page, with its text as far as it was published."""
        talk = self._conversation
        answers = await talk.read(answer_steps, list(talk.running)) if talk.running else {}
        self._expect_page()
        return [
            live_turn(one, self._texts.get(turn_id, GrowingMarkdown()), talk, answers.get(turn_id, ()))
            for turn_id, one in talk.running.items()
        ]

    def _expect_page(self) -> None:
        if not self._is_watched:
            self._grow_all()
        self._expected_until = monotonic() + EXPECT_SECONDS

    @property
    def _is_watched(self) -> bool:
        return self.frames.has_readers or monotonic() < self._expected_until

    async def _next(self, viewer: Viewer) -> list[Numbered]:
        """Return events; none if it is time to render text first."""
        if not self._is_watched or not any(text.has_grown for text in self._texts.values()):
            return await viewer.several()
        try:
            async with asyncio.timeout(max(0.0, self._grows_at - monotonic())):
                return await viewer.several()
        except TimeoutError:
            return []

    async def _take(self, events: list[Numbered]) -> None:
        for numbered in events:
            await self._publish(numbered)
        if any(changes_state(numbered.event) for numbered in events):
            view = self._view()
            if self._is_watched:
                self.frames.publish("state", state_html(view).encode())
            self._on_state(view)
        if self._is_watched and monotonic() >= self._grows_at:
            self._grow_all()

    async def _publish(self, numbered: Numbered) -> None:
        event = numbered.event
        match event:
            case TurnEvent(event=TextDelta(text=text)):
                self._texts.setdefault(event.turn_id, GrowingMarkdown()).add(text)
                return
            case TurnBegan():
                self._texts[event.turn.id] = GrowingMarkdown()
            case (
                Said(turn_id=str(turn_id))
                | TurnEnded(turn_id=turn_id)
                | TurnEvent(turn_id=turn_id, event=ToolStarted())
                | Asked(turn_id=turn_id)
            ):
                # Text comes before what follows it: nothing moves when it becomes a message, and an agent that uses a
                # tool or waits for an answer is not shown as writing.
                if self._is_watched:
                    self._grow(turn_id)
            case Lagged():
                self._read_texts_again()
            case _:
                pass
        if self._is_watched:
            made = await update(numbered, self._conversation)
            if made is not None:
                self.frames.publish(made.event, made.data)
        else:
            self.frames.skip()
        if isinstance(event, TurnEnded):
            self._texts.pop(event.turn_id, None)

    def _grow_all(self) -> None:
        began = monotonic()
        for turn_id in self._texts:
            self._grow(turn_id)
        now = monotonic()
        seconds = GROW_SECONDS if self.frames.has_readers else UNSEEN_GROW_SECONDS
        self._grows_at = now + max(seconds, GROW_SHARE * (now - began))

    def _grow(self, turn_id: str) -> None:
        text = self._texts.get(turn_id)
        growth = text.grow() if text else None
        if growth is not None:
            self.frames.publish("text", growth_json(turn_id, growth))

    def _read_texts_again(self) -> None:
        """Begin every text again after some of its pieces were missed."""
        for turn_id, running in self._conversation.running.items():
            old = self._texts.get(turn_id, GrowingMarkdown())
            self._texts[turn_id] = GrowingMarkdown(running.text, version=old.version + 1)


def changes_state(event: ConversationEvent) -> bool:
    """Return whether an event changes what is shown beside the messages."""
    return not isinstance(event, TurnEvent)
