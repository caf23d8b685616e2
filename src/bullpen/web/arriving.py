"""Arriving: what other nodes pass on to this one. It has an address of its own, where only nodes are answered."""

import hmac
from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from bullpen.web.conversations import Hub
from bullpen.web.forwarding import conversation_in
from bullpen.web.identity import set_visitor
from bullpen.web.passing import NOT_HERE, SECRET, VISITOR, unpacked

STRANGER = "Only nodes of this cluster are answered here.\n"


class Arrivals:
    """An ASGI application around another one, which does what its own guard would do for people.

    The node that passes a request on has checked where it comes from, how large it is and who asks.
    """

    def __init__(self, app: ASGIApp, hub: Hub, secret: str) -> None:
        self._app = app
        self._hub = hub
        self._secret = secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer another node, if the conversation is open here."""
        if scope["type"] == "http":
            answer = self._refusal(scope) or self._app
            await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not hmac.compare_digest(headers.get(SECRET.decode(), "").encode(), self._secret):
            return PlainTextResponse(STRANGER, HTTPStatus.FORBIDDEN)
        try:
            scope.setdefault("state", {})["is_of_node"] = True
            set_visitor(unpacked(headers.get(VISITOR.decode(), "").encode()))
        except ValueError:
            return PlainTextResponse(STRANGER, HTTPStatus.BAD_REQUEST)
        conversation_id = conversation_in(scope["path"])
        if conversation_id is not None and self._hub.get(conversation_id) is None:
            # Never passed on a second time: the node that asks looks again.
            marked = {NOT_HERE.decode(): "1"}
            return PlainTextResponse("", HTTPStatus.MISDIRECTED_REQUEST, headers=marked)
        return None
