"""What an address or a body says, read with care."""

from typing import cast

from starlette.requests import Request

from bullpen.errors import BullpenError
from bullpen.web.conversations import Hub
from bullpen.web.state import State, stored_state

LONGEST_NUMBER = 15
LARGEST_NUMBER = 10**LONGEST_NUMBER - 1
SHORTEST_ID, LONGEST_ID = 8, 64


def hub_of(request: Request) -> Hub:
    """Return the hub of the server that answers."""
    return cast(Hub, request.app.state.hub)


def id_in(request: Request) -> str:
    """Return the conversation that an address names."""
    return str(request.path_params["id"])


def number_in(request: Request, name: str) -> int | None:
    """Return a number in an address; None if there is none, or none that can be read."""
    return _number(request.query_params.get(name, ""))


def exact_number_in(request: Request, name: str, *, least: int = 0) -> int | None:
    """Return a number in an address; None if there is none. A program that gives anything else is told so."""
    given = request.query_params.getlist(name)
    if not given:
        return None
    number = _number(given[0]) if len(given) == 1 else None
    if number is None or number < least:
        raise BullpenError(f"What “{name}” says is no whole number from {least} to {LARGEST_NUMBER}.")
    return number


def _number(given: str) -> int | None:
    return int(given) if given.isascii() and given.isdecimal() and len(given) <= LONGEST_NUMBER else None


async def state_asked_for(request: Request) -> State:
    """Return how the conversation stands that an address names, open here or not."""
    hub, conversation_id = hub_of(request), id_in(request)
    room = hub.get(conversation_id)
    return await room.state() if room else await hub.ask(lambda store: stored_state(store, conversation_id))


def checked_id(message_id: str | None) -> str | None:
    """Return the id that somebody gave to a message, if it is one."""
    if not message_id:
        return None
    is_good = SHORTEST_ID <= len(message_id) <= LONGEST_ID and message_id.isascii()
    if not is_good or not message_id.replace("-", "").isalnum():
        raise BullpenError(f"The id of a message has {SHORTEST_ID} to {LONGEST_ID} letters, digits and hyphens.")
    return message_id
