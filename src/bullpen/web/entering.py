"""The way in: a page with a button, which signs one browser in.

Looking at the page uses nothing up, since chats and mail programs look at every address that somebody sends.
"""

from http import HTTPStatus
from typing import cast

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from bullpen.web.address import Place
from bullpen.web.credentials import Keys
from bullpen.web.identity import ROLES, Identity, browser_of, visitor
from bullpen.web.responses import page
from bullpen.web.sessions import LIFETIME_SECONDS


async def entrance(request: Request) -> Response:
    """Show whom an address is for, and the button."""
    identity = _keys(request).identity_of(_ticket_in(request))
    return (
        _spent() if identity is None else page("enter.html", identity=identity, who=visitor(), keeps=_keeps(identity))
    )


async def enter(request: Request) -> Response:
    """Exchange a ticket for a cookie, unless the browser may do more already."""
    keys, place, ticket = _keys(request), cast(Place, request.app.state.place), _ticket_in(request)
    identity = keys.identity_of(ticket)
    if identity is not None and _keeps(identity):
        return page("enter.html", HTTPStatus.CONFLICT, identity=identity, who=visitor(), keeps=True)
    session = keys.redeem(ticket, browser_of(request))
    if session is None:
        return _spent()
    answer = RedirectResponse("/", status_code=HTTPStatus.SEE_OTHER)
    secure = place.is_secure(request.headers.get("host", ""))
    answer.set_cookie(
        place.cookie, session, LIFETIME_SECONDS, path="/", httponly=True, samesite="strict", secure=secure
    )
    request.app.state.on_entry(ticket)
    return answer


def _keeps(identity: Identity) -> bool:
    """Return whether a browser would be able to do less than before."""
    who = visitor()
    return who is not None and ROLES.index(who.role) > ROLES.index(identity.role)


def _spent() -> Response:
    return page("sign_in.html", HTTPStatus.UNAUTHORIZED, is_spent=True)


def _keys(request: Request) -> Keys:
    return cast(Keys, request.app.state.keys)


def _ticket_in(request: Request) -> str:
    return str(request.path_params["ticket"])
