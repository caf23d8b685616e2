"""The lines of a prompt's history: the newest that fit. Runs that many prompts contain are joined once."""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from msgspec.structs import replace

from bullpen.cache import ByteBoundedCache, SelfFillingCache
from bullpen.context.budget import newest_that_fit
from bullpen.context.positions import Ranges
from bullpen.context.prompt import PromptContextMessage
from bullpen.context.report import ChangedMessage
from bullpen.context.views import Window

RUN = 32
"""Messages in a run. A run is joined once: copying one text is much faster than handling each line of it."""


class Line(NamedTuple):
    """One message of the history, or a run of them, ready to be printed."""

    text: str
    size: int
    """In UTF-8."""
    messages: int = 1
    changes: tuple[tuple[int, ChangedMessage], ...] = ()
    """The messages that were changed, by their position in the line; their ids are not known yet."""


class HistoryLines:
    """The lines of one history after another. Each line is cached, either alone or in its run."""

    def __init__(self, lines: SelfFillingCache[PromptContextMessage, Line]) -> None:
        self._lines = lines
        # By the position of their first message. Its limit is twice the room of the largest prompt so far.
        self._runs: ByteBoundedCache[int, Line] = ByteBoundedCache(0, size_of=itemgetter(1))
        self._source: object = None

    def newest_that_fit(self, messages: Sequence[PromptContextMessage], room: int) -> tuple[list[Line], int]:
        """Return the lines of the newest messages that fit, oldest first, and the bytes they take when joined."""
        if not isinstance(messages, Window) or not isinstance(messages.positions, Ranges):
            return newest_that_fit(map(self._lines.__getitem__, reversed(messages)), room)
        if messages.source is not self._source:
            self._source = messages.source
            self._runs.forget_all()
        self._runs.max_bytes = max(self._runs.max_bytes, 2 * room)
        newest_first: list[Line] = []
        left = room
        for positions in messages.positions.aligned(RUN):
            run = self._runs.get(positions.start) if len(positions) == RUN else None
            if run is not None and run.size <= left:
                newest_first.append(run)
                left -= run.size + 1
                continue
            lines, size = newest_that_fit(map(self._lines.__getitem__, messages.at(reversed(positions))), left)
            newest_first += reversed(lines)
            left -= size + 1 if lines else 0
            if len(lines) < len(positions):
                break
            if len(positions) == RUN:
                self._runs.add(positions.start, _joined(lines, size))
                for message in messages.at(positions):
                    self._lines.forget(message)
        newest_first.reverse()
        return newest_first, room - left - 1 if newest_first else 0


def changed_messages(lines: Iterable[Line], ids: Sequence[str], first: int) -> Iterator[ChangedMessage]:
    """Yield what was changed in these lines; `first` is the position of their first message among the ids."""
    for line in lines:
        for place, change in line.changes:
            yield replace(change, id=ids[first + place])
        first += line.messages


def _joined(lines: Sequence[Line], size: int) -> Line:
    changes = ((place, change) for place, line in enumerate(lines) for _, change in line.changes)
    return Line("\n".join(line.text for line in lines), size, len(lines), tuple(changes))
