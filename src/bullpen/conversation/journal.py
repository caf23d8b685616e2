"""Journal: the one place where a conversation changes: an entry is stored, applied in memory, and published."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from bullpen.context.history import History
from bullpen.context.manager import ContextManager
from bullpen.context.prepared import format_addressees
from bullpen.context.prompt import DEFAULT_MAX_BYTES
from bullpen.conversation import reviews, summary_entries
from bullpen.conversation.broadcast import Broadcast
from bullpen.conversation.entry import Entry
from bullpen.conversation.events import ConversationEvent, Paused, TaskSet
from bullpen.conversation.rounds import follow
from bullpen.conversation.state import ConversationState
from bullpen.errors import ConversationClosed, NotTheOwner, StoreUncertain, TurnNumberTaken, UnknownConversation
from bullpen.messages import ConversationMessage
from bullpen.store.base import StoredMessage
from bullpen.team.team import Team

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Journal:
    """Commits entries, one after the other, and publishes their events."""

    def __init__(self, team: Team, state: ConversationState, history: History) -> None:
        self.state = state
        self._team = team
        self.context = ContextManager(
            max_bytes=max((agent.max_bytes for agent in team.agents), default=DEFAULT_MAX_BYTES),
            whitespace=team.whitespace,
            history=history,
            team_task=state.team_task,
            task_setters=team.task_setters,
            on_message_added=self._publish_message,
            on_team_task_changed=self._publish_task,
        )
        self.broadcast = Broadcast()
        self.changed = asyncio.Event()
        """Set when something has changed: a turn may be able to begin."""
        self.quiet = asyncio.Event()
        """Set while no turn is running and none can begin."""
        self.closing = asyncio.Event()
        self.lock = asyncio.Lock()
        """Held during every change, so that nothing else changes between a decision and writing it."""
        self.changes: set[asyncio.Task[Any]] = set()
        """The changes in progress."""
        self.lost: NotTheOwner | UnknownConversation | StoreUncertain | None = None
        """Why nothing can be stored any more: another process has taken the conversation, or deleted it, or nobody
        knows what is stored, so that it must be read again."""
        self.on_lost: Callable[[], None] = lambda: None
        """Called then, to end what runs here."""
        self._entry: Entry | None = None
        self._task_set_by = ""

    async def alone(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Run a change alone and to its end, even if the caller is cancelled."""
        if self.closing.is_set():
            raise ConversationClosed(self.state.conversation_id)
        return await self.shielded(work)

    async def shielded(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the same, even while the conversation is being closed."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._locked(work, done))
        self.changes.add(task)
        task.add_done_callback(self.changes.discard)
        # asyncio.shield would work, but resumes its caller some iterations of the event loop later.
        return await done

    async def commit(self, entry: Entry, *, by: str = "") -> StoredMessage | None:
        """Store an entry, apply it in memory, and publish its events. The caller must hold the lock."""
        if self.lost is not None:
            raise self.lost
        entry = reviews.follow(self._team, self.state, follow(self.state, entry))
        entry = summary_entries.follow(self.state, entry)
        try:
            stored = await self.state.commit(entry)
        except (NotTheOwner, UnknownConversation, StoreUncertain) as error:
            self.lose(error)
            raise
        if stored is not None and stored.already_stored:
            return stored
        _log_route(entry)
        self._entry = entry
        self._task_set_by = by or (entry.message.speaker.role_id if entry.message else "")
        if entry.message is not None:
            self.context.record(entry.message)
        self.publish(*entry.events)
        if isinstance(entry.change.team_task, str):
            self.context.set_team_task(entry.change.team_task)
        elif entry.change.team_task is None:
            self.context.clear_team_task()
        return stored

    async def commit_built(self, build: Callable[[], Entry], *, by: str = "") -> tuple[Entry, StoredMessage | None]:
        """Build an entry and commit it. If the store knows more turns than we do, it is built again after those."""
        try:
            entry = build()
            return entry, await self.commit(entry, by=by)
        except TurnNumberTaken:
            await self.state.renumber()
            entry = build()
            return entry, await self.commit(entry, by=by)

    async def commit_message(self, build: Callable[..., Entry], message_id: str | None = None) -> StoredMessage:
        """Commit a message with the caller's id, or with the next number."""
        _, stored = await self.commit_built(lambda: build(message_id=message_id or self.context.next_message_id))
        if stored is None:
            raise TypeError("an entry without a message was committed as one")
        return stored

    def lose(self, error: NotTheOwner | UnknownConversation | StoreUncertain) -> None:
        """Stop everything: the conversation is not ours any more, and nothing that we do can be stored."""
        if self.lost is None:
            self.lost = error
            self.state.paused = str(error)
            logger.warning("conversation lost conversation=%s error=%s", self.state.conversation_id, error)
            self.publish(Paused(kind="trouble", text=str(error)))
            self.on_lost()

    def publish(self, *events: ConversationEvent) -> None:
        """Send events to all viewers."""
        for event in events:
            self.broadcast.publish(event)

    async def _locked(self, work: Callable[[], Awaitable[Result]], done: "asyncio.Future[Result]") -> None:
        """Run a change while nothing else changes the conversation, and pass the result to its caller."""
        try:
            async with self.lock:
                result = await work()
        except Exception as error:
            if not done.done():
                done.set_exception(error)
            return
        except BaseException:
            done.cancel()
            raise
        # The caller continues first, and then the turn loop.
        if not done.done():
            done.set_result(result)
        self.changed.set()
        self.quiet.clear()

    def _publish_message(self, _: ConversationMessage) -> None:
        """Publish a message after the context has recorded it."""
        if self._entry is not None and self._entry.said is not None:
            self.publish(self._entry.said)

    def _publish_task(self, task: str | None) -> None:
        """Publish the team task after the context has recorded it."""
        self.publish(TaskSet(task=task, by=self._task_set_by))


def _log_route(entry: Entry) -> None:
    """Log, at debug, where a message goes and why."""
    if entry.message is None or entry.said is None or not logger.isEnabledFor(logging.DEBUG):
        return
    routing = entry.message.routing
    logger.debug(
        "[Debug][Route] message=%s from=%s to=%s asked=%s reason=%s notes=%s",
        entry.message.id,
        entry.message.speaker.role_id,
        format_addressees(routing.resolved_addressees if routing else ()),
        ", ".join(turn.member for turn in entry.turns) or "nobody",
        entry.said.reason or "markers",
        " ".join(entry.said.notes) or "none",
    )
