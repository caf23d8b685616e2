"""The sidebar of a conversation's page: all other conversations, those that need a person first."""

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.view.listing import ConversationSummary, all_conversations, by_urgency
from bullpen.web.conversations import Hub
from bullpen.web.requests import hub_of
from bullpen.web.responses import page

MOST_SHOWN = 60


class Sidebar(Struct, frozen=True, kw_only=True):
    """The conversations in the sidebar."""

    needing_elsewhere: int
    """How many others need a person."""
    groups: tuple[tuple[str, tuple[ConversationSummary, ...]], ...]
    """Each with its heading."""
    more: int
    """How many are not shown."""
    can_begin: bool


async def sidebar_of(hub: Hub, here: str) -> Sidebar:
    """Return the sidebar as it is now, in the page of one conversation."""
    # In others without a message, nothing was said yet that somebody could look for.
    known = [one for one in await hub.read(all_conversations) if one.messages or one.id == here]
    listed = by_urgency(known)
    needing = sum(one.needs_you for one in listed)
    shown = tuple(listed[:MOST_SHOWN])
    groups = (("Needs you", shown[:needing]), ("Recent", shown[needing:]))
    return Sidebar(
        needing_elsewhere=sum(one.needs_you for one in listed if one.id != here),
        groups=tuple(group for group in groups if group[1]),
        more=len(listed) - len(shown),
        can_begin=hub.team is not None,
    )


async def sidebar(request: Request) -> Response:
    """Show the list again, for a page that is open."""
    here = request.query_params.get("at", "")
    return page("sidebar_list.html", sidebar=await sidebar_of(hub_of(request), here), id=here)
