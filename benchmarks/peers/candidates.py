"""All candidates that trim a history, used in the same way: fill, trim, forget."""

from collections.abc import Sequence
from time import process_time
from typing import Protocol

from benchmarks.corpus import recurring
from benchmarks.measure import seconds
from benchmarks.peers.environment import Peer
from bullpen.context import AssemblerOutput, ContextManager
from bullpen.messages import MessageDraft

AGENT = "claude-code"


class Candidate(Protocol):
    """A candidate. Seconds are processor time; a text says why there are none."""

    def fill(self, length: int) -> float | str:
        """Add this many messages, and return the seconds."""

    def trim(self) -> float | str:
        """Find what fits into the budget, and return the seconds."""

    def forget(self) -> None:
        """Free the memory."""


class InItsProcess:
    """One function of a peer."""

    def __init__(self, peer: Peer, name: str) -> None:
        self._peer = peer
        self._name = name

    def fill(self, length: int) -> float | str:
        return self._peer.ask("fill", self._name, length)

    def trim(self) -> float | str:
        return self._peer.ask("trim", self._name, 0)

    def forget(self) -> None:
        self._peer.ask("forget", self._name, 0)


class Bullpen:
    """bullpen, which also writes the prompt."""

    def __init__(self, drafts: Sequence[MessageDraft]) -> None:
        self._drafts = drafts
        self._manager = ContextManager()

    def fill(self, length: int) -> float | str:
        self.forget()
        return seconds(lambda: self._add(length), clock=process_time)

    def trim(self) -> float | str:
        return seconds(self.prompt, clock=process_time)

    def forget(self) -> None:
        self._manager = ContextManager()

    def prompt(self) -> AssemblerOutput:
        """Return the prompt with everything that fits."""
        source = self._manager.get_context_for_agent("max", AGENT, window_size_override=10**9)
        return self._manager.assemble_prompt(AGENT, source)

    def _add(self, length: int) -> None:
        for draft in recurring(self._drafts, length):
            self._manager.add_message(draft)


class Copy:
    """The limit of the machine: copying as many bytes as the prompt has in memory."""

    def __init__(self, size: int) -> None:
        self._prompt = bytearray(size)

    def fill(self, _length: int) -> float | str:
        return 0.0

    def trim(self) -> float | str:
        return seconds(lambda: bytes(self._prompt), clock=process_time)

    def forget(self) -> None:
        pass
