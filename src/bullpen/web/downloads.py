"""A file that is sent while it is made, so that a long one needs as little memory as a short one."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from starlette.responses import Response, StreamingResponse

CHUNK_CHARACTERS = 64 * 1024


async def download(pieces: Iterator[str], name: str, media_type: str) -> Response:
    """Return a file made of pieces, each made when the browser has taken the one before it.

    What is wrong with the first pieces is raised here, as long as an error can still be the answer.
    """
    chunks = _chunks(pieces)
    # Not in the store's thread: that would keep the agents waiting.
    first = await asyncio.to_thread(next, chunks, "")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_following(first, chunks), media_type=media_type, headers=headers)


async def _following(first: str, chunks: Iterator[str]) -> AsyncIterator[str]:
    chunk = first
    while chunk:
        yield chunk
        chunk = await asyncio.to_thread(next, chunks, "")


def _chunks(pieces: Iterator[str]) -> Iterator[str]:
    """Join short pieces: each chunk costs two changes of threads."""
    gathered, length = list[str](), 0
    for piece in pieces:
        gathered.append(piece)
        length += len(piece)
        if length >= CHUNK_CHARACTERS:
            yield "".join(gathered)
            gathered, length = [], 0
    if gathered:
        yield "".join(gathered)
