"""Lines: what an agent says, while it says it, from its worker to the node that owns the conversation.

One connection for each turn, opened by the worker; both sides speak in frames: a length, then a value. A line that
breaks is continued where it broke. Where no connection can be made, lines go through the database. A line that is
lost is never lost work: all of them come again with the outcome.
"""

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.msgpack import Decoder

from bullpen.cluster.turn_log import LENGTH_BYTES, MOST_BYTES, Line, framed, read_line, unpacked

logger = logging.getLogger(__name__)

MOST_FRAME_BYTES = 64 * 1024 * 1024
MOST_HELLO_BYTES = 4096
HELLO_SECONDS = 10.0
LINES_AT_ONCE = 200

Take = Callable[[Line], None]
T = TypeVar("T")


class Hello(Struct, frozen=True, tag="hello"):
    """A worker says which turn it brings lines of."""

    conversation: str
    turn: str
    token: str


class Numbered(Struct, frozen=True, tag="line"):
    """A line with its number."""

    number: int
    line: bytes


class Continue(Struct, frozen=True, tag="continue"):
    """The owner says after which line to continue."""

    after: int


ToOwner = Hello | Numbered
ToWorker = Continue

_to_owner = Decoder[ToOwner](ToOwner)
_to_worker = Decoder[ToWorker](ToWorker)


class Hearing:
    """What was heard of one turn so far: each line once, in order."""

    def __init__(self, token: str, take: Take, *, is_adopted: bool = False) -> None:
        self.token = token
        self.heard = 0
        self.is_adopted = is_adopted
        """Whether it began under another owner, so that lines may have been left before anybody here listened."""
        self.is_over = False
        """Whether the turn has ended: what is heard now was said before that."""
        self._take = take
        self._room = MOST_BYTES

    def hear(self, number: int, encoded: bytes) -> None:
        """Take a line, if it is the next one, and not more of them than a worker keeps."""
        if number == self.heard + 1:
            self.heard = number
            self._room -= len(encoded)
            if self._room >= 0:
                self._take(read_line(encoded))

    async def hear_rest(self, log: list[bytes]) -> None:
        """Take all lines that were not heard, as far as they can be read: how the turn ended counts for more."""
        self.is_over = True
        try:
            for number, line in unpacked(log):
                if number > self.heard:
                    self.heard = number
                    self._take(line)
                if number % LINES_AT_ONCE == 0:
                    # Of many lines, which may take seconds: this node must say that it lives.
                    await asyncio.sleep(0)
        except msgspec.MsgspecError as error:
            logger.warning("lines not read after=%d error=%s", self.heard, error)


class Listeners:
    """The turns of this node whose lines are wanted."""

    def __init__(self) -> None:
        self._hearings: dict[tuple[str, str], Hearing] = {}

    @contextmanager
    def hearing(self, key: tuple[str, str], hearing: Hearing) -> Iterator[None]:
        """Hear the lines of a turn."""
        self._hearings[key] = hearing
        try:
            yield
        finally:
            del self._hearings[key]

    @asynccontextmanager
    async def serving(self, host: str, port: int = 0) -> AsyncIterator[int]:
        """Take connections of workers, and yield the port."""
        connections: set[asyncio.StreamWriter] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.add(writer)
            try:
                await self._serve(reader, writer)
            except (OSError, EOFError, msgspec.MsgspecError) as error:
                logger.info("line ended error=%r", error)
            finally:
                connections.discard(writer)
                writer.close()

        server = await asyncio.start_server(connected, host, port)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            # Those who are served read the end of their connection then.
            for writer in connections:
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HELLO_SECONDS):
            hello = await read_frame(reader, _to_owner, most=MOST_HELLO_BYTES)
        hearing = self._hearings.get((hello.conversation, hello.turn)) if isinstance(hello, Hello) else None
        if hearing is None or not isinstance(hello, Hello) or not hmac.compare_digest(hearing.token, hello.token):
            return
        write_frame(writer, Continue(hearing.heard))
        await writer.drain()
        while True:
            numbered = await read_frame(reader, _to_owner)
            if self._hearings.get((hello.conversation, hello.turn)) is not hearing:
                return
            if isinstance(numbered, Numbered):
                hearing.hear(numbered.number, numbered.line)


async def read_frame(reader: asyncio.StreamReader, decoder: Decoder[T], *, most: int = MOST_FRAME_BYTES) -> T:
    """Return the next value; EOFError or msgspec.MsgspecError is raised if there is none, or anything else."""
    length = int.from_bytes(await reader.readexactly(LENGTH_BYTES), "big")
    if length > most:
        raise msgspec.DecodeError(f"a frame of {length:,} bytes, and the limit is {most:,}")
    return decoder.decode(await reader.readexactly(length))


def write_frame(writer: asyncio.StreamWriter, value: ToOwner | ToWorker) -> None:
    """Write a value."""
    writer.write(framed(msgspec.msgpack.encode(value)))


class OwnerLine:
    """A connection of a worker to the owner of a turn."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, has: int) -> None:
        self.has = has
        """The number of the last line that the owner has."""
        self._reader = reader
        self._writer = writer

    async def tell(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Send lines."""
        for number, line in lines:
            write_frame(self._writer, Numbered(number, line))
            await self._writer.drain()
            self.has = number

    async def closed(self) -> None:
        """Wait until the owner hangs up, or is gone."""
        with suppress(OSError):
            while await self._reader.read(MOST_HELLO_BYTES):
                pass


@asynccontextmanager
async def line_to(address: str, hello: Hello) -> AsyncIterator[OwnerLine]:
    """Connect to the owner of a turn. OSError is raised if that is impossible, EOFError if it does not want to hear."""
    host, _, port = address.rpartition(":")
    async with asyncio.timeout(HELLO_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
    try:
        write_frame(writer, hello)
        async with asyncio.timeout(HELLO_SECONDS):
            answer = await read_frame(reader, _to_worker)
        yield OwnerLine(reader, writer, answer.after)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
