"""A history as agents read it: markers stripped, names instead of ids, each message prepared once."""

from collections.abc import Collection, Sequence
from functools import partial

from bullpen.cache import SelfFillingCache
from bullpen.context.history import History
from bullpen.context.prompt import EVERYONE, PromptContextMessage
from bullpen.context.views import Window
from bullpen.markers.stripping import Whitespace, without_markers
from bullpen.text.clean import byte_length


class PreparedHistory:
    """Prepares messages on first use, and caches about cache_bytes of them."""

    def __init__(
        self, history: History, whitespace: Whitespace, cache_bytes: int, task_setters: Collection[str] | None = None
    ) -> None:
        self._history = history
        self._source = object()
        # Not a method, which would create a reference cycle of history and cache.
        prepare = partial(_prepare, history, whitespace, task_setters)
        self._known = SelfFillingCache(cache_bytes, prepare, size_of=_size)

    def window(self, positions: Sequence[int]) -> Window[PromptContextMessage]:
        """Return the messages at these positions; each is prepared when it is read."""
        return Window(positions, self._known.__getitem__, self._history.id_at, self._source)

    def message(self, position: int) -> PromptContextMessage:
        """Return the message at a position as an agent reads it."""
        return self._known[position]

    def is_repeated(self, position: int, current: int) -> bool:
        """Return whether an AI's current message repeats the one at a position."""
        if self._history.message(current).speaker.type != "ai":
            return False
        earlier, latest = self.message(position), self.message(current)
        return (earlier.sender, earlier.content) == (latest.sender, latest.content)


def _prepare(
    history: History, whitespace: Whitespace, task_setters: Collection[str] | None, position: int
) -> PromptContextMessage:
    message = history.message(position)
    task_counts = task_setters is None or message.speaker.role_id in task_setters
    return PromptContextMessage(
        sender=message.speaker.role_name,
        to=format_addressees(message.routing.resolved_addressees if message.routing else ()),
        content=without_markers(message.content, whitespace, task_counts=task_counts),
    )


def _size(message: PromptContextMessage) -> int:
    return byte_length(message.content)


def format_addressees(addressees: Sequence[str] | None) -> str:
    """Return the addressees as one text; an empty list means everyone."""
    return ", ".join(addressees) if addressees else EVERYONE
