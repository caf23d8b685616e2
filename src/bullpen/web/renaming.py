"""Renaming a conversation, archiving it, and putting it back."""

from starlette.requests import Request
from starlette.responses import Response

from bullpen.clock import milliseconds
from bullpen.view.listing import rename as stored_rename
from bullpen.view.listing import typed_title
from bullpen.web.requests import decider_of, hub_of, id_in, sender_in, view_in
from bullpen.web.responses import form_of, sent_to


async def rename(request: Request) -> Response:
    """Give a conversation another title; an empty one removes it."""
    title = typed_title((await form_of(request)).get("title", [""])[-1])
    opened = hub_of(request).get(id_in(request))
    if opened is None:
        by = decider_of(await view_in(request))
        await hub_of(request).read(stored_rename, id_in(request), title, by=by, at=milliseconds())
    else:
        await opened.conversation.rename(title, by=sender_in(opened.conversation, None))
    return sent_to(request, f"/c/{id_in(request)}")


async def archive(request: Request) -> Response:
    """Take a conversation out of the lists; it is closed first."""
    await hub_of(request).archive(id_in(request))
    return sent_to(request, "/")


async def unarchive(request: Request) -> Response:
    """Put a conversation back into the lists."""
    await hub_of(request).unarchive(id_in(request))
    return sent_to(request, f"/c/{id_in(request)}")
