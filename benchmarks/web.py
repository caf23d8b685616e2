"""Figure: a hundred browsers on one conversation, one of them stalled, and the first page."""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from subprocess import PIPE
from time import monotonic_ns, perf_counter

import httpx
from msgspec import Struct

from benchmarks.agents_stage import own_folder, python
from benchmarks.plot import Plot
from benchmarks.report import Figure, duration

GOAL_P99_SECONDS = 0.1
GOAL_MEMORY_MB = 50
GOAL_PAGE_SECONDS = 0.3
GOAL_PAGE_BYTES = 150_000
CROWDS = (1, 10, 30, 100)
BROWSERS = CROWDS[-1]
PIECES, QUICK_PIECES = 1_500, 300
FEWER = 3
"""The smaller crowds, which are only for the curve, get a third of the pieces."""
PAUSE_SECONDS = 0.02
"""An agent that writes fifty pieces a second writes faster than people read."""
IGNORED_PIECES = 20
FILLING = "x" * 4_000
"""Sent with the time in the run with a stalled browser, so that no socket can buffer all that it does not read."""

# Writes the time every few milliseconds. All processes of a machine have the same clock.
AGENT = """
import os, sys, time
sys.stdin.read()
for _ in range({pieces}):
    time.sleep({pause})
    os.write(1, b"<%d>{filling} " % time.monotonic_ns())
"""
# In its own process, as in real use: the browsers here need processor time, too.
SERVER = """
import asyncio, sys
from pathlib import Path
from bullpen.testing.site import site

async def main(folder):
    async with site(folder, folder / "team.toml") as served:
        print(served.url, served.keys.token, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(Path(sys.argv[1])))
"""
# As it is in HTML.
_TIME = re.compile(rb"&lt;(\d+)&gt;")


class Page(Struct, frozen=True, kw_only=True):
    """The first page of a server, with its styles and scripts."""

    seconds: float
    bytes: int


class Run(Struct, frozen=True, kw_only=True):
    """What the browsers received in one turn, and what it cost the server."""

    median: float
    p99: float
    longest: float
    grown_mb: float


