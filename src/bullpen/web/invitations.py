"""Invitations: an address that lets one more browser in, for somebody with a role, as a link and as a QR code."""

from typing import cast

import segno
from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from bullpen.clock import now
from bullpen.errors import BullpenError
from bullpen.web.address import Place
from bullpen.web.conversations import Hub
from bullpen.web.credentials import Keys
from bullpen.web.identity import GUEST, Identity, identity_of
from bullpen.web.requests import hub_of
from bullpen.web.responses import form_of, page

LIFETIME_SECONDS = 3600
QUIET_ZONE = 4
"""Modules of white around a QR code; scanners need them."""


class Invitation(Struct, frozen=True, kw_only=True):
    """An address for one browser."""

    url: str
    ends_at: int
    """Milliseconds since 1970."""


async def invite(request: Request) -> Response:
    """Ask whom an address is for, or make it."""
    place, form = cast(Place, request.app.state.place), await form_of(request)
    template = "invite_dialog.html" if "hx-request" in request.headers else "invite.html"
    if "role" not in form:
        return page(template, people=hub_of(request).people(), invitation=None)
    role, person = form["role"][-1], form.get("person", [""])[-1]
    identity = GUEST if role == "guest" else identity_for(hub_of(request), role, person)
    made = new_invitation(request, identity)
    return page(
        template, identity=identity, invitation=made, qr_code=qr_code(made.url), is_local=place.is_local, people=()
    )


def identity_for(hub: Hub, role: str, person: str | None) -> Identity:
    """Return whom something is for, or raise BullpenError if nobody here has that name."""
    identity = identity_of(role, person)
    if identity.person is not None and identity.person not in hub.people():
        known = ", ".join(hub.people()) or "nobody"
        raise BullpenError(f"{identity.person!r} is not a person in a team here. The people are: {known}.")
    return identity


def new_invitation(request: Request, identity: Identity) -> Invitation:
    """Make an address for somebody."""
    place, keys = cast(Place, request.app.state.place), cast(Keys, request.app.state.keys)
    url = f"{place.url}/enter/{keys.new_invitation(identity, LIFETIME_SECONDS)}"
    return Invitation(url=url, ends_at=int((now() + LIFETIME_SECONDS) * 1000))


def qr_code(text: str) -> Markup:
    """Return a picture of a text: dark on white in every theme, or no camera could read it."""
    code = segno.make(text, error="m", micro=False)
    size, _ = code.symbol_size(border=QUIET_ZONE)
    dark = [(x, y) for y, row in enumerate(code.matrix_iter(border=QUIET_ZONE)) for x, bit in enumerate(row) if bit]
    path = "".join(f"M{x} {y}h1v1h-1z" for x, y in dark)
    return Markup(
        '<svg class="qr" viewBox="0 0 {0} {0}" role="img" aria-label="QR code of the address" '
        'shape-rendering="crispEdges"><rect width="{0}" height="{0}" fill="#fff"/><path fill="#000" d="{1}"/></svg>'
    ).format(size, path)
