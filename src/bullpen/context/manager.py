"""ContextManager: the single source of truth for one conversation, from its history to an agent's prompt."""

import logging
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Literal, TypeVar

from bullpen.context.agent_types import AssemblerSet, normalize_agent_type
from bullpen.context.assemblers import Overflow
from bullpen.context.audience import Audience
from bullpen.context.explaining import log_sent
from bullpen.context.history import History, message_number
from bullpen.context.prepared import PreparedHistory
from bullpen.context.prompt import DEFAULT_MAX_BYTES, AssemblerInput, AssemblerOutput
from bullpen.context.snapshot import VERSION, ContextSnapshot, history_of
from bullpen.context.stripping import Whitespace, strip_all_markers
from bullpen.context.text import byte_length, clean_text, truncate_to_bytes
from bullpen.context.validation import check_message, milliseconds
from bullpen.messages import ConversationMessage, MessageDraft

logger = logging.getLogger(__name__)

DEFAULT_CONTEXT_WINDOW_SIZE = 5
MAX_TEAM_TASK_BYTES = 5 * 1024

Visibility = Literal["all", "addressed"]
Argument = TypeVar("Argument")

_ID = attrgetter("id")


class ContextManager:
    """Messages, the team task, and what each agent gets to read of them."""

    def __init__(
        self,
        *,
        context_window_size: int = DEFAULT_CONTEXT_WINDOW_SIZE,
        max_bytes: int = DEFAULT_MAX_BYTES,
        on_message_added: Callable[[ConversationMessage], None] | None = None,
        on_team_task_changed: Callable[[str | None], None] | None = None,
        whitespace: Whitespace = "preserve",
    ) -> None:
        self._context_window_size = _count("context_window_size", context_window_size)
        self._max_bytes = _count("max_bytes", max_bytes)
        self._on_message_added = on_message_added
        self._on_team_task_changed = on_team_task_changed
        strip_all_markers("", whitespace)  # an unknown word for white space is an error now, not at the first prompt
        self._whitespace = whitespace
        self._assemblers = AssemblerSet()
        self._start(History(), team_task=None)

    def add_message(self, draft: MessageDraft) -> ConversationMessage:
        """Record a message and return it with its id. A hook that fails is logged and changes nothing."""
        check_message(draft)
        position = len(self._history)
        self._history.append(
            ConversationMessage(
                id=f"msg-{self._next_message_id}",
                content=draft.content,
                speaker=draft.speaker,
                timestamp=_now() if draft.timestamp is None else milliseconds(draft.timestamp),
                routing=draft.routing,
            )
        )
        self._next_message_id += 1
        message = self._history.message(position)
        logger.debug("[ContextManager] Message added: %s", message.id)
        _call(self._on_message_added, message)
        return message

    def get_messages(self) -> list[ConversationMessage]:
        """Return all messages in a new list."""
        return list(self._history.messages())

    def get_latest_message(self) -> ConversationMessage | None:
        """Return the message that came last."""
        return self._history.message(-1) if len(self._history) else None

    def set_team_task(self, task: str) -> None:
        """Set what the team works on; what exceeds 5 KB is cut off, with a warning."""
        if not isinstance(task, str):
            raise TypeError(f"Team task must be a string, not {type(task).__name__}")
        self._team_task = limited_team_task(task)
        _call(self._on_team_task_changed, self._team_task)

    def get_team_task(self) -> str | None:
        """Return what the team works on."""
        return self._team_task

    def get_context_for_agent(
        self,
        agent_id: str,
        agent_type: str,
        *,
        window_size_override: int | None = None,
        system_instruction: str | None = None,
        instruction_file_text: str | None = None,
        message_id: str | None = None,
        visibility: Visibility = "all",
    ) -> AssemblerInput:
        """Return what the agent needs to answer the latest message, or the one that message_id names.

        The context is the last messages before that one, as many as the window holds. With visibility="addressed" it
        holds only what the agent said itself, what was addressed to it, and what went to everyone.
        """
        normalize_agent_type(agent_type)
        size = self._context_window_size
        if window_size_override is not None:
            size = _count("window_size_override", window_size_override)
        current = len(self._history) - 1 if message_id is None else self._history.position_of(message_id)
        positions = self._window(agent_id, current, size, visibility)
        return AssemblerInput(
            context_messages=self._prepared.window(positions),
            current_message=self._prepared.message(current).content if current >= 0 else "",
            team_task=self._team_task,
            system_instruction=system_instruction,
            instruction_file_text=instruction_file_text,
            max_bytes=self._max_bytes,
        )

    def assemble_prompt(
        self, agent_type: str, source: AssemblerInput, *, overflow: Overflow = "cut"
    ) -> AssemblerOutput:
        """Return the prompt in the agent's own format, and its report."""
        output = self._assemblers.for_agent(agent_type, "ContextManager").assemble(source, overflow=overflow)
        log_sent(output)
        return output

    def clear(self) -> None:
        """Forget everything; the next message is msg-1 again."""
        self._start(History(), team_task=None)
        _call(self._on_team_task_changed, None)

    def export_snapshot(self) -> ContextSnapshot:
        """Return the state as it is now."""
        return ContextSnapshot(
            messages=self._history.messages(), team_task=self._team_task, timestamp=_now(), version=VERSION
        )

    def import_snapshot(self, snapshot: ContextSnapshot) -> None:
        """Replace the state by a snapshot's; one that is not valid raises InvalidSnapshot and changes nothing."""
        self._start(history_of(snapshot), limited_team_task(snapshot.team_task))
        _call(self._on_team_task_changed, self._team_task)

    def _start(self, history: History, team_task: str | None) -> None:
        self._history = history
        self._prepared = PreparedHistory(history, self._whitespace, cache_bytes=2 * self._max_bytes)
        self._audience = Audience(history)
        self._team_task = team_task
        self._next_message_id = 1 + max(map(message_number, map(_ID, history.rows)), default=0)

    def _window(self, agent_id: str, current: int, size: int, visibility: Visibility) -> Sequence[int]:
        """Return the positions of the context for the message at `current`."""
        positions: Sequence[int]
        if visibility == "all":
            positions = range(max(0, current - size), max(0, current))
        elif visibility == "addressed":
            positions = self._audience.newest_visible(agent_id, current, size)
        else:
            raise ValueError(f"visibility must be 'all' or 'addressed', got {visibility!r}")
        if positions and self._prepared.is_repeated(positions[-1], current):
            logger.debug("[ContextManager] Deduplicated context for AI→AI")
            positions = positions[:-1]
        return positions


def limited_team_task(task: str | None) -> str | None:
    """Return a team task, cut to what one may have, with a warning."""
    if task is None:
        return None
    task = clean_text(task)
    limited = truncate_to_bytes(task, MAX_TEAM_TASK_BYTES)
    if limited != task:
        logger.warning(
            "[ContextManager] TeamTask exceeded 5KB limit (%d bytes), truncated to %d bytes",
            byte_length(task),
            byte_length(limited),
        )
    return limited


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    if value < 0:
        raise ValueError(f"{name} must not be negative, got {value}")
    return value


def _call(hook: Callable[[Argument], None] | None, argument: Argument) -> None:
    """Call a hook; what it raises is its own problem, and must not lose the message that is already recorded."""
    if hook is None:
        return
    try:
        hook(argument)
    except Exception:
        logger.exception("[ContextManager] Hook failed: %r", hook)


def _now() -> int:
    return time.time_ns() // 1_000_000
