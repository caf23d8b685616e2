"""Driver: speaks with a CLI in both directions during a turn, in that CLI's own protocol.

A driver does no I/O. Records go in, events come out, and what is to be sent collects in `outgoing`.
"""

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import Struct

from bullpen.approvals import Answer
from bullpen.memory import SessionUse
from bullpen.permissions import Permission
from bullpen.turn_events import Event, Failed


class Opening(Struct, frozen=True, kw_only=True):
    """What a turn begins with."""

    prompt: str
    folder: str
    permissions: Permission
    model: str | None = None
    session: SessionUse | None = None
    server: tuple[str, ...] = ()
    """The command of the MCP server with the turn's tools; empty: there is none."""


class Driver(Protocol):
    """One turn of one CLI. A program may write anything: what it writes twice or out of turn is ignored."""

    outgoing: list[Any]
    """What is to be sent next, each as one line of JSON. It is taken out when it is sent."""

    def parse(self, record: Any) -> Iterable[Event]:
        """Return the events of a record. Finished or Failed is the CLI's own verdict on the turn."""
        ...

    def answer(self, question: str, answer: Answer) -> None:
        """Answer a question. One that is not open, or not known, is ignored."""
        ...

    def tell(self, text: str) -> bool:
        """Give the agent words of a person while it works; return whether its model gets them in this turn."""
        ...

    def interrupt(self) -> None:
        """Answer all open questions as cancelled, and ask the CLI to stop."""
        ...


def stopped_by_a_person(reason: str) -> Failed:
    """Return how a turn ends in which a question was answered with no, and stop."""
    message = f"A person stopped the turn: {reason}" if reason else "A person stopped the turn."
    return Failed(kind="permission_refused", message=message, hint="Say what to do instead.")
