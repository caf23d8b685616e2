"""What each role may do: one table of all routes, and the one place where it is applied."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Literal

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bullpen.view.commands import ACTIONS
from bullpen.web.identity import ROLES, Role, Visitor, visitor

Endpoint = Callable[[Request], Awaitable[Response]]
Need = Role | Literal["anyone", "owner here"]
"""The lowest role that may; also strangers, or only an owner in a browser on the machine of the server."""

OLD_ACTIONS = {"go-on": "continue"}
"""Names of an earlier version, to be removed in the next one."""
METRICS = "/metrics"
CONVERSATION = "/api/conversations/{id}"

NEEDS: dict[tuple[str, str], Need] = {
    # Where a ticket is exchanged for a cookie, and the styles and scripts of the page that says what to do without one.
    ("GET", "/enter/{ticket}"): "anyone",
    ("POST", "/enter/{ticket}"): "anyone",
    ("GET", "/static/{name}"): "anyone",
    # Reading
    ("GET", "/"): "viewer",
    ("GET", "/attention"): "viewer",
    ("GET", "/sidebar"): "viewer",
    ("GET", "/usage"): "viewer",
    ("GET", "/c/{id}"): "viewer",
    ("GET", "/c/{id}/older"): "viewer",
    ("GET", "/c/{id}/newer"): "viewer",
    ("GET", "/c/{id}/stream"): "viewer",
    ("GET", "/c/{id}/steps/{turn}"): "viewer",
    ("GET", "/c/{id}/prompt/{view}"): "viewer",
    ("GET", "/c/{id}/timeline"): "viewer",
    ("GET", "/c/{id}/changes"): "viewer",
    ("GET", "/c/{id}/changes/{number}/{file}"): "viewer",
    ("GET", "/c/{id}/results"): "viewer",
    ("GET", "/c/{id}/export/{format}"): "viewer",
    ("GET", "/c/{id}/messages/{sequence}"): "viewer",
    ("GET", METRICS): "viewer",
    ("GET", "/api/openapi.json"): "viewer",
    ("GET", "/api/me"): "viewer",
    ("GET", "/api/conversations"): "viewer",
    ("GET", "/api/search"): "viewer",
    ("GET", CONVERSATION): "viewer",
    ("GET", f"{CONVERSATION}/messages"): "viewer",
    ("GET", f"{CONVERSATION}/events"): "viewer",
    ("GET", f"{CONVERSATION}/watch"): "viewer",
    ("GET", f"{CONVERSATION}/queue"): "viewer",
    ("GET", f"{CONVERSATION}/decisions"): "viewer",
    ("GET", f"{CONVERSATION}/changes"): "viewer",
    ("GET", f"{CONVERSATION}/changes/{{number}}/files"): "viewer",
    ("GET", f"{CONVERSATION}/checks"): "viewer",
    ("GET", f"{CONVERSATION}/results"): "viewer",
    ("GET", f"{CONVERSATION}/turns/{{turn}}/patch"): "viewer",
    # Taking part
    ("POST", "/c"): "member",
    ("GET", "/teams"): "member",
    ("POST", "/c/{id}/fork"): "member",
    ("POST", "/c/{id}/rename"): "member",
    ("POST", "/c/{id}/archive"): "member",
    ("POST", "/c/{id}/unarchive"): "member",
    ("GET", "/c/{id}/complete"): "member",
    ("POST", "/c/{id}/addressees"): "member",
    ("POST", "/c/{id}/messages"): "member",
    ("GET", "/c/{id}/changes/{number}/{file}/comment"): "member",
    ("POST", "/c/{id}/changes/{number}/{file}/comment"): "member",
    ("POST", "/c/{id}/open"): "member",
    ("POST", "/c/{id}/close"): "member",
    ("POST", "/c/{id}/do/{action}"): "member",
    ("POST", "/api/conversations"): "member",
    ("POST", f"{CONVERSATION}/fork"): "member",
    ("POST", f"{CONVERSATION}/open"): "member",
    ("POST", f"{CONVERSATION}/close"): "member",
    ("POST", f"{CONVERSATION}/messages"): "member",
    ("POST", f"{CONVERSATION}/commands"): "member",
    **{("POST", f"{CONVERSATION}/{name}"): "member" for name in (*ACTIONS, *OLD_ACTIONS)},
    # Who may come in
    ("POST", "/invite"): "owner",
    ("GET", "/people"): "owner",
    ("POST", "/people/{key}/revoke"): "owner",
    ("POST", "/api/invitations"): "owner",
    ("POST", "/api/tokens"): "owner",
    ("GET", "/api/sessions"): "owner",
    ("POST", "/api/sessions/{key}/revoke"): "owner",
    # What runs on this machine
    ("GET", "/teams/{key}"): "owner here",
    ("POST", "/teams/{key}"): "owner here",
    ("POST", "/teams/{key}/check"): "owner here",
}

WITHOUT_KEY = tuple(path.partition("{")[0] for (_, path), need in NEEDS.items() if need == "anyone")
"""How the paths begin that need no key."""

REFUSALS: dict[Need, str] = {
    "viewer": "You are not signed in.",
    "member": "You can read here, but not change anything. Ask the owner for an invitation that lets you take part.",
    "owner": "Only the owner can do this.",
    "owner here": (
        "Only the owner can change a team file, since it names programs that run on their machine: in a browser there, "
        "with an address that `bullpen serve` printed."
    ),
}


def may(who: Visitor | None, need: Need) -> bool:
    """Return whether somebody may do what needs a role."""
    if need == "anyone":
        return True
    if who is None:
        return False
    if need == "owner here":
        return who.role == "owner" and who.is_here
    return ROLES.index(who.role) >= ROLES.index(need)


def allowed(need: Need, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that answers only those who may."""

    async def answer(request: Request) -> Response:
        if not may(visitor(), need):
            raise HTTPException(HTTPStatus.FORBIDDEN, REFUSALS[need])
        return await endpoint(request)

    return answer
