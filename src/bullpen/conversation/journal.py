"""Journal: the one place where a conversation changes: an entry is stored, is true in memory, and is published."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from bullpen.context.history import History
from bullpen.context.manager import ContextManager
from bullpen.context.prepared import format_addressees
from bullpen.context.prompt import DEFAULT_MAX_BYTES
from bullpen.conversation.broadcast import Broadcast
from bullpen.conversation.entry import Entry
from bullpen.conversation.events import ConversationEvent, TaskSet
from bullpen.conversation.state import ConversationState
from bullpen.errors import ConversationClosed
from bullpen.messages import ConversationMessage
from bullpen.store.base import StoredMessage
from bullpen.team.team import Team

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


class Journal:
    """Commits entries, one after the other, and tells those who watch."""

    def __init__(self, team: Team, state: ConversationState, history: History) -> None:
        self.state = state
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
        """Set when something has changed, so that it is time to see whether a turn may begin."""
        self.quiet = asyncio.Event()
        """Set while nobody is at work and nothing can begin."""
        self.closing = asyncio.Event()
        self.lock = asyncio.Lock()
        """Whoever changes the conversation holds it, so that what was decided is still so when it is written."""
        self.changes: set[asyncio.Task[Any]] = set()
        """What is being done at the moment."""
        self._entry: Entry | None = None
        self._task_set_by = ""

    async def alone(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do something alone and to its end, even if the caller does not wait any more."""
        if self.closing.is_set():
            raise ConversationClosed(self.state.conversation_id)
        return await self.shielded(work)

    async def shielded(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do the same while the conversation is being closed."""
        done: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._locked(work, done))
        self.changes.add(task)
        task.add_done_callback(self.changes.discard)
        # asyncio.shield would do, but its caller learns of the end some rounds of the event loop later.
        return await done

    async def commit(self, entry: Entry, *, by: str = "") -> StoredMessage | None:
        """Store an entry, let it be true in memory, and tell everyone. Only for who is alone."""
        stored = await self.state.commit(entry)
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

    async def commit_message(self, build: Callable[..., Entry], message_id: str | None = None) -> StoredMessage:
        """Commit a message under an id of the caller's, or under the next number."""
        stored = await self.commit(build(message_id=message_id or self.context.next_message_id))
        if stored is None:
            raise TypeError("an entry without a message was committed as one")
        return stored

    def publish(self, *events: ConversationEvent) -> None:
        """Tell everyone who watches."""
        for event in events:
            self.broadcast.publish(event)

    async def _locked(self, work: Callable[[], Awaitable[Result]], done: "asyncio.Future[Result]") -> None:
        """Do something while nobody else changes the conversation, and hand the result to whoever still waits."""
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
        # The caller comes first, and then those who see what may begin now.
        if not done.done():
            done.set_result(result)
        self.changed.set()
        self.quiet.clear()

    def _publish_message(self, _: ConversationMessage) -> None:
        """Publish a message after the context has recorded it."""
        if self._entry is not None and self._entry.said is not None:
            self.publish(self._entry.said)

    def _publish_task(self, task: str | None) -> None:
        """Publish what the team works on after the context has learned it."""
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
