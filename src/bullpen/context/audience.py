"""Who may see which message, without reading the whole history for every prompt."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from heapq import merge
from itertools import islice

from bullpen.context.history import History

Envelope = tuple[str, str, tuple[str, ...]]


class Audience:
    """The positions of messages by who sent them to whom; there are few such pairs, however long the conversation."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._indexed = 0
        self._by_envelope: dict[Envelope, array[int]] = {}

    def newest_visible(self, agent_id: str, before: int, count: int) -> list[int]:
        """Return the last positions of messages that the agent said, that went to it, or that went to everyone."""
        self._index_new_rows()
        names = self._names_of(agent_id)
        visible = [
            _backwards(positions, before)
            for (speaker_id, _, addressees), positions in self._by_envelope.items()
            if speaker_id == agent_id or not addressees or not names.isdisjoint(map(str.casefold, addressees))
        ]
        newest_first = list(islice(merge(*visible, reverse=True), count))
        newest_first.reverse()
        return newest_first

    def _index_new_rows(self) -> None:
        rows = self._history.rows
        for position in range(self._indexed, len(rows)):
            row = rows[position]
            addressees = row.routing.resolved_addressees if row.routing else ()
            envelope = (row.speaker.role_id, row.speaker.role_name, addressees)
            self._by_envelope.setdefault(envelope, array("Q")).append(position)
        self._indexed = len(rows)

    def _names_of(self, agent_id: str) -> set[str]:
        """Return what others may call the agent: its id, and every name it has spoken under."""
        spoken_under = {name for speaker_id, name, _ in self._by_envelope if speaker_id == agent_id}
        return {name.casefold() for name in (agent_id, *spoken_under)}


def _backwards(positions: "array[int]", before: int) -> Iterator[int]:
    return map(positions.__getitem__, range(bisect_left(positions, before) - 1, -1, -1))
