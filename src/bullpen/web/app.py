"""The application: one table of routes, with the guard around all of them."""

from collections.abc import Callable
from http import HTTPStatus

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from bullpen.errors import BullpenError
from bullpen.web import (
    changes,
    entering,
    forking,
    inspector,
    invitations,
    metrics,
    openapi,
    pages,
    people,
    renaming,
    results,
    sidebar,
    teams,
    timeline,
    usage,
)
from bullpen.web.access import METRICS, NEEDS, Endpoint, allowed
from bullpen.web.address import Place
from bullpen.web.api import CALLS
from bullpen.web.arriving import Arrivals
from bullpen.web.assets import asset
from bullpen.web.conversations import Hub
from bullpen.web.credentials import Keys
from bullpen.web.forwarding import Forwarding
from bullpen.web.guard import Guard
from bullpen.web.nodes import Nodes
from bullpen.web.passing import Kept
from bullpen.web.requests import for_its_people
from bullpen.web.responses import problem

SMALLEST_COMPRESSED = 1_000

ROUTES: tuple[tuple[str, str, Endpoint], ...] = (
    ("GET", "/enter/{ticket}", entering.entrance),
    ("POST", "/enter/{ticket}", entering.enter),
    ("POST", "/invite", invitations.invite),
    ("GET", "/people", people.people),
    ("POST", "/people/{key}/revoke", people.revoke),
    ("GET", "/static/{name}", asset),
    ("GET", "/attention", pages.attention),
    ("GET", "/", pages.conversations),
    ("POST", "/c", pages.begin),
    ("GET", "/teams", teams.teams),
    ("GET", "/teams/{key}", teams.edit),
    ("POST", "/teams/{key}", teams.save),
    ("POST", "/teams/{key}/check", teams.check),
    ("GET", "/sidebar", sidebar.sidebar),
    ("GET", "/usage", usage.usage),
    ("GET", "/c/{id}", pages.conversation),
    ("POST", "/c/{id}/fork", forking.fork),
    ("POST", "/c/{id}/rename", renaming.rename),
    ("POST", "/c/{id}/archive", renaming.archive),
    ("POST", "/c/{id}/unarchive", renaming.unarchive),
    ("GET", "/c/{id}/older", pages.older),
    ("GET", "/c/{id}/newer", pages.newer),
    ("GET", "/c/{id}/stream", pages.stream),
    ("GET", "/c/{id}/steps/{turn}", inspector.steps),
    ("GET", "/c/{id}/prompt/{view}", inspector.prompt),
    ("GET", "/c/{id}/timeline", timeline.timeline),
    ("GET", "/c/{id}/changes", changes.changes),
    ("GET", "/c/{id}/changes/{number}/{file}", changes.lines),
    ("GET", "/c/{id}/changes/{number}/{file}/comment", changes.commented),
    ("POST", "/c/{id}/changes/{number}/{file}/comment", changes.comment),
    ("GET", "/c/{id}/results", results.results),
    ("GET", "/c/{id}/export/{format}", pages.export),
    ("GET", "/c/{id}/complete", pages.complete),
    ("POST", "/c/{id}/addressees", pages.asks),
    ("POST", "/c/{id}/messages", pages.say),
    ("GET", "/c/{id}/messages/{sequence}", pages.text),
    ("POST", "/c/{id}/open", pages.resume),
    ("POST", "/c/{id}/close", pages.release),
    ("POST", "/c/{id}/do/{action}", pages.act),
    ("GET", METRICS, metrics.metrics),
    ("GET", openapi.PATH, openapi.openapi),
    *((call.method, call.path, call.endpoint) for call in CALLS),
)


def create_app(
    hub: Hub,
    keys: Keys,
    place: Place,
    on_entry: Callable[[str], None] = lambda _: None,
    nodes: Nodes | None = None,
    kept: Kept | None = None,
) -> Guard:
    """Return the application for one server. `on_entry` is called with every ticket that was used.

    On a node, `kept` has connections to the others.
    """
    pages = _pages(hub, keys, place, on_entry)
    app = pages if nodes is None else Forwarding(pages, hub, nodes, kept or Kept())
    return Guard(app, keys=keys, place=place)


def app_for_nodes(hub: Hub, keys: Keys, place: Place, secret: str) -> Arrivals:
    """Return the application for other nodes of the cluster, which show a secret."""
    return Arrivals(_pages(hub, keys, place, lambda _: None), hub, secret)


def _pages(hub: Hub, keys: Keys, place: Place, on_entry: Callable[[str], None]) -> Starlette:
    app = Starlette(
        # A route that nobody has decided about cannot be served.
        routes=[
            Route(path, allowed(NEEDS[method, path], _among_its_people(method, path, endpoint)), methods=[method])
            for method, path, endpoint in ROUTES
        ],
        # Compression can leak secrets through the length; no response has a secret next to text from others.
        middleware=[Middleware(GZipMiddleware, minimum_size=SMALLEST_COMPRESSED, compresslevel=6)],
        exception_handlers={
            BullpenError: _answer_problem,
            HTTPException: _answer_problem,
            msgspec.ValidationError: _answer_problem,
            msgspec.DecodeError: _answer_problem,
            # The server logs it.
            Exception: _answer_problem,
        },
    )
    # Each page has exactly one address.
    app.router.redirect_slashes = False
    app.state.hub, app.state.keys, app.state.place, app.state.on_entry = hub, keys, place, on_entry
    return app


def _among_its_people(method: str, path: str, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that lets nobody take part in a conversation of another team."""
    return for_its_people(endpoint) if NEEDS[method, path] == "member" and "{id}" in path else endpoint


async def _answer_problem(request: Request, error: Exception) -> Response:
    answer = problem(request, error)
    if answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        answer.headers["Allow"] = ", ".join(sorted(_methods_at(request)))
    return answer


def _methods_at(request: Request) -> set[str]:
    """Return the methods of an address; each of its routes has only one."""
    routes = [route for route in request.app.routes if isinstance(route, Route)]
    matching = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in matching for method in route.methods or ()}
