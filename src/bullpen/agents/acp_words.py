"""The Agent Client Protocol's words: how agents differ, answers to them, errors."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bullpen import __version__
from bullpen.acp_protocol import PROTOCOL_VERSION, SIGN_IN_NEEDED
from bullpen.agents.acp_grants import Asked
from bullpen.turn_events import Failed, FailureKind

MOST_CHARACTERS = 500
"""Of what was refused, in the words to the agent, which knows it."""
ENDINGS: Mapping[str, tuple[FailureKind, str]] = {
    "refusal": ("crashed", "Its model refused to answer."),
    "max_tokens": ("prompt_too_long", "It reached its limit of tokens before it answered."),
    "max_turn_requests": ("turn_limit", "It reached its limit of steps."),
    "cancelled": ("crashed", "It says that its turn was cancelled, and nobody did that."),
}
"""What each reason to stop means that is a failure."""


class Dialect(Struct, frozen=True, kw_only=True):
    """What differs between agents that speak the protocol."""

    modes: tuple[str, ...]
    """The modes in which it asks people, the best first. In others a model may decide, or nobody."""
    needs_mode: bool = True
    """Whether a turn fails if it offers none of these. If not, that is only said."""
    ids_name_tools: bool = False
    """Whether the id of a call begins with the name of its tool and two underscores."""
    titles_are_commands: bool = False
    """Whether it tells commands as titles of calls, with nothing beside them. Else a title alone is only a word."""
    words_request: str = ""
    """The agent's request for words of people while it works. Empty: it takes none."""
    sets_model: bool = False
    """Whether its model is chosen by way of the protocol, and not with an option of its command."""
    takes_servers: bool = True
    """Whether its MCP servers are told when its session begins, and not with an option of its command."""
    usage_adds_up: bool = False
    """Whether the use that is told for a prompt includes that of all prompts before it."""
    own_words: str = ""
    """A pattern for what the program itself says as if the agent had said it."""
    errors_begin_with: str = ""
    """How an error begins that is told as the agent's answer, to a prompt that used nothing."""
    places_apart: bool = False
    """Whether its question does not say in which folder a command is to run, but another record before or after it."""
    own_tools: str = ""
    """How the names of the turn's own tools begin, if nothing that a model writes can be taken for one of them. Empty:
    people are asked about these tools as about any other."""


class Question(Struct, frozen=True):
    """A question that waits for its answer."""

    number: int | str
    options: dict[str, str]
    about: str
    asked: Asked
    choices: dict[str, str] | None = None
    """The ids of its answers, by their words; None: it is whether something may be done."""


class Refusal(Struct, frozen=True):
    """What was not allowed, and why."""

    about: str
    reason: str

    @property
    def sentence(self) -> str:
        """What the agent hears of it."""
        return f"(bullpen: {self.about[:MOST_CHARACTERS]!r} is not allowed. {self.reason}".rstrip() + ")"


def introduction() -> dict[str, Any]:
    """Return what an agent is told first: who we are, and that it works with files and terminals by itself."""
    capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    ours = {"name": "bullpen", "title": "bullpen", "version": __version__}
    return {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities, "clientInfo": ours}


def other_version(version: object) -> str:
    """Return the sentence for an agent that speaks another version."""
    return f"It speaks version {version} of the Agent Client Protocol, and bullpen speaks {PROTOCOL_VERSION}."


def chosen(option: str | None) -> dict[str, Any]:
    """Return the answer to a question; without a fitting option it is taken back, and nothing is done."""
    return {"outcome": {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}}


def _vendors_words(message: str) -> str:
    """Return a message; of a vendor's whole answer, only what it says."""
    try:
        answer = msgspec.json.decode(message)
    except msgspec.DecodeError:
        return message
    match answer:
        case {"error": {"message": str(words), "code": code}}:
            return f"{words} ({code})"
        case _:
            return message


def failure_of(error: dict[str, Any], *, is_loading: bool = False) -> Failed:
    """Return what an error means; while a session is loaded, that it is lost."""
    code, message = error.get("code"), _vendors_words(str(error.get("message") or "It gave no reason."))
    match error.get("data"):
        case str(details) | {"details": str(details)} | {"message": str(details)} if details not in message:
            message = f"{message}: {details}"
        case _:
            pass
    if code == SIGN_IN_NEEDED:
        return Failed(kind="not_signed_in", message=message)
    # Some give the status of the vendor's answer as the code.
    is_status = isinstance(code, int) and 400 <= code < 600 and str(code) not in message
    kind: FailureKind = "session_lost" if is_loading else "crashed"
    return Failed(kind=kind, message=f"{message} ({code})" if is_status else message)
