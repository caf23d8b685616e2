"""Reading and checking values from an address or a body."""

from collections.abc import Collection
from http import HTTPStatus
from typing import cast

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bullpen.conversation.conversation import THE_OWNER, Conversation
from bullpen.errors import BullpenError
from bullpen.markers.grammar import read_markers
from bullpen.view.state import ConversationView, stored_view
from bullpen.web.access import Endpoint
from bullpen.web.conversations import Hub
from bullpen.web.identity import required_visitor, takes_part

LONGEST_NUMBER = 15
LARGEST_NUMBER = 10**LONGEST_NUMBER - 1
SHORTEST_ID, LONGEST_ID = 8, 64


def hub_of(request: Request) -> Hub:
    """Return the hub of the server."""
    return cast(Hub, request.app.state.hub)


def id_in(request: Request) -> str:
    """Return the conversation id in an address."""
    return str(request.path_params["id"])


def number_in(request: Request, name: str) -> int | None:
    """Return a number in an address; None if it is missing or not valid."""
    return number_of(request.query_params.get(name, ""))


def exact_number_in(request: Request, name: str, *, least: int = 0) -> int | None:
    """Return a number in an address; None if it is missing. Anything else is an error."""
    given = request.query_params.getlist(name)
    if not given:
        return None
    number = number_of(given[0]) if len(given) == 1 else None
    if number is None or number < least:
        raise BullpenError(f"The parameter {name} is not a whole number from {least} to {LARGEST_NUMBER}.")
    return number


def truth_in(request: Request, name: str) -> bool:
    """Return whether something is wanted in an address; not if it is missing. Anything else is an error."""
    given = request.query_params.getlist(name)
    if len(given) > 1 or any(one not in ("true", "false") for one in given):
        raise BullpenError(f"The parameter {name} is neither true nor false.")
    return given == ["true"]


def number_of(given: str) -> int | None:
    """Return a number that was written in digits; None if it was not."""
    return int(given) if given.isascii() and given.isdecimal() and len(given) <= LONGEST_NUMBER else None


async def view_in(request: Request) -> ConversationView:
    """Return the state of the conversation in an address, open here or not."""
    hub, conversation_id = hub_of(request), id_in(request)
    opened = hub.get(conversation_id)
    return opened.view() if opened else await hub.read(stored_view, conversation_id)


def for_its_people(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that answers only those who take part in the conversation in its address, open here or not."""

    async def answer(request: Request) -> Response:
        if required_visitor().role != "owner":
            _ensure_takes_part(_people_in(await view_in(request)))
        return await endpoint(request)

    return answer


def decider_of(view: ConversationView) -> str:
    """Return who decides something about a conversation that is not open here."""
    people, person = _people_in(view), required_visitor().person
    if person in people:
        return str(person)
    return people[0] if len(people) == 1 else THE_OWNER


def _people_in(view: ConversationView) -> list[str]:
    return [member.name for member in view.members if member.type == "human"]


def _ensure_takes_part(people: Collection[str]) -> None:
    if not takes_part(people):
        raise HTTPException(
            HTTPStatus.FORBIDDEN,
            f"You are signed in as {required_visitor().person}, who is not in the team of this conversation. You can "
            "read it.",
        )


def sender_in(conversation: Conversation, given: str | None, text: str = "") -> str | None:
    """Return as whom the visitor speaks and decides here: as themselves, and an owner as anybody.

    None: as the text says, or else as whom the conversation waits for.
    """
    who = required_visitor()
    people = [person.name for person in conversation.team.people]
    if who.role == "owner":
        own = who.person if who.person in people and read_markers(text).sender is None else None
        return given or own
    _ensure_takes_part(people)
    if given and conversation.person(given).name != who.person:
        raise HTTPException(HTTPStatus.FORBIDDEN, f"You are signed in as {who.person}, so you cannot speak as {given}.")
    return who.person


def checked_id(message_id: str | None) -> str | None:
    """Return the id that the sender gave to a message, or raise BullpenError if it is not valid."""
    if not message_id:
        return None
    is_valid = SHORTEST_ID <= len(message_id) <= LONGEST_ID and message_id.isascii()
    if not is_valid or not message_id.replace("-", "").isalnum():
        raise BullpenError(f"A message id must have {SHORTEST_ID} to {LONGEST_ID} letters, digits and hyphens.")
    return message_id
