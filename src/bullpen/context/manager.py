"""ContextManager: the single source of truth for one conversation, from its history to an agent's prompt."""

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from bullpen.context.agent_types import AssemblerSet, normalize_agent_type
from bullpen.context.assemblers import Overflow
from bullpen.context.history import History, MemoryHistory, message_number
from bullpen.context.positions import newest_positions, with_pinned
from bullpen.context.prepared import PreparedHistory
from bullpen.context.prompt import (
    DEFAULT_CONTEXT_WINDOW_SIZE,
    DEFAULT_MAX_BYTES,
    AssemblerInput,
    AssemblerOutput,
    ContextSummary,
)
from bullpen.context.sent_log import log_sent
from bullpen.context.snapshot import VERSION, ContextSnapshot, history_of
from bullpen.context.validation import check_message, milliseconds
from bullpen.context.visibility import VisibleMessages
from bullpen.markers.stripping import Whitespace, strip_all_markers
from bullpen.messages import ConversationMessage, MessageDraft
from bullpen.text.clean import byte_length, clean_text, truncate_to_bytes

logger = logging.getLogger(__name__)

MAX_TEAM_TASK_BYTES = 5 * 1024
LINE_BYTES = 32
"""What a line of the history has besides the message: its speaker, its addressees."""
FIRST_LOOK = 64
"""Messages that are first looked at for a window in bytes."""

Visibility = Literal["all", "addressed"]
Argument = TypeVar("Argument")
StandsFor = tuple[int, int, int]
"""The number of a summary, and those of the first and the last message that it covers."""


