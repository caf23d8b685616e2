"""Forking a conversation at one of its messages, from a form and for programs."""

from http import HTTPStatus

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.errors import BullpenError
from bullpen.view.state import stored_view
from bullpen.web.requests import hub_of, id_in, number_of
from bullpen.web.responses import form_of, json, sent_to


class ForkAt(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to fork a conversation."""

    at: int | None = None
    """The number of the last message that the new conversation has; without one, it has all of them."""
    with_files: bool = False
    """Whether its agents work in a git worktree with the files of that moment."""


async def fork(request: Request) -> Response:
    """Fork a conversation at the message that a form names, and show the new one."""
    form = await form_of(request)
    given, with_files = form.get("at", [""])[-1], form.get("files", [""])[-1] == "yes"
    at = number_of(given)
    if given and at is None:
        raise BullpenError(f"{given!r} is not the number of a message.")
    return sent_to(request, f"/c/{await hub_of(request).fork(id_in(request), at, with_files=with_files)}")


async def fork_for_program(request: Request) -> Response:
    """Fork a conversation, and return the state of the new one."""
    hub = hub_of(request)
    given = msgspec.json.decode(await request.body() or b"{}", type=ForkAt)
    fork_id = await hub.fork(id_in(request), given.at, with_files=given.with_files)
    opened = hub.get(fork_id)
    return json(opened.view() if opened else await hub.read(stored_view, fork_id), HTTPStatus.CREATED)
