"""Transcript: the conversation as far as it is looked at. However long it is, a few pages of it are on the screen."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import Said
from bullpen.conversation.running_turn import RunningTurn
from bullpen.tui.day_line import DayLine, first_of_days
from bullpen.tui.live_turns import LiveTurns
from bullpen.tui.long_text import effort
from bullpen.tui.message import MessageView
from bullpen.tui.text import MOST_LINES, one_line
from bullpen.tui.turn import TurnView
from bullpen.turn_events import Event
from bullpen.view.change_reading import ChangeLine, ChangeLines, lines_beside
from bullpen.view.checks import CheckLine
from bullpen.view.listing import ConversationSummary, earlier_beside
from bullpen.view.messages import NOTE, ShownMessage, is_note, kind_words, shown_messages
from bullpen.view.steps import Steps, recorded_steps, turn_record
from bullpen.view.unanswered import UnansweredTurn

PAGE = 20
MOST_ON_SCREEN = 3 * PAGE
# While it follows what comes: each line that comes lays out all of them.
MOST_FOLLOWED = PAGE + PAGE // 2
# Lines of text on a page at most, so that a page of long lists opens as quickly as one of short words.
LINES_OF_A_PAGE = 2 * MOST_LINES
# Frames to wait for until what was mounted has its place.
MOST_TRIES = 20
# How many of the latest messages keep in memory what was done for them.
MOST_REMEMBERED = 200


class Transcript(VerticalScroll, can_focus=False):
    """Messages between two places of the conversation, and the running turns below the last one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "To the message or fold before", show=False),
        Binding("down", "step(1)", "To the message or fold after", show=False),
        Binding("end", "newest", "To the newest message", show=False),
        Binding("home", "oldest_here", "To the oldest loaded message, and load older ones", show=False),
    ]
    DEFAULT_CSS = """
    Transcript { padding: 1 2 0 2; scrollbar-size-vertical: 1; background: $background; }
    Transcript > #page { height: auto; min-height: 100%; align: left bottom; }
    Transcript #messages { height: auto; }
    Transcript MessageView, Transcript TurnView { max-width: 103; }
    Transcript #empty { color: $text-muted; height: auto; margin: 0 0 1 0; }
    """

    class Unseen(Message):
        """This many messages have come below while a person was reading further up."""

        def __init__(self, count: int) -> None:
            super().__init__()
            self.count = count

    def __init__(self, conversation: Conversation, *, colors: Mapping[str, str]) -> None:
        super().__init__(id="transcript")
        self._conversation = conversation
        self._colors = colors
        self._names = {member.name: member.display_name or member.name for member in conversation.team.members}
        self._messages = Vertical(id="messages")
        self._live = LiveTurns(names=self._names, colors=colors)
        self._empty = Static(id="empty", markup=False)
        self._earlier: ConversationSummary | None = None
        self._done: dict[str, tuple[Steps, float]] = {}
        """What was done for a message, and for how many seconds."""
        self._said: dict[str, Said] = {}
        self._changes = ChangeLines()
        """What was changed, for the messages that were read last."""
        self._is_loading = False
        self._changing = asyncio.Lock()
        """Held while messages are read and mounted: one that is said meanwhile is neither missed nor doubled."""
        self._unseen = 0
        self.is_at_end = True
        """Whether the newest message is among those on the screen."""

    def compose(self) -> ComposeResult:
        """Yield the places for messages and for running turns."""
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
        """The running turns on the screen, by their ids."""
        return self._live.views

    @property
    def selected(self) -> MessageView | None:
        """The message that a person has moved to."""
        focused = self.screen.focused
        within = focused.ancestors_with_self if focused is not None else []
        return next((node for node in within if isinstance(node, MessageView)), None)

    @property
    def chosen(self) -> MessageView | None:
        """The message that a person has moved to, else the newest of an agent."""
        agents = [view for view in self.views if view.message.speaker.type == "ai"]
        return self.selected or (agents[-1] if agents else None)

    def on_resize(self) -> None:
        """Draw the scroll bar again: while it follows the end, Textual moves its place without drawing it."""
        self.vertical_scrollbar.refresh()

    async def open_end(self) -> None:
        """Show the newest messages, and follow what comes."""
        async with self._changing:
            await self._replace(await self._read(), from_end=True)
            self.is_at_end = True
            self._live.display = True
            self.anchor()
            self._count_unseen(0)

    async def open_at(self, sequence: int) -> None:
        """Show a message and those around it."""
        async with self._changing:
            self.anchor(False)
            if sequence not in [view.sequence for view in self.views]:
                await self._replace(await self._read(after=max(0, sequence - 1 - PAGE // 2)), from_end=False)
                self.is_at_end = not self.views or self.views[-1].sequence == self._conversation.message_count
                self._live.display = self.is_at_end
        view = next((view for view in self.views if view.sequence == sequence), None)
        if view is not None:
            view.focus(scroll_visible=False)
            self.call_after_refresh(self.scroll_to_widget, view, center=True, animate=False)

    async def add(self, said: Said) -> None:
        """Show a message that was just said, if the newest are on the screen."""
        self._said[said.message.id] = said
        # In one step for those who look: between the end of a turn and its reply there is nothing to see.
        async with self._changing:
            with self.app.batch_update():
                done = await self._live.end(said.turn_id or "")
                if done is not None:
                    self._done[said.message.id] = done.steps, done.seconds_until(said.message.timestamp)
                self._forget_the_oldest()
                # What nobody followed may be in its record.
                shown = ShownMessage(
                    sequence=said.sequence,
                    message=said.message,
                    turn=said.turn_id,
                    has_steps=done is None,
                    rebuilt=said.rebuilt,
                )
                await self._add(shown)
                self._show_whether_empty()

    async def _add(self, shown: ShownMessage) -> None:
        if shown.sequence <= max((view.sequence for view in self.views), default=0):
            return
        is_following = self.is_following
        if self.is_at_end:
            await self._messages.mount(self._view(shown))
            await self._mark_days()
        if is_following:
            await self._trim(from_end=False, most=MOST_FOLLOWED)
        else:
            self._count_unseen(self._unseen + 1)

    async def begin(self, turn_id: str, running: RunningTurn | None, *, at: int, done: Sequence[Event] = ()) -> None:
        """Show a running turn; `done` is what it did before anybody followed it."""
        await self._live.begin(turn_id, running, at=at, done=done)
        self._show_whether_empty()

    async def on_turn_event(self, turn_id: str, event: Event) -> None:
        """Show what a running agent says or does."""
        await self._live.on_turn_event(turn_id, event)

    async def end(self, turn_id: str, unanswered: UnansweredTurn | None = None) -> None:
        """Remove a turn that has ended; one without a reply stays after the newest message, folded."""
        async with self._changing:
            with self.app.batch_update():
                await self._live.end(turn_id)
                before = [view for view in self.views if unanswered and view.sequence <= unanswered.after]
                if unanswered is not None and before:
                    await before[-1].add_unanswered(unanswered)

    async def changed(self, line: ChangeLine) -> None:
        """Show what was changed: below the message of its turn, else after the newest message."""
        async with self._changing:
            of_turn = [view for view in self.views if line.kind == "turn" and view.turn_id == line.turn]
            before = [view for view in self.views if view.sequence <= line.after]
            for view in (of_turn or before)[-1:]:
                await view.add_change(line)

    async def checked(self, line: CheckLine) -> None:
        """Show what a check said: below the message of its turn, else after the newest message before it."""
        async with self._changing:
            of_turn = [view for view in self.views if view.turn_id == line.turn]
            before = [view for view in self.views if view.sequence <= line.after]
            for view in (of_turn or before)[-1:]:
                await view.add_check(line)

    @property
    def is_following(self) -> bool:
        """Whether the screen scrolls with what comes.

        Its place is not enough to tell: when the notice has just taken lines from it, it has not scrolled yet.
        """
        is_held = self._anchored and not self._anchor_released
        return self.is_at_end and (is_held or self.scroll_y >= self.max_scroll_y - 1)

    async def show_newest(self) -> None:
        """Show the newest message, and follow what comes."""
        if self.is_at_end:
            self.anchor()
            self._count_unseen(0)
        else:
            await self.open_end()

    async def action_newest(self) -> None:
        """Go to the newest message."""
        await self.show_newest()
        if self.views:
            self.views[-1].focus(scroll_visible=False)

    def action_oldest_here(self) -> None:
        """Go to the oldest loaded message; older ones are loaded then."""
        self.release_anchor()
        self.scroll_home(animate=False)

    def action_step(self, by: int) -> None:
        """Move to the message, or to the fold, before or after."""
        super().release_anchor()
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
            self._load_older()
        elif new_value > old_value and new_value >= self.max_scroll_y - 2 and not self.is_at_end:
            self._load_newer()
        elif new_value > old_value and new_value >= self.max_scroll_y:
            # Later: anchoring ends the animation that may have scrolled, which Textual does not expect in the middle.
            self.call_later(self._follow_again)

    def release_anchor(self) -> None:
        """Follow no longer: a person scrolls. Who scrolls down at the end does not want to leave it."""
        super().release_anchor()
        if self.is_mounted:
            self.call_after_refresh(self._follow_again)

    def _follow_again(self) -> None:
        """Scroll with what comes, if the person is at the end."""
        if self.is_at_end and self.scroll_y >= self.max_scroll_y:
            self.anchor()
            self._count_unseen(0)

    def _count_unseen(self, count: int) -> None:
        if count != self._unseen:
            self._unseen = count
            self.post_message(self.Unseen(count))

    @work(exclusive=True, group="pages")
    async def _load_older(self) -> None:
        if self._is_loading or not self.views or self.views[0].sequence <= 1:
            return
        self._is_loading = True
        try:
            async with self._changing:
                messages = await self._read(before=self.views[0].sequence) if self.views else []
                if not self.views:
                    # The screen has gone meanwhile.
                    self._is_loading = False
                    return
                first = self.views[0]
                place = first.virtual_region.y
                await self._messages.mount_all([self._view(one) for one in _page(messages, from_end=True)], before=0)
                await self._mark_days()
            self.call_after_refresh(self._keep_place, first, place)
        except BaseException:
            self._is_loading = False
            raise

    async def _keep_place(self, view: MessageView, place: int, tries: int = MOST_TRIES) -> None:
        """Stay where the person reads, now that there is more or less above: scroll as far as a message has moved."""
        moved = view.virtual_region.y - place
        if tries and (not moved or self.scroll_y + moved > self.max_scroll_y):
            # What was mounted is not laid out yet, or we have not learnt yet how much there is to scroll.
            self.call_after_refresh(self._keep_place, view, place, tries - 1)
            return
        self.scroll_to(y=self.scroll_y + moved, animate=False, force=True, immediate=True)
        if moved > 0:
            await self._trim(from_end=True)
        self._is_loading = False

    @work(exclusive=True, group="pages")
    async def _load_newer(self) -> None:
        if self._is_loading or not self.views:
            return
        self._is_loading = True
        try:
            async with self._changing:
                messages = await self._read(after=self.views[-1].sequence) if self.views else []
                if not self.views:
                    self._is_loading = False
                    return
                page = _page(messages, from_end=False)
                await self._messages.mount_all([self._view(one) for one in page])
                await self._mark_days()
                self.is_at_end = len(messages) < PAGE and len(page) == len(messages)
                self._live.display = self.is_at_end
            self.call_after_refresh(self._trim_above)
        except BaseException:
            self._is_loading = False
            raise

    async def _trim_above(self) -> None:
        last = self.views[-1] if self.views else None
        place = last.virtual_region.y if last is not None else 0
        if last is not None and await self._trim(from_end=False):
            self.call_after_refresh(self._keep_place, last, place)
        else:
            self._is_loading = False

    async def _trim(self, *, from_end: bool, most: int = MOST_ON_SCREEN) -> bool:
        """Remove messages that are too many, from one end; return whether there were any."""
        spare = len(self.views) - most
        if spare <= 0:
            return False
        gone = self.views[-spare:] if from_end else self.views[:spare]
        self._keep_focus(gone)
        await self._messages.remove_children(gone)
        await self._mark_days()
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

    async def _replace(self, messages: Sequence[ShownMessage], *, from_end: bool) -> None:
        self._is_loading = True
        try:
            if not messages:
                self._earlier = await self._conversation.read(earlier_beside)
            await self._messages.remove_children()
            await self._messages.mount_all([self._view(one) for one in _page(messages, from_end=from_end)])
            await self._mark_days()
            self._show_whether_empty()
        finally:
            self._is_loading = False

    async def _mark_days(self) -> None:
        """Put a line before the first message of each day, and remove those that are there no longer."""
        days = first_of_days(self.views)
        lines = {line.first: line for line in self._messages.children if isinstance(line, DayLine)}
        await self._messages.remove_children([line for view, line in lines.items() if view not in days])
        for view in days.keys() - lines.keys():
            await self._messages.mount(DayLine(view, days[view]), before=view)

    async def _read(self, *, before: int | None = None, after: int | None = None) -> list[ShownMessage]:
        messages = await self._conversation.read(shown_messages, before=before, after=after, limit=PAGE)
        self._changes = await self._conversation.read(lines_beside, messages)
        return messages

    def _forget_the_oldest(self) -> None:
        for remembered in (self._done, self._said):
            for message_id in list(remembered)[:-MOST_REMEMBERED]:
                del remembered[message_id]

    def _view(self, shown: ShownMessage) -> MessageView:
        message, turn_id = shown.message, shown.turn if shown.has_steps else None
        said = self._said.get(message.id)
        steps, seconds = self._done.get(message.id, (None, 0.0))
        return MessageView(
            shown,
            colors=self._colors,
            names=self._names,
            steps=steps,
            seconds=seconds,
            load_steps=None if turn_id is None else partial(self._recorded_steps, turn_id),
            why=kind_words(message) or (said.reason if said else NOTE if is_note(message) else ""),
            notes=said.notes if said else (),
            changes=self._changes.of_turn(shown.turn),
            checks=self._changes.checks_of(shown.turn) if shown.turn else (),
            came=self._changes.after(shown.sequence, shown.unanswered),
        )

    async def _recorded_steps(self, turn_id: str) -> Steps:
        record = await self._conversation.read(turn_record, turn_id)
        return Steps() if record is None else await asyncio.to_thread(recorded_steps, record)

    def _show_whether_empty(self) -> None:
        people = ", ".join(self._names[agent.name] for agent in self._conversation.team.agents)
        self._empty.display = not self.views and not self.turns
        said = f"\n\nEarlier here: “{one_line(self._earlier.title, 60)}” /open continues it." if self._earlier else ""
        self._empty.update(
            Content(
                f"Nothing has been said yet. With you: {one_line(people, 200)}.\n\n"
                "Write below and press enter. Begin with @ to name somebody, with / for a command; F1 shows every key."
                + said
            )
        )


def _page(messages: Sequence[ShownMessage], *, from_end: bool) -> list[ShownMessage]:
    """Return the messages of a page, from one end, until they fill it; at least one."""
    lines = 0
    page: list[ShownMessage] = []
    for one in reversed(messages) if from_end else messages:
        lines += effort(one.message.content)
        if page and lines > LINES_OF_A_PAGE:
            break
        page.append(one)
    return page[::-1] if from_end else page