class ContextManager:
    """Messages, in memory or in a store, the team task, and what each agent sees of them."""

    _next_message_id: int

    def __init__(
        self,
        *,
        context_window_size: int = DEFAULT_CONTEXT_WINDOW_SIZE,
        max_bytes: int = DEFAULT_MAX_BYTES,
        on_message_added: Callable[[ConversationMessage], None] | None = None,
        on_team_task_changed: Callable[[str | None], None] | None = None,
        whitespace: Whitespace = "preserve",
        history: History | None = None,
        team_task: str | None = None,
        task_setters: Collection[str] | None = None,
    ) -> None:
        """Begin with an empty history in memory, unless one is given.

        `task_setters` are the ids of those whose [TEAM_TASK] counts: for others, it is ordinary text. None means
        everyone.
        """
        self._context_window_size = _count("context_window_size", context_window_size)
        self._max_bytes = _count("max_bytes", max_bytes)
        self._on_message_added = on_message_added
        self._on_team_task_changed = on_team_task_changed
        strip_all_markers("", whitespace)  # an unknown mode is an error now, not at the first prompt
        self._whitespace = whitespace
        self._task_setters = task_setters
        self._assemblers = AssemblerSet()
        self._start(MemoryHistory() if history is None else history, team_task)

    def add_message(self, draft: MessageDraft) -> ConversationMessage:
        """Record a message and return it with its id. A hook that fails is logged and changes nothing."""
        return self.record(self.new_message(draft))

    def new_message(self, draft: MessageDraft, *, message_id: str | None = None) -> ConversationMessage:
        """Return a message with the next id, or with the caller's, without recording it."""
        check_message(draft)
        return ConversationMessage(
            id=message_id or self.next_message_id,
            content=draft.content,
            speaker=draft.speaker,
            timestamp=_now() if draft.timestamp is None else milliseconds(draft.timestamp),
            routing=draft.routing,
            extra=draft.extra,
        )

    @property
    def next_message_id(self) -> str:
        """The id that the next message gets."""
        return f"msg-{self._next_message_id}"

    def record(self, message: ConversationMessage) -> ConversationMessage:
        """Record a message that has an id, and return it as it is kept."""
        position = len(self._history)
        self._history.append(message)
        self._next_message_id = max(self._next_message_id, message_number(message.id) + 1)
        message = self._history.message(position)
        logger.debug("[ContextManager] Message added: %s", message.id)
        _call(self._on_message_added, message)
        return message

    def get_messages(self) -> list[ConversationMessage]:
        """Return all messages in a new list."""
        return list(self._history.messages())

    def get_latest_message(self) -> ConversationMessage | None:
        """Return the last message."""
        return self._history.message(-1) if len(self._history) else None

    def set_team_task(self, task: str) -> None:
        """Set the team task; what exceeds 5 KB is cut off, with a warning."""
        if not isinstance(task, str):
            raise TypeError(f"Team task must be a string, not {type(task).__name__}")
        self._set_team_task(task)
        _call(self._on_team_task_changed, self._team_task)

    def get_team_task(self) -> str | None:
        """Return the team task, as agents read it."""
        return self._team_task

    def clear_team_task(self) -> None:
        """Remove the team task."""
        self._set_team_task(None)
        _call(self._on_team_task_changed, None)

    @property
    def team_task_bytes_cut(self) -> int:
        """How much of the team task was cut off."""
        return self._team_task_bytes_cut

    def get_context_for_agent(
        self,
        agent_id: str,
        agent_type: str,
        *,
        window_size_override: int | None = None,
        window_bytes: int | None = None,
        count_unseen: bool = False,
        after: int = 0,
        system_instruction: str | None = None,
        instruction_file_text: str | None = None,
        message_id: str | None = None,
        visibility: Visibility = "all",
        names: Collection[str] = (),
        hidden_ids: Collection[str] = (),
        pinned_ids: Collection[str] = (),
        left_out: Collection[int] = (),
        summary: StandsFor | None = None,
    ) -> AssemblerInput:
        """Return what the agent needs to answer the latest message, or the one that message_id names.

        The context is the last messages before that one, as many as the window holds, without the hidden ones; pinned
        ones are always in it. With window_bytes the window holds as many as have that many bytes together, and no
        fewer than its size. With `after` it leaves out that many messages at the beginning, except for pinned ones, and
        is as large as it takes. With count_unseen the prompt says how many earlier messages it does not contain.
        With visibility="addressed" it holds only what the agent said itself, what was addressed to it (by its id, these
        names, or any name it has spoken under), and what went to everyone.

        The messages with the numbers `left_out` are not in it, and not counted as unseen: summaries. One of them may
        cover messages that are not shown.
        """
        normalize_agent_type(agent_type)
        size = self._context_window_size
        if window_size_override is not None:
            size = _count("window_size_override", window_size_override)
        last = len(self._history) - 1
        current = last if message_id is None else self._history.position_of(message_id)
        summaries = frozenset(number - 1 for number in left_out)
        hidden = summaries.union(map(self._history.position_of, hidden_ids))
        newest = partial(self._visible, agent_id, names, current, visibility=visibility, hidden=hidden)
        if after:
            positions = newest(max(current - after, 0))
            positions = positions[bisect_left(positions, after) :]
        else:
            positions = newest(size) if window_bytes is None else self._within(window_bytes, size, newest)
        pinned = {self._history.position_of(message_id) for message_id in pinned_ids}
        positions = with_pinned(positions, pinned, current)
        # After those it knows all that it was given, and only what does not fit is missing.
        earlier = max(current, 0) - sum(position < current for position in summaries)
        unseen = (0 if after else earlier - len(positions)) if count_unseen else None
        standing = None if summary is None or after else self._standing(summary, positions)
        positions = self._without_repetition(positions, current)
        self._history.preload(positions[0] if positions else current, current)
        return AssemblerInput(
            context_messages=self._prepared.window(positions),
            current_message=self._prepared.message(current).content if current >= 0 else "",
            team_task=self._team_task,
            team_task_bytes_cut=self._team_task_bytes_cut,
            later_messages=last - current,
            unseen_messages=unseen,
            summary=standing,
            system_instruction=system_instruction,
            instruction_file_text=instruction_file_text,
            max_bytes=self._max_bytes,
        )

    def number_of(self, message_id: str) -> int:
        """Return the number of a message, counted from 1, or raise UnknownMessage."""
        return self._history.position_of(message_id) + 1

    def may_see(self, agent_id: str, names: Collection[str], message_id: str) -> bool:
        """Return whether an agent said a message, or is among its addressees, as with visibility="addressed"."""
        return self._visible_messages.may_see(agent_id, names, self._history.position_of(message_id))

    def sees_all(self, agent_id: str, names: Collection[str], first: int, last: int) -> bool:
        """Return whether an agent may see all messages between two numbers, as with visibility="addressed"."""
        return self._visible_messages.sees_all(agent_id, names, first - 1, last)

    def assemble_prompt(
        self, agent_type: str, source: AssemblerInput, *, overflow: Overflow = "cut"
    ) -> AssemblerOutput:
        """Return the prompt in the agent's own format, and its report."""
        output = self._assemblers.for_agent(agent_type).assemble(source, overflow=overflow)
        log_sent(output)
        return output

    def clear(self) -> None:
        """Forget everything; the next message is msg-1 again. A stored history cannot be cleared: that is an error."""
        self._check_replaceable()
        self._start(MemoryHistory(), team_task=None)
        _call(self._on_team_task_changed, None)

    def export_snapshot(self) -> ContextSnapshot:
        """Return the state as it is now."""
        return ContextSnapshot(
            messages=self._history.messages(),
            team_task=self._team_task,
            timestamp=_now(),
            version=VERSION,
            extra=self._snapshot_extra,
        )

    def import_snapshot(self, snapshot: ContextSnapshot) -> None:
        """Replace the state with a snapshot's; an invalid one raises InvalidSnapshot and changes nothing."""
        self._check_replaceable()
        self._start(history_of(snapshot), snapshot.team_task, snapshot.extra)
        _call(self._on_team_task_changed, self._team_task)

    def _start(self, history: History, team_task: str | None, snapshot_extra: Mapping[str, Any] | None = None) -> None:
        self._history = history
        self._prepared = PreparedHistory(history, self._whitespace, 2 * self._max_bytes, self._task_setters)
        self._visible_messages = VisibleMessages(history)
        self._next_message_id = 1 + history.highest_number()
        self._snapshot_extra = snapshot_extra
        self._set_team_task(team_task)

    def _set_team_task(self, task: str | None) -> None:
        self._team_task = limited_team_task(task)
        self._team_task_bytes_cut = byte_length(clean_text(task or "")) - byte_length(self._team_task or "")

    def _check_replaceable(self) -> None:
        if not isinstance(self._history, MemoryHistory):
            raise TypeError("A stored conversation cannot be cleared or replaced. Open a new one instead.")

    def _visible(
        self,
        agent_id: str,
        names: Collection[str],
        current: int,
        size: int | None,
        *,
        visibility: Visibility,
        hidden: Collection[int],
    ) -> Sequence[int]:
        """Return the positions of the context for the message at `current`."""
        if visibility == "addressed":
            return self._visible_messages.newest(agent_id, names, before=current, count=size, hidden=hidden)
        if visibility != "all":
            raise ValueError(f"visibility must be 'all' or 'addressed', got {visibility!r}")
        return newest_positions(current, size, hidden)

    def _standing(self, summary: StandsFor, positions: Sequence[int]) -> ContextSummary:
        number, first, last = summary
        offered = bisect_left(positions, last) - bisect_left(positions, first - 1)
        return ContextSummary(
            number=number,
            first=first,
            last=last,
            message=self._prepared.message(number - 1),
            missing=last - first + 1 - offered,
        )

    def _within(self, window_bytes: int, at_least: int, newest: Callable[[int], Sequence[int]]) -> Sequence[int]:
        """Return the newest positions whose messages have that many bytes together. The history may be long."""
        count = max(at_least, FIRST_LOOK)
        while True:
            positions = newest(count)
            fitting = self._fitting(positions, window_bytes)
            if fitting < len(positions) or len(positions) < count:
                return positions[max(0, len(positions) - max(fitting, at_least)) :]
            count *= 4

    def _fitting(self, positions: Sequence[int], room: int) -> int:
        """Return how many of the messages at these positions, from the last on, fit into some bytes."""
        for count, position in enumerate(reversed(positions)):
            room -= byte_length(self._prepared.message(position).content) + LINE_BYTES
            if room < 0:
                return count
        return len(positions)

    def _without_repetition(self, positions: Sequence[int], current: int) -> Sequence[int]:
        if positions and self._prepared.is_repeated(positions[-1], current):
            logger.debug("[ContextManager] Deduplicated context for AI→AI")
            return positions[:-1]
        return positions


def task_too_long(task: str) -> str:
    """Return a sentence about a team task that will be cut, or nothing."""
    size = byte_length(clean_text(task))
    if size <= MAX_TEAM_TASK_BYTES:
        return ""
    return f"The team task has {size:,} bytes. Agents get the first {MAX_TEAM_TASK_BYTES:,} of them."


def limited_team_task(task: str | None) -> str | None:
    """Return a team task, cut to its limit with a warning."""
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
    """Call a hook. An error in it is only logged: the message is already recorded."""
    if hook is None:
        return
    try:
        hook(argument)
    except Exception:
        logger.exception("[ContextManager] Hook failed: %r", hook)


def _now() -> int:
    return time.time_ns() // 1_000_000
