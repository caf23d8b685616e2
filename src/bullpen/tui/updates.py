"""Newsroom: takes the news of the conversation and tells each part of the screen."""

from typing import TYPE_CHECKING

from textual.css.query import NoMatches

from bullpen.conversation.conversation import Conversation
from bullpen.conversation.events import (
    ConversationEvent,
    HandOverMissed,
    Lagged,
    Said,
    Trouble,
    TurnBegan,
    TurnEnded,
    TurnEvent,
    Undecided,
)
from bullpen.store.base import Store
from bullpen.tui.composer import Composer
from bullpen.tui.decisions import wanted
from bullpen.tui.members import MembersPanel
from bullpen.tui.notice import NoticeBar
from bullpen.tui.queue import QueuePanel
from bullpen.tui.status import StatusBar
from bullpen.tui.tally import MOST_TURNS, Taken, taken_so_far
from bullpen.tui.transcript import Transcript

if TYPE_CHECKING:
    from textual.screen import Screen


SENT_AWAY = Lagged(missed=0)


class Newsroom:
    """Follows one conversation on one screen."""

    def __init__(self, screen: "Screen[None]", conversation: Conversation, taken: dict[str, Taken]) -> None:
        self._screen = screen
        self._conversation = conversation
        self._taken = taken
        self._told: dict[str, str] = {}
        self._trouble = ""
        self.missed: HandOverMissed | None = None
        """A hand-over that an agent probably meant, until somebody speaks or decides."""

    async def follow(self) -> None:
        """Show what there is, then everything that happens, until the conversation is closed."""
        try:
            while await self._follow():
                # We were too slow and were sent away: begin anew with what there is now.
                pass
        except NoMatches:
            # While the screen is taken away its parts are missing, and nobody looks.
            if self._screen.is_running:
                raise

    async def _follow(self) -> bool:
        """Follow until the news end; tell whether there are more."""
        conversation, transcript = self._conversation, self._screen.query_one(Transcript)
        with conversation.viewing() as viewer:
            await transcript.open_end()
            for turn_id in set(transcript.turns) - set(conversation.running):
                await transcript.end(turn_id)
            for turn_id, running in list(conversation.running.items()):
                await transcript.begin(turn_id, running, at=running.began_at, done=running.steps)
            await self._look_back(transcript)
            await self._show_state()
            async for numbered in viewer:
                if numbered.event == SENT_AWAY:
                    return True
                await self.take(numbered.event)
        return False

    async def take(self, news: ConversationEvent) -> None:
        """Show one news."""
        transcript = self._screen.query_one(Transcript)
        match news:
            case TurnEvent():
                await transcript.take(news.turn_id, news.event)
                return
            case Said():
                if news.message.speaker.type == "human":
                    self.missed = None
                await transcript.add(news)
            case TurnBegan():
                self.missed = None
                await transcript.begin(news.turn.id, self._conversation.running.get(news.turn.id), at=news.at)
            case TurnEnded():
                await transcript.end(news.turn_id)
                self._taken.setdefault(news.member, Taken()).add(news.usage, news.failure)
            case Undecided():
                self._told[news.turn.id] = news.text
            case HandOverMissed():
                self.missed = news
            case Trouble():
                self._trouble = news.text
            case _:
                pass
        await self._show_state()

    async def dismiss(self) -> None:
        """Take away what needs no decision."""
        self.missed, self._trouble = None, ""
        await self._show_state()

    async def _show_state(self) -> None:
        """Show what follows from the conversation as it stands."""
        screen = self._screen
        screen.query_one(StatusBar).show()
        screen.query_one(MembersPanel).show()
        screen.query_one(QueuePanel).show()
        await screen.query_one(NoticeBar).show(wanted(self._conversation, self._told, self.missed, self._trouble))

    async def _look_back(self, transcript: Transcript) -> None:
        """Learn what was before: what people said, what everyone took, why turns ended without a reply."""
        composer = self._screen.query_one(Composer)
        for view in transcript.views:
            if view.stored.message.speaker.type == "human":
                composer.remember(view.stored.message.content)
        self._told.update(await self._conversation.read(failures, [turn.id for turn in self._conversation.undecided]))
        if self._conversation.progress.turns_made <= MOST_TURNS:
            self._taken.update(await self._conversation.read(taken_so_far))


def failures(store: Store, conversation_id: str, turn_ids: list[str]) -> dict[str, str]:
    """Return why turns ended without a reply."""
    told = {}
    for turn_id in turn_ids:
        turn = store.turn(conversation_id, turn_id)
        if turn.failure is not None:
            told[turn_id] = f"{turn.member}: {turn.failure.message} {turn.failure.hint}".strip()
        else:
            told[turn_id] = f"{turn.member} was {turn.state} in turn {turn_id}. It may have changed files."
    return told
