"""Transcript: the conversation as far as it is looked at. However long it is, a few pages of it are on the screen."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Said
from bullpen.conversation.running_turn import RunningTurn
from bullpen.messages import ConversationMessage
from bullpen.store.base import Store, StoredMessage, TurnRecord
from bullpen.tui.message import MessageView
from bullpen.tui.text import MOST_LINES, beginning, one_line, weight_of
from bullpen.tui.turn import TurnView
from bullpen.tui.work import Work
from bullpen.turn_events import Event, TextDelta
from bullpen.view.turn_lookup import turn_that_said
from bullpen.view.replay import recorded_events

PAGE = 20
MOST_ON_SCREEN = 3 * PAGE
# Lines of text that a page holds at most, so that a page of long lists opens as quickly as one of short words.
LINES_OF_A_PAGE = 2 * MOST_LINES
# Frames to wait for until what was mounted has its place.
MOST_TRIES = 20
# How many of the latest messages keep what was done for them in memory.
MOST_WORKS = 200


class Transcript(VerticalScroll, can_focus=False):
    """Messages between two places of the conversation, and the turns at work below the last one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "To the message or fold before", show=False),
        Binding("down,j", "step(1)", "To the message or fold after", show=False),
        Binding("end,G", "newest", "To the newest message", show=False),
        Binding("home", "oldest_here", "To the oldest message that is loaded; older ones come", show=False),
    ]
    DEFAULT_CSS = """
    Transcript { padding: 1 2 0 2; scrollbar-size-vertical: 1; background: $background; }
    Transcript > #page { height: auto; min-height: 100%; align: left bottom; }
    Transcript #messages, Transcript #live { height: auto; }
    Transcript #empty { color: $text-muted; height: auto; margin: 0 0 1 0; }
    """

    def __init__(self, conversation: Conversation, *, colors: dict[str, str]) -> None:
        super().__init__(id="transcript")
        self._conversation = conversation
        self._colors = colors
        self._names = {member.name: member.display_name or member.name for member in conversation.team.members}
        self._messages = Vertical(id="messages")
        self._live = Vertical(id="live")
        self._empty = Static(id="empty", markup=False)
        self._at_work: dict[str, Work] = {}
        self._works: dict[str, Work] = {}
        self._said: dict[str, Said] = {}
        self._is_loading = False
        self.is_at_end = True
        """Whether the newest message is among those on the screen."""

    def compose(self) -> ComposeResult:
        """Yield the places for messages and for turns at work."""
        with Vertical(id="page"):
            yield self._empty
            yield self._messages
            yield self._live

    @property
    def views(self) -> list[MessageView]:
        """The messages on the screen, oldest first."""
        return [child for child in self._messages.children if isinstance(child, MessageView)]

    @property
    def turns(self) -> dict[str, TurnView]:
        """The turns at work that are on the screen."""
        return {child.turn_id: child for child in self._live.children if isinstance(child, TurnView)}

    @property
    def chosen(self) -> MessageView | None:
        """The message that a person has moved to, else the newest of an agent."""
        focused = self.screen.focused
        within = focused.ancestors_with_self if focused is not None else []
        chosen = next((node for node in within if isinstance(node, MessageView)), None)
        agents = [view for view in self.views if view.stored.message.speaker.type == "ai"]
        return chosen or (agents[-1] if agents else None)

    def on_resize(self) -> None:
        """Draw the scroll bar anew: while it follows the end, Textual moves its place without drawing it."""
        self.vertical_scrollbar.refresh()

    async def open_end(self) -> None:
        """Show the newest messages, and follow what comes."""
        await self._replace(await self._conversation.messages(limit=PAGE), from_end=True)
        self.is_at_end = True
        self._live.display = True
        self.anchor()

    async def open_at(self, sequence: int) -> None:
        """Show a message and those around it."""
        self.anchor(False)
        if sequence not in [view.sequence for view in self.views]:
            stored = await self._conversation.messages(after=max(0, sequence - 1 - PAGE // 2), limit=PAGE)
            await self._replace(stored, from_end=False)
            newest = await self._conversation.messages(limit=1)
            self.is_at_end = not newest or not self.views or newest[-1].sequence == self.views[-1].sequence
            self._live.display = self.is_at_end
        view = next((view for view in self.views if view.sequence == sequence), None)
        if view is not None:
            view.focus(scroll_visible=False)
            self.call_after_refresh(self.scroll_to_widget, view, center=True, animate=False)

    async def add(self, said: Said) -> None:
        """Show a message that was just said, if the newest are on the screen."""
        self._said[said.message.id] = said
        work = self._at_work.pop(said.turn_id or "", None)
        if work is not None:
            work.end(said.message.timestamp)
            self._works[said.message.id] = work
        await self.end(said.turn_id or "")
        self._forget_the_oldest()
        if self.is_at_end and said.sequence > max((view.sequence for view in self.views), default=0):
            stored = StoredMessage(sequence=said.sequence, message=said.message, hash=b"")
            await self._messages.mount(self._view(stored))
            if self.is_following:
                await self._trim(from_end=False)
        self._show_whether_empty()

    async def begin(self, turn_id: str, running: RunningTurn | None, *, at: int, done: Sequence[Event] = ()) -> None:
        """Show a turn at work; one that is over already is not shown, but what it did is kept for its message.

        `done` is what it did before anybody followed it.
        """
        work = self._at_work.setdefault(turn_id, Work(done, began_at=at))
        if running is not None and turn_id not in self.turns:
            member = running.turn.member
            view = TurnView(running, work, name=self._names.get(member, member), color=self._color(member))
            await self._live.mount(view)
        self._show_whether_empty()

    async def take(self, turn_id: str, event: Event) -> None:
        """Show what an agent at work says or does."""
        turn = self.turns.get(turn_id)
        if isinstance(event, TextDelta):
            if turn is not None:
                turn.hear(event)
            return
        step = self._at_work.setdefault(turn_id, Work()).take(event)
        if turn is not None and step is not None:
            await turn.show_step(step)

    async def end(self, turn_id: str) -> None:
        """Take a turn off the screen that is over."""
        self._at_work.pop(turn_id, None)
        if turn_id in self.turns:
            await self.turns[turn_id].remove()

    @property
    def is_following(self) -> bool:
        """Whether the screen moves on with what comes."""
        return self.is_at_end and self.scroll_y >= self.max_scroll_y - 1

    async def action_newest(self) -> None:
        """Go to the newest message."""
        if self.is_at_end:
            self.anchor()
        else:
            await self.open_end()
        if self.views:
            self.views[-1].focus(scroll_visible=False)

    def action_oldest_here(self) -> None:
        """Go to the oldest message that is loaded; what is older comes then."""
        self.release_anchor()
        self.scroll_home(animate=False)

    def action_step(self, by: int) -> None:
        """Move to the message, or to the fold, before or after."""
        self.release_anchor()
        move = self.screen.focus_next if by > 0 else self.screen.focus_previous
        items = list(self.query(".item"))
        last = items[-1 if by > 0 else 0] if items else None
        if self.screen.focused is not last:
            move("#transcript .item")

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Load a page when its place comes near."""
        super().watch_scroll_y(old_value, new_value)
        if self._is_loading or not self.is_mounted:
            return
        if new_value < old_value and new_value <= 2:
            self.run_worker(self._load_older(), exclusive=True, group="pages")
        elif new_value > old_value and new_value >= self.max_scroll_y - 2 and not self.is_at_end:
            self.run_worker(self._load_newer(), exclusive=True, group="pages")
        elif new_value > old_value and new_value >= self.max_scroll_y:
            self.anchor()

    async def _load_older(self) -> None:
        if self._is_loading or not self.views or self.views[0].sequence <= 1:
            return
        self._is_loading = True
        try:
            stored = await self._conversation.messages(before=self.views[0].sequence, limit=PAGE)
            first = self.views[0]
            place = first.virtual_region.y
            await self._messages.mount_all([self._view(one) for one in _page(stored, from_end=True)], before=0)
            self.call_after_refresh(self._keep_place, first, place)
        except BaseException:
            self._is_loading = False
            raise

    async def _keep_place(self, view: MessageView, place: int, tries: int = MOST_TRIES) -> None:
        """Stay where the person reads, now that there is more or less above: as far on as a message has moved."""
        moved = view.virtual_region.y - place
        if tries and (not moved or self.scroll_y + moved > self.max_scroll_y):
            # What was mounted is not laid out yet, or we have not learnt yet how much there is to scroll.
            self.call_after_refresh(self._keep_place, view, place, tries - 1)
            return
        self.scroll_to(y=self.scroll_y + moved, animate=False, force=True, immediate=True)
        if moved > 0:
            await self._trim(from_end=True)
        self._is_loading = False

    async def _load_newer(self) -> None:
        if self._is_loading or not self.views:
            return
        self._is_loading = True
        try:
            stored = await self._conversation.messages(after=self.views[-1].sequence, limit=PAGE)
            page = _page(stored, from_end=False)
            await self._messages.mount_all([self._view(one) for one in page])
            self.is_at_end = len(stored) < PAGE and len(page) == len(stored)
            self._live.display = self.is_at_end
            self.call_after_refresh(self._trim_above)
        except BaseException:
            self._is_loading = False
            raise

    async def _trim_above(self) -> None:
        last = self.views[-1]
        place = last.virtual_region.y
        if await self._trim(from_end=False):
            self.call_after_refresh(self._keep_place, last, place)
        else:
            self._is_loading = False

    async def _trim(self, *, from_end: bool) -> bool:
        """Take messages off the screen that are too many, from one end; tell whether there were any."""
        spare = len(self.views) - MOST_ON_SCREEN
        if spare <= 0:
            return False
        gone = self.views[-spare:] if from_end else self.views[:spare]
        self._keep_focus(gone)
        await self._messages.remove_children(gone)
        if from_end:
            self.is_at_end = False
            self._live.display = False
        return True

    def _keep_focus(self, gone: Sequence[MessageView]) -> None:
        """Move the focus to a message in sight if its own goes: Textual would scroll to wherever it moves it."""
        focused = self.screen.focused
        if focused is not None and any(view in focused.ancestors_with_self for view in gone):
            sight = self.region
            kept = [view for view in self.views if view not in gone]
            seen = [view for view in kept if view.region.overlaps(sight)]
            # At once: `focus` would do it later than the other one goes.
            self.screen.set_focus((seen or kept)[0], scroll_visible=False)

    async def _replace(self, stored: Sequence[StoredMessage], *, from_end: bool) -> None:
        self._is_loading = True
        try:
            await self._messages.remove_children()
            await self._messages.mount_all([self._view(one) for one in _page(stored, from_end=from_end)])
            self._show_whether_empty()
        finally:
            self._is_loading = False

    def _forget_the_oldest(self) -> None:
        for kept in (self._works, self._said):
            for message_id in list(kept)[:-MOST_WORKS]:
                del kept[message_id]

    def _view(self, stored: StoredMessage) -> MessageView:
        message = stored.message
        said = self._said.get(message.id)
        return MessageView(
            stored,
            color=self._color(message.speaker.role_id),
            names=self._names,
            work=self._works.get(message.id),
            load_work=partial(self._recorded_work, message) if message.speaker.type == "ai" else None,
            why=said.reason if said else "",
            notes=said.notes if said else (),
        )

    async def _recorded_work(self, message: ConversationMessage) -> Work:
        record = await self._conversation.read(_record_of, message)
        return Work() if record is None else Work(await asyncio.to_thread(recorded_events, record))

    def _color(self, member: str) -> str:
        return self._colors.get(member, "#868c9e")

    def _show_whether_empty(self) -> None:
        people = ", ".join(self._names[agent.name] for agent in self._conversation.team.agents)
        self._empty.display = not self.views and not self.turns
        self._empty.update(
            Content(
                f"Nothing has been said yet. With you: {one_line(people, 200)}.\n\n"
                "Write below and press enter. Begin with @ to name somebody, with / for a command; F1 shows every key."
            )
        )


def _record_of(store: Store, conversation_id: str, message: ConversationMessage) -> TurnRecord | None:
    turn = turn_that_said(store, conversation_id, message)
    return None if turn is None else store.record(conversation_id, turn.id)


def _page(stored: Sequence[StoredMessage], *, from_end: bool) -> list[StoredMessage]:
    """Return the messages of a page, from one end, until they have as many lines as a page holds; at least one."""
    lines = 0
    page: list[StoredMessage] = []
    for one in reversed(stored) if from_end else stored:
        lines += sum(map(weight_of, beginning(one.message.content).text.split("\n")))
        if page and lines > LINES_OF_A_PAGE:
            break
        page.append(one)
    return page[::-1] if from_end else page
