"""Who may see which message, without reading the whole history for every prompt."""

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator
from heapq import merge
from itertools import chain, islice

from bullpen.context.history import Envelope, History

FIRST_LOOK = 1024
"""Messages that are looked at first. If they are not enough, twice as many are, and so on."""


class VisibleMessages:
    """The positions of messages by who sent them to whom; even a long conversation has few such pairs.

    The newest messages are looked at first, and none is looked at twice.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._first = self._last = len(history)
        """The positions that have been looked at: from the first up to, but not including, the last."""
        self._newer: dict[Envelope, array[int]] = {}
        """Counting up from the first look."""
        self._older: dict[Envelope, array[int]] = {}
        """Counting down from the first look."""

    def newest(
        self, agent_id: str, names: Collection[str], *, before: int, count: int | None, hidden: Collection[int] = ()
    ) -> list[int]:
        """Return the last positions of messages that the agent said, that went to it, or that went to everyone.

        Others may call it by its id, by these names, and by every name it has spoken under, in any case.
        """
        agent = _Agent(agent_id, names, self._history)
        self._look_at_new_messages()
        while True:
            visible = (
                self._backwards(envelope, before)
                for envelope in self._newer.keys() | self._older.keys()
                if agent.may_see(envelope)
            )
            allowed = (position for position in merge(*visible, reverse=True) if position not in hidden)
            newest_first = list(islice(allowed, count))
            if self._first == 0 or len(newest_first) == count:
                newest_first.reverse()
                return newest_first
            self._look_further_back()

    def may_see(self, agent_id: str, names: Collection[str], position: int) -> bool:
        """Return whether an agent may see the message at a position."""
        agent = _Agent(agent_id, names, self._history)
        return all(map(agent.may_see, self._history.envelopes(position, position + 1)))

    def sees_all(self, agent_id: str, names: Collection[str], first: int, end: int) -> bool:
        """Return whether an agent may see every message from a position on, up to but not including another.

        Messages are looked at once, and only if such an agent is in the team and there is a summary.
        """
        agent = _Agent(agent_id, names, self._history)
        self._look_at_new_messages()
        while self._first > first:
            self._look_further_back()
        hidden = (envelope for envelope in self._newer.keys() | self._older.keys() if not agent.may_see(envelope))
        return all(next(self._backwards(envelope, end), -1) < first for envelope in hidden)

    def _look_at_new_messages(self) -> None:
        end = len(self._history)
        for position, envelope in enumerate(self._history.envelopes(self._last, end), start=self._last):
            self._newer.setdefault(envelope, array("Q")).append(position)
        self._last = end

    def _look_further_back(self) -> None:
        start = max(0, self._first - max(FIRST_LOOK, self._last - self._first))
        envelopes = self._history.envelopes(start, self._first)
        for position, envelope in zip(range(self._first - 1, start - 1, -1), reversed(envelopes), strict=True):
            self._older.setdefault(envelope, array("Q")).append(position)
        self._first = start

    def _backwards(self, envelope: Envelope, before: int) -> Iterator[int]:
        newer, older = self._newer.get(envelope, _NONE), self._older.get(envelope, _NONE)
        first_older = bisect_left(older, -before + 1, key=_negative) if older and older[0] >= before else 0
        return chain(
            map(newer.__getitem__, range(bisect_left(newer, before) - 1, -1, -1)),
            map(older.__getitem__, range(first_older, len(older))),
        )


class _Agent:
    """The agent that messages come from and go to: an id and some names, in any case."""

    def __init__(self, agent_id: str, names: Collection[str], history: History) -> None:
        self._id = agent_id
        self._own_names = set(map(str.casefold, names))
        self._known_as = {*self._own_names, *map(str.casefold, (agent_id, *history.names_of(agent_id)))}

    def may_see(self, envelope: Envelope) -> bool:
        """Return whether the agent sent a message, or is among its addressees."""
        if not envelope.addressees or envelope.speaker_id == self._id:
            return True
        if envelope.speaker_name.casefold() in self._own_names:
            return True
        return any(name.casefold() in self._known_as for name in envelope.addressees)


_NONE: "array[int]" = array("Q")


def _negative(position: int) -> int:
    return -position
