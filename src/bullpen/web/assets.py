"""Static files: read once, compressed once, and cached by browsers until they change."""

import gzip
import hashlib
from functools import cache
from http import HTTPStatus
from pathlib import Path

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(Struct, frozen=True, kw_only=True):
    """One file, ready to send."""

    content: bytes
    compressed: bytes
    media_type: str
    version: str


@cache
def assets() -> dict[str, Asset]:
    """Return every file by its name. No other path can be requested."""
    found = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.suffix in TYPES}
    return {name: _asset(name, content) for name, content in found.items()}


def address(name: str) -> str:
    """Return the address of a file; it changes when the file does."""
    return f"/static/{name}?v={assets()[name].version}"


async def asset(request: Request) -> Response:
    """Return a file."""
    found = assets().get(request.path_params["name"])
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND)
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.compressed, media_type=found.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.content, media_type=found.media_type, headers=headers)


def _asset(name: str, content: bytes) -> Asset:
    return Asset(
        content=content,
        compressed=gzip.compress(content, mtime=0),
        media_type=TYPES[Path(name).suffix],
        version=hashlib.sha256(content).hexdigest()[:12],
    )
