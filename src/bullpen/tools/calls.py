"""Calls of tools: what goes through the socket between a turn's MCP server and its conversation, line by line."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

MOST_CALLS = 1_000
"""In one turn."""
TOO_MANY_CALLS = f"You have made {MOST_CALLS:,} calls in this turn, which is the most. Say your reply."

Number = Annotated[int, Meta(ge=1, le=2**53)]


class Call(Struct, frozen=True, kw_only=True):
    """A call of a tool; without a name: an earlier one is not waited for any more."""

    id: int
    tool: str = ""
    arguments: dict[str, Any] = {}


class Answer(Struct, frozen=True, kw_only=True):
    """What a call returned, or why it failed."""

    id: int
    text: str
    is_error: bool = False


class ReadHistory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="read_history"):
    """Read messages, by their numbers."""

    first: Number | None = None
    last: Number | None = None
    around: Number | None = None


class Search(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="search"):
    """Find messages."""

    query: str


class ReadMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="read_message"):
    """Read one message, all of it."""

    number: Number
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class ReadDiff(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="read_diff"):
    """Read what a turn changed."""

    turn: str = ""
    message: Number | None = None


class SeeTeam(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="team"):
    """See who is here."""


class HandOver(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="hand_over"):
    """Let others answer next."""

    to: Annotated[tuple[str, ...], Meta(min_length=1)]
    at_once: bool = False
    note: str = ""


class AskPerson(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="ask_person"):
    """Ask a question."""

    question: str
    choices: tuple[str, ...] = ()
    wait: bool = True


class LeaveNote(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="note"):
    """Leave a note."""

    text: str


ToolCall = ReadHistory | Search | ReadMessage | ReadDiff | SeeTeam | HandOver | AskPerson | LeaveNote


class WrongCall(Exception):
    """A call that no tool understands; its text is for the model."""


def read_call(tool: str, arguments: dict[str, Any]) -> ToolCall:
    """Return what a call wants, or raise WrongCall."""
    try:
        call: ToolCall = msgspec.convert({**arguments, "type": tool}, ToolCall)
    except msgspec.ValidationError as error:
        raise WrongCall(f"{tool}: {error}") from error
    return call
