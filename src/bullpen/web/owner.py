"""Who may change what runs on this machine: its owner, in a browser on this machine, and no invited guest."""

from http import HTTPStatus
from ipaddress import ip_address
from typing import cast

from starlette.exceptions import HTTPException
from starlette.requests import Request

from bullpen.web.address import Place
from bullpen.web.credentials import Keys
from bullpen.web.guard import cookies_named

NOT_THE_OWNER = (
    "Only the owner can change a team file, since it names programs that run on their machine: in a browser there, "
    "with an address that `bullpen serve` printed."
)


def is_owner(request: Request) -> bool:
    """Return whether a browser on this machine came in with an address from the terminal."""
    keys, place = cast(Keys, request.app.state.keys), cast(Place, request.app.state.place)
    cookies = cookies_named(place.cookie, request.headers.getlist("cookie"))
    return "authorization" not in request.headers and keys.knows_owner(cookies) and _is_local(request)


def require_owner(request: Request) -> None:
    """Refuse everybody else."""
    if not is_owner(request):
        raise HTTPException(HTTPStatus.FORBIDDEN, NOT_THE_OWNER)


def _is_local(request: Request) -> bool:
    client, server = request.scope.get("client"), request.scope.get("server")
    if client is None:
        return False
    # A browser with the address that the server listens on is on the same machine.
    is_same = server is not None and client[0] == server[0]
    return is_same or ip_address(client[0]).is_loopback
