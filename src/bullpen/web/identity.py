"""Who asks: a person of the team or a guest, and the role that says what they may do."""

from collections.abc import Collection
from contextvars import ContextVar
from http import HTTPStatus
from typing import Literal, get_args

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request

from bullpen.errors import BullpenError

Role = Literal["viewer", "member", "owner"]
ROLES: tuple[Role, ...] = get_args(Role)
"""Each may do what those before it may."""


class Identity(Struct, frozen=True, kw_only=True):
    """Whom an invitation, a browser or a token is for."""

    role: Role
    """A viewer reads. A member also speaks, as themselves, and decides about turns. An owner may do everything."""
    person: str | None = None
    """A name in the team; None: a guest, who reads, or an owner, who speaks as anybody in the team."""


OWNER = Identity(role="owner")
GUEST = Identity(role="viewer")


class Visitor(Identity, frozen=True, kw_only=True):
    """Who sent a request."""

    session: str = ""
    """By what they are known: the key of their session or token; empty for the owner's token."""
    is_here: bool = False
    """Whether it is a browser on the machine of the server."""


_VISITOR: ContextVar[Visitor | None] = ContextVar("visitor", default=None)


def set_visitor(visitor: Visitor | None) -> None:
    """Remember who sent the request that is being answered."""
    _VISITOR.set(visitor)


def visitor() -> Visitor | None:
    """Return who sent the request that is being answered; None: a stranger, or nobody in particular."""
    return _VISITOR.get()


def required_visitor() -> Visitor:
    """Return who sent the request that is being answered, or refuse to answer."""
    who = visitor()
    if who is None:
        raise HTTPException(HTTPStatus.FORBIDDEN, "You are not signed in.")
    return who


def identity_of(role: str, person: str | None) -> Identity:
    """Return whom something is for, or raise BullpenError for what cannot be."""
    known = next((one for one in ROLES if one == role), None)
    if known is None:
        raise BullpenError(f"{role!r} is not a role. The roles are {', '.join(ROLES)}.")
    if known == "member" and not person:
        raise BullpenError("A guest can only read. To take part, they must be a person in the team file.")
    return Identity(role=known, person=person or None)


def takes_part(people: Collection[str]) -> bool:
    """Return whether who asks can speak and decide among these people."""
    who = visitor()
    return who is not None and (who.role == "owner" or (who.role == "member" and who.person in people))


def browser_of(request: Request) -> str:
    """Return which browser sent a request, in a few words, for the list of those that are signed in."""
    agent = request.headers.get("user-agent", "")
    names = {"Edg/": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "Chrome/": "Chrome", "Safari/": "Safari"}
    systems = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS": "macOS"}
    name = next((name for sign, name in names.items() if sign in agent), "")
    system = next((name for sign, name in {**systems, "Linux": "Linux"}.items() if sign in agent), "")
    return " on ".join(filter(None, [name, system]))
