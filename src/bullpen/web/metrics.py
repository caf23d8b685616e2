"""The page for Prometheus: numbers of all conversations that are open here, if they are asked for."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

OFF = "Metrics are off. To turn them on, start the server with BULLPEN_TELEMETRY=1 in its environment."


async def metrics(request: Request) -> Response:
    """Return all metrics, in the form that is accepted."""
    telemetry = request.app.state.hub.telemetry
    if telemetry is None:
        return PlainTextResponse(f"{OFF}\n", HTTPStatus.NOT_FOUND)
    body, kind = telemetry.metrics.page(request.headers.get("accept", ""))
    return Response(body, headers={"Content-Type": kind})
