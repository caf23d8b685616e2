"""A history as agents read it: markers stripped, names instead of ids, each message prepared once."""

from collections.abc import Sequence

from bullpen.context.cache import ByteBoundedCache
from bullpen.context.history import History, unpacked
from bullpen.context.prompt import EVERYONE, PromptContextMessage
from bullpen.context.stripping import Whitespace, strip_all_markers
from bullpen.context.text import byte_length
from bullpen.context.views import Window


class PreparedHistory:
    """Prepares messages when they are asked for, and remembers about cache_bytes of them."""

    def __init__(self, history: History, whitespace: Whitespace, cache_bytes: int) -> None:
        self._rows = history.rows
        self._whitespace = whitespace
        self._known: ByteBoundedCache[int, PromptContextMessage] = ByteBoundedCache(cache_bytes)

    def window(self, positions: Sequence[int]) -> Window[PromptContextMessage]:
        """Return the messages at these positions; none is prepared before it is looked at."""
        return Window(positions, self.message, self.id_at)

    def message(self, position: int) -> PromptContextMessage:
        """Return the message at a position as an agent reads it."""
        known = self._known.get(position)
        return known[0] if known else self._prepare(position)

    def id_at(self, position: int) -> str:
        """Return the id of the message at a position."""
        return self._rows[position].id

    def is_repeated(self, position: int, current: int) -> bool:
        """Tell whether an AI's current message is the one at position over again."""
        if self._rows[current].speaker.type != "ai":
            return False
        earlier, latest = self.message(position), self.message(current)
        return (earlier.sender, earlier.content) == (latest.sender, latest.content)

    def _prepare(self, position: int) -> PromptContextMessage:
        row = self._rows[position]
        addressees = row.routing.resolved_addressees if row.routing else ()
        message = PromptContextMessage(
            sender=row.speaker.role_name,
            to=format_addressees(addressees),
            content=strip_all_markers(unpacked(row.content), self._whitespace),
        )
        self._known.add(position, message, byte_length(message.content))
        return message


def format_addressees(addressees: Sequence[str] | None) -> str:
    """Return the addressees as one text; nobody in particular is everyone."""
    return ", ".join(addressees) if addressees else EVERYONE