def measure(*, quick: bool) -> Figure:
    """Let an agent write the time, and read it in every browser."""
    pieces = QUICK_PIECES if quick else PIECES
    crowds = {count: asyncio.run(_measured(pieces // FEWER, browsers=count))[0] for count in CROWDS[:-1]}
    calm, page = asyncio.run(_measured(pieces, browsers=BROWSERS))
    stalled, _ = asyncio.run(_measured(pieces, browsers=BROWSERS, stalled=1))
    crowds[BROWSERS] = calm
    return Figure(
        title="A hundred browsers on one conversation",
        goal=f"from the agent's byte to {BROWSERS} browsers in {duration(GOAL_P99_SECONDS)} at the 99th percentile, a "
        f"stalled one delays nobody and the server grows by less than {GOAL_MEMORY_MB} MB; the first page within "
        f"{duration(GOAL_PAGE_SECONDS)} and {GOAL_PAGE_BYTES // 1000} KB",
        met=max(calm.p99, stalled.p99) < GOAL_P99_SECONDS
        and max(calm.grown_mb, stalled.grown_mb) < GOAL_MEMORY_MB
        and page.seconds < GOAL_PAGE_SECONDS
        and page.bytes < GOAL_PAGE_BYTES,
        measured=f"{duration(max(calm.p99, stalled.p99))} at the 99th percentile, the server grew by "
        f"{max(calm.grown_mb, stalled.grown_mb):.1f} MB; the first page in {duration(page.seconds)} and "
        f"{page.bytes / 1000:.0f} KB",
        columns=("", "median", "99th percentile", "longest", "server grew by"),
        rows=[
            *(_row(f"{count} browser{'s' * (count != 1)}", run) for count, run in crowds.items()),
            _row(f"{BROWSERS} browsers, and one that reads nothing", stalled),
        ],
        meaning=f"An agent writes its clock every {duration(PAUSE_SECONDS)}, {pieces} times, and every browser reads "
        f"it from its stream of server-sent events; with the stalled one, {len(FILLING) // 1000} KB at a time. The "
        f"first page of a server that has just started took {duration(page.seconds)}, with styles and scripts "
        f"{page.bytes / 1000:.0f} KB on the network.",
        plots=(
            Plot(
                name="browsers",
                title="From an agent's byte to every browser",
                across="browsers on one conversation",
                up="wall-clock time, lower is better",
                unit="seconds",
                series={
                    "median": [(count, run.median) for count, run in crowds.items()],
                    "99th percentile": [(count, run.p99) for count, run in crowds.items()],
                },
            ),
        ),
    )


async def _measured(pieces: int, *, browsers: int, stalled: int = 0) -> tuple[Run, Page]:
    with own_folder() as folder:
        agent = AGENT.format(pieces=pieces, pause=PAUSE_SECONDS, filling=FILLING if stalled else "")
        command = json.dumps(python(agent))
        (folder / "team.toml").write_text(f'[[member]]\nname="kim"\n[[member]]\nname="max"\ncommand={command}\n')
        async with _server(folder) as (process, client):
            here = (await client.post("/api/conversations")).json()["id"]
            page = await _first_page(client, f"/c/{here}")
            return await _watched(process, client, here, browsers, stalled), page


@asynccontextmanager
async def _server(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, httpx.AsyncClient]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, str(folder)),
        stdin=PIPE,
        stdout=PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert process.stdout is not None
    url, token = (await process.stdout.readline()).decode().split()
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
        yield process, client
    # It exits at the end of its input.
    await process.communicate(b"")


async def _first_page(client: httpx.AsyncClient, path: str) -> Page:
    """Fetch a page and then, in parallel as a browser does, its resources."""
    start = perf_counter()
    page = await client.get(path)
    files = await asyncio.gather(
        *(client.get(name) for name in re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text))
    )
    return Page(seconds=perf_counter() - start, bytes=sum(answer.num_bytes_downloaded for answer in [page, *files]))


async def _watched(
    process: asyncio.subprocess.Process, client: httpx.AsyncClient, here: str, count: int, stalled: int
) -> Run:
    loop = asyncio.get_running_loop()
    address = client.base_url.host, client.base_url.port or 80
    request = (
        f"GET /c/{here}/stream?after=0 HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
        f"Authorization: {client.headers['Authorization']}\r\n\r\n"
    ).encode()
    browsers = [_Browser(request, loop.create_future()) for _ in range(count)]
    for browser in browsers:
        await loop.create_connection(lambda browser=browser: browser, *address)  # type: ignore[misc]
    asleep = [await _stalled(request, address) for _ in range(stalled)]
    await asyncio.sleep(0.5)
    before = _resident_mb(process.pid)
    await client.post(f"/api/conversations/{here}/messages", json={"text": "Go."})
    await asyncio.gather(*(browser.ended for browser in browsers))
    grown = _resident_mb(process.pid) - before
    for one in asleep:
        one.close()
    return _run([delay for browser in browsers for delay in browser.delays[IGNORED_PIECES:]], grown)


class _Browser(asyncio.Protocol):
    """Reads a stream, and records the age of each piece."""

    def __init__(self, request: bytes, ended: "asyncio.Future[None]") -> None:
        self.ended = ended
        self.delays: list[int] = []
        self._seen: set[bytes] = set()
        """Times; what may still change is sent again."""
        self._request = request
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        now = monotonic_ns()
        whole, _, self._rest = (self._rest + data).rpartition(b"\n\n")
        # An event counts when all of it has arrived.
        times = [time for time in _TIME.findall(whole) if time not in self._seen]
        self._seen.update(times)
        self.delays += [now - int(time) for time in times]
        if b"event: ended" in whole and not self.ended.done():
            self.ended.set_result(None)


async def _stalled(request: bytes, address: tuple[str, int]) -> socket.socket:
    """Open a stream and never read it."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, address)
    await asyncio.get_running_loop().sock_sendall(connection, request)
    return connection


def _run(delays: Sequence[int], grown_mb: float) -> Run:
    return Run(
        median=median(delays) / 1e9,
        p99=quantiles(delays, n=100, method="inclusive")[-1] / 1e9,
        longest=max(delays) / 1e9,
        grown_mb=grown_mb,
    )


def _resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _row(name: str, run: Run) -> tuple[str, ...]:
    return name, duration(run.median), duration(run.p99), duration(run.longest), f"{run.grown_mb:.1f} MB"
