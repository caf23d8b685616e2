"""Updates: follows the events of a conversation, and lets each part of the screen show what has changed."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual.css.query import NoMatches
from textual.message import Message

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import (
    Answered,
    Checked,
    ConversationEvent,
    FilesChanged,
    Lagged,
    Said,
    Trouble,
    TroubleOver,
    TurnBegan,
    TurnEnded,
    TurnEvent,
)
from bullpen.errors import BullpenError
from bullpen.tui.composer import Composer
from bullpen.tui.members import MembersPanel
from bullpen.tui.notice import NoticeBar
from bullpen.tui.queue import QueuePanel
from bullpen.tui.running_heads import RunningHeads
from bullpen.tui.status import StatusBar
from bullpen.tui.text import one_line
from bullpen.tui.transcript import Transcript
from bullpen.view.answers import answered_words
from bullpen.view.attention import Attention, attention
from bullpen.view.change_reading import change_line
from bullpen.view.checks import check_shown
from bullpen.view.choices import Decision, with_keys
from bullpen.view.decisions import DISMISS
from bullpen.view.state import ConversationView, conversation_view
from bullpen.view.unanswered import UnansweredTurn, unanswered_turn

if TYPE_CHECKING:
    from textual.screen import Screen


# The broadcast's way of saying that this viewer was too slow and gets no more events.
SENT_AWAY = Lagged(missed=0)


class Changed(Message):
    """Files were changed."""


class Waiting(Message):
    """What waits for a person now."""

    def __init__(self, conversation_id: str, attention: Attention) -> None:
        super().__init__()
        self.conversation_id = conversation_id
        self.attention = attention


class CardsShown(Message):
    """What waits for an answer is on the screen."""


class Updates:
    """Follows one conversation on one screen."""

    def __init__(self, screen: "Screen[None]", conversation: Conversation, sender: str | None = None) -> None:
        self._screen = screen
        self._conversation = conversation
        self._sender = sender
        self._troubles: dict[str, str] = {}
        """What went wrong and nobody has dismissed, by what it is about; the latest last."""

    @property
    def view(self) -> ConversationView:
        """The conversation now, with trouble that nobody has dismissed as the most urgent decision."""
        view = conversation_view(self._conversation)
        # The bar shows only the first decision, and trouble must not hide that results wait to be picked.
        picks = [choice for one in view.decisions for choice in one.choices if choice.action == "pick"]
        troubles = [
            with_keys(Decision(kind="trouble", text=text, choices=(DISMISS, *picks[:1])))
            for text in self._troubles.values()
        ]
        return replace(view, decisions=(*reversed(troubles), *view.decisions)) if troubles else view

    async def follow(self) -> None:
        """Show the conversation, then everything that happens, until it is closed."""
        with self._unless_missing():
            while await self._follow():
                # We were too slow and were sent away: start again with what there is now.
                pass

    async def tick(self) -> None:
        """Let the clocks of running turns move, and those of turns that sleep."""
        sleeps = self._conversation.waiting and self._conversation.progress.rests
        if self._conversation.running or self._conversation.running_checks or sleeps:
            await self.show_state()

    async def dismiss_trouble(self) -> bool:
        """Remove trouble from the screen; return whether there was any."""
        had_trouble = bool(self._troubles)
        if had_trouble:
            self._troubles.popitem()
        await self.show_state()
        return had_trouble

    async def show_state(self) -> None:
        """Show the state of the conversation everywhere on the screen."""
        screen, view = self._screen, self.view
        with self._unless_missing():
            screen.query_one(StatusBar).show(view, self._sender)
            screen.query_one(RunningHeads).show(view)
            turns = screen.query_one(Transcript).turns
            for one in view.working:
                if one.turn in turns:
                    turns[one.turn].show_activity(one.activity)
            screen.query_one(MembersPanel).show(view)
            screen.query_one(QueuePanel).show(view)
            await screen.query_one(NoticeBar).show(view.decisions)
            # When they are painted: a key that was pressed before that was not meant for them.
            screen.call_after_refresh(screen.post_message, CardsShown())
            screen.post_message(Waiting(self._conversation.id, attention(view, self._sender)))

    @contextmanager
    def _unless_missing(self) -> Iterator[None]:
        """Ignore parts that are not on the screen yet, or not any more: the next update shows them."""
        with suppress(NoMatches):
            yield

    async def _follow(self) -> bool:
        """Follow until the events end; return whether there are more."""
        conversation, transcript = self._conversation, self._screen.query_one(Transcript)
        with conversation.viewing() as viewer:
            await transcript.open_end()
            for turn_id in set(transcript.turns) - set(conversation.running):
                await transcript.end(turn_id)
            for turn_id, running in list(conversation.running.items()):
                plan = [running.todo] if running.todo else []
                await transcript.begin(turn_id, running, at=running.began_at, done=[*running.steps, *plan])
            self._fill_history(transcript)
            await self.show_state()
            async for numbered in viewer:
                if numbered.event == SENT_AWAY:
                    return True
                await self._on_event(numbered.event)
        return False

    async def _on_event(self, event: ConversationEvent) -> None:
        transcript = self._screen.query_one(Transcript)
        match event:
            case TurnEvent():
                await transcript.on_turn_event(event.turn_id, event.event)
                return
            case Said():
                await transcript.add(event)
            case TurnBegan():
                await transcript.begin(event.turn.id, self._conversation.running.get(event.turn.id), at=event.at)
            case TurnEnded(state="done"):
                await transcript.end(event.turn_id)
            case TurnEnded():
                await transcript.end(event.turn_id, await self._unanswered(event.turn_id))
            case FilesChanged(record=record):
                if (line := change_line(record)) is not None:
                    await transcript.changed(line)
                    self._screen.post_message(Changed())
            case Checked(result=result):
                await transcript.checked(check_shown(result))
            case Answered(was_waiting=True):
                self._screen.notify(one_line(answered_words(event), 300), markup=False)
            case Trouble(text=text, about=about):
                self._troubles.pop(about, None)
                self._troubles[about] = text
            case TroubleOver(about=about):
                self._troubles.pop(about, None)
            case _:
                pass
        await self.show_state()

    async def _unanswered(self, turn_id: str) -> UnansweredTurn | None:
        """Return what a turn without a reply had said and done; None if the disk fails just now."""
        try:
            return await self._conversation.read(unanswered_turn, turn_id)
        except BullpenError:
            return None

    def _fill_history(self, transcript: Transcript) -> None:
        """Let the composer recall what people said before."""
        composer = self._screen.query_one(Composer)
        for view in transcript.views:
            if view.message.speaker.type == "human":
                composer.remember(view.message.content)
