"""Responses: pages and parts of pages, JSON, and errors in the requested form."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from bullpen.errors import (
    BullpenError,
    ConversationInUse,
    FilesError,
    FolderInUse,
    NoConflict,
    NothingRuns,
    NothingToDecide,
    NothingToForget,
    NothingToPick,
    NothingToSumUp,
    NothingToUndo,
    NotTrusted,
    ReadOnlyHere,
    StoreConflict,
    StoreError,
)
from bullpen.web.templates import rendered

API = "/api/"
MOST_FIELDS = 1_000


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong and what to do about it, in a sentence."""

    error: str


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a page or a part of one."""
    return HTMLResponse(rendered(template, **values), status_code=status)


def json(value: object, status: int = 200) -> Response:
    """Return JSON."""
    return Response(msgspec.json.encode(value), status_code=status, media_type="application/json")


def done(request: Request, where: str, *, told: str = "") -> Response:
    """Return that something was done: a page with htmx sees it in its stream, any other is redirected.

    `told` is shown at the top of the page, since it is not in the stream.
    """
    if "hx-request" in request.headers:
        return notice(told.split("\n")) if told else Response(status_code=HTTPStatus.NO_CONTENT)
    return RedirectResponse(where, status_code=HTTPStatus.SEE_OTHER)


def notice(lines: Sequence[str]) -> Response:
    """Return lines to show at the top of the page."""
    answer = page("notice.html", lines=lines)
    answer.headers.update({"HX-Retarget": "#problem", "HX-Reswap": "innerHTML"})
    return answer


def shown_dialog(command: str, lines: Sequence[str]) -> Response:
    """Return lines that a command shows, in a dialog above the page."""
    answer = page("shown_dialog.html", command=command, lines=lines)
    answer.headers.update({"HX-Retarget": "#dialogs", "HX-Reswap": "innerHTML"})
    return answer


def sent_to(request: Request, where: str) -> Response:
    """Redirect to another page, with htmx or without."""
    if "hx-request" in request.headers:
        return Response(status_code=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": where})
    return RedirectResponse(where, status_code=HTTPStatus.SEE_OTHER)


async def form_of(request: Request) -> dict[str, list[str]]:
    """Return the fields of a form, which has no files."""
    body = (await request.body()).decode("utf-8", errors="replace")
    try:
        return parse_qs(body, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise HTTPException(HTTPStatus.BAD_REQUEST, f"The form cannot be read: {error}.") from error


def problem(request: Request, error: Exception) -> Response:
    """Return an error in the form that the client can show."""
    status, text = _status(error), _sentence(error)
    if request.url.path.startswith(API):
        return json(Problem(error=text), status)
    if "hx-request" in request.headers:
        return page("problem.html", status, text=text)
    return page("problem_page.html", status, text=text)


def _status(error: Exception) -> int:
    match error:
        case HTTPException():
            return error.status_code
        case StoreError():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case StoreConflict() | ConversationInUse() | ReadOnlyHere() | NotTrusted():
            return HTTPStatus.CONFLICT
        case (
            NoConflict()
            | NothingToPick()
            | NothingToSumUp()
            | NothingRuns()
            | NothingToDecide()
            | NothingToForget()
            | NothingToUndo()
            | FolderInUse()
        ):
            return HTTPStatus.CONFLICT
        case FilesError():
            return HTTPStatus.CONFLICT
        case LookupError():
            return HTTPStatus.NOT_FOUND
        case BullpenError() | msgspec.ValidationError() | msgspec.DecodeError():
            return HTTPStatus.BAD_REQUEST
        case _:
            return HTTPStatus.INTERNAL_SERVER_ERROR


def _sentence(error: Exception) -> str:
    match error:
        case HTTPException(status_code=HTTPStatus.NOT_FOUND):
            return "There is nothing at this address."
        case HTTPException():
            return str(error.detail)
        case msgspec.ValidationError() | msgspec.DecodeError():
            return f"The request cannot be read: {error}."
        case BullpenError():
            return str(error)
        case _:
            return "This is a bug in bullpen, sorry. The terminal that runs it shows more."
