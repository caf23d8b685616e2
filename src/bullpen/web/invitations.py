"""Invitations: an address that lets one more browser in, as a link and as a QR code."""

import time
from typing import cast

import segno
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from bullpen.web.address import Place
from bullpen.web.credentials import Keys
from bullpen.web.responses import page

LIFETIME_SECONDS = 3600
QUIET_ZONE = 4
"""Modules of white around a QR code; scanners need them."""


async def invite(request: Request) -> Response:
    """Make an address for another browser."""
    place, keys = cast(Place, request.app.state.place), cast(Keys, request.app.state.keys)
    url = f"{place.url}/enter/{keys.new_ticket(LIFETIME_SECONDS)}"
    return page(
        "invite_dialog.html" if "hx-request" in request.headers else "invite.html",
        url=url,
        qr_code=qr_code(url),
        ends_at=int((time.time() + LIFETIME_SECONDS) * 1000),
        is_local=place.is_local,
    )


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
