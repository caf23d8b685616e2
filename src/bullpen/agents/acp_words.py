"""The Agent Client Protocol's words: how agents differ, what they say of themselves, answers to them, errors."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.turn_events import Failed, FailureKind

SIGN_IN_NEEDED = -32000
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
    words_request: str = ""
    """The agent's request for words of people while it works. Empty: it takes none."""


class Question(Struct, frozen=True):
    """A question that waits for its answer."""

    number: int | str
    options: dict[str, str]
    about: str


class Refusal(Struct, frozen=True):
    """What was not allowed, and why."""

    about: str
    reason: str

    @property
    def sentence(self) -> str:
        """What the agent hears of it."""
        return f"(bullpen: {self.about[:MOST_CHARACTERS]!r} is not allowed. {self.reason}".rstrip() + ")"


def chosen(option: str | None) -> dict[str, Any]:
    """Return the answer to a question; without a fitting option it is taken back, and nothing is done."""
    return {"outcome": {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}}


def model_of(result: dict[str, Any]) -> str | None:
    """Return the model that a session uses, as people call it."""
    match result:
        case {"models": {"currentModelId": str(model), "availableModels": [*models]}}:
            names = [one.get("name") for one in models if isinstance(one, dict) and one.get("modelId") == model]
            return next((name for name in names if isinstance(name, str)), model)
        case {"configOptions": [*options]}:
            values = [one.get("currentValue") for one in options if isinstance(one, dict) and one.get("id") == "model"]
            return next((value for value in values if isinstance(value, str)), None)
        case _:
            return None


def modes_of(result: dict[str, Any]) -> list[str]:
    """Return the ids of the modes that an agent offers."""
    match result.get("modes"):
        case {"availableModes": [*modes]}:
            return [mode["id"] for mode in modes if isinstance(mode, dict) and isinstance(mode.get("id"), str)]
        case _:
            return []


def no_mode(offers: list[str]) -> str:
    """Return the sentence for an agent that offers no mode that is known."""
    offered_modes = f"it offers {', '.join(offers)}" if offers else "it offers no modes"
    return f"It has no mode of which bullpen knows that people are asked in it: {offered_modes}"


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


def failure_of(error: dict[str, Any]) -> Failed:
    """Return what an error means."""
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
    return Failed(kind="crashed", message=f"{message} ({code})" if is_status else message)
