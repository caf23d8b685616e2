"""Who has access: the list of browsers and programs, taking access away, and the same for programs."""

from http import HTTPStatus
from typing import Literal, cast

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.web.credentials import Keys, id_of, session_id
from bullpen.web.identity import Identity, Role, required_visitor, visitor
from bullpen.web.invitations import identity_for, new_invitation
from bullpen.web.requests import hub_of
from bullpen.web.responses import json, page, sent_to


class SignedIn(Struct, frozen=True, kw_only=True):
    """A browser or a program that has access, or an address by which one can get it."""

    id: str
    kind: Literal["browser", "token", "address"]
    """An address is one that no browser has used yet."""
    role: Role
    person: str | None
    browser: str
    """Which one, in a few words."""
    began_at: int
    """Milliseconds since 1970."""
    ends_at: int
    is_you: bool


class NewToken(Struct, frozen=True, kw_only=True):
    """A token for a program, to be sent as `Authorization: Bearer …`."""

    token: str
    id: str
    """By which it is in the list."""


async def people(request: Request) -> Response:
    """Show who has access."""
    everybody = _signed_in(request)
    return page(
        "people.html",
        signed_in=[one for one in everybody if one.kind != "address"],
        unused=[one for one in everybody if one.kind == "address"],
    )


async def revoke(request: Request) -> Response:
    """Take the access of a browser or program away."""
    _keys(request).revoke(request.path_params["key"])
    return sent_to(request, "/people")


# The same for programs


async def read_me(_: Request) -> Response:
    """Return who asks."""
    who = required_visitor()
    return json(Identity(role=who.role, person=who.person))


async def invite(request: Request) -> Response:
    """Make an address for somebody."""
    given = msgspec.json.decode(await request.body() or b"{}", type=Identity)
    invitation = new_invitation(request, identity_for(hub_of(request), given.role, given.person))
    return json(invitation, HTTPStatus.CREATED)


async def new_token(request: Request) -> Response:
    """Make a token for somebody."""
    given = msgspec.json.decode(await request.body() or b"{}", type=Identity)
    token = _keys(request).new_token(identity_for(hub_of(request), given.role, given.person))
    return json(NewToken(token=token, id=id_of(token)), HTTPStatus.CREATED)


async def read_sessions(request: Request) -> Response:
    """Return who has access."""
    return json(_signed_in(request))


async def revoke_session(request: Request) -> Response:
    """Take access away, and return who still has it."""
    _keys(request).revoke(request.path_params["key"])
    return await read_sessions(request)


def _keys(request: Request) -> Keys:
    return cast(Keys, request.app.state.keys)


def _signed_in(request: Request) -> list[SignedIn]:
    who = visitor()
    here = session_id(who.session) if who is not None else ""
    signed_in = [
        SignedIn(
            id=key,
            kind=one.kind,
            role=one.identity.role,
            person=one.person,
            browser=one.browser,
            began_at=one.began_at * 1000,
            ends_at=one.ends_at * 1000,
            is_you=key == here,
        )
        for key, one in _keys(request).sessions().items()
    ]
    unused = [
        SignedIn(
            id=key,
            kind="address",
            role=one.role,
            person=one.person,
            browser="",
            began_at=one.began_at * 1000,
            ends_at=int(one.ends_at * 1000),
            is_you=False,
        )
        for key, one in _keys(request).tickets().items()
    ]
    return [*signed_in, *unused]
