"""A server in a process of its own, with as few file descriptors as wanted."""

import asyncio
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct
from tests import forked

from bullpen.cli.logs import begin_logging
from bullpen.team.file import load_team
from bullpen.web.address import listening
from bullpen.web.connections import SECONDS, Awaited
from bullpen.web.server import Tls, serving

ROOT = Path(__file__).parents[2]
WAIT_SECONDS = 120.0
"""Nothing here takes so long."""


class Options(Struct, frozen=True, kw_only=True):
    """How to serve."""

    folder: str
    team: str = ""
    files: int = 0
    """The most that it may open, if not as many as here."""
    seconds: dict[str, float] = {}
    """What replaces the time limits of a connection."""
    certificate: str = ""
    key: str = ""
    fault: str = ""
    """What to break in it, as Python; the product does not know it."""


class Started(Struct, frozen=True, kw_only=True):
    """What it says first."""

    host: str
    token: str


class ServerProcess:
    """One that runs."""

    def __init__(self, process: "subprocess.Popen[bytes]", started: Started, log: Path) -> None:
        self.pid = process.pid
        self.host = started.host
        self.port = int(started.host.rpartition(":")[2])
        self.token = started.token
        self._log = log

    @property
    def headers(self) -> dict[str, str]:
        """The headers that give a program access."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def said(self) -> str:
        """What it has logged."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """Return a connection from an address of this machine."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_SECONDS, source_address=(source, 0))

    def guest(self) -> str:
        """Return the token of somebody who may only read."""
        made = httpx.post(f"http://{self.host}/api/tokens", headers=self.headers, json={"role": "viewer"})
        return str(made.json()["token"])

    def request(self, path: str, *, key: bool = True, token: str = "", more: str = "") -> bytes:
        """Return a request for a page, of the owner if not of somebody else."""
        given = f"Authorization: Bearer {token or self.token}\r\n" if key else ""
        return f"GET {path} HTTP/1.1\r\nHost: {self.host}\r\n{given}{more}\r\n".encode()

    def stream(self, source: str = "127.0.0.1", path: str = "/attention", token: str = "") -> socket.socket:
        """Return a stream of events that has begun."""
        connection = self.connect(source)
        connection.sendall(self.request(path, token=token))
        begun = b""
        while b"retry:" not in begun:
            if not (piece := connection.recv(65536)):
                raise ConnectionError(f"the stream ended: {begun!r}")
            begun += piece
        return connection

    def status(self, path: str = "/api/conversations", *, key: bool = True, source: str = "127.0.0.1") -> int:
        """Return the status of an answer on a connection of its own."""
        with self.connect(source) as connection:
            connection.sendall(self.request(path, key=key, more="Connection: close\r\n"))
            return int(all_of(connection).split(maxsplit=2)[1])


def all_of(connection: socket.socket) -> bytes:
    """Return all that comes until the other side closes or resets the connection."""
    received = bytearray()
    with suppress(ConnectionError):
        while piece := connection.recv(65536):
            received += piece
    return bytes(received)


def is_open(connection: socket.socket) -> bool:
    """Tell whether the other side has not closed a connection, whatever it may have sent."""
    connection.setblocking(False)
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    finally:
        connection.settimeout(WAIT_SECONDS)
    return False


@contextmanager
def server_process(
    folder: Path,
    *,
    team: Path | None = None,
    files: int = 0,
    seconds: Mapping[Awaited, float] | None = None,
    tls: Tls | None = None,
    fault: str = "",
) -> Iterator[ServerProcess]:
    """Serve a folder's conversations until the context is left."""
    options = Options(
        folder=str(folder),
        team="" if team is None else str(team),
        files=files,
        seconds={str(name): limit for name, limit in (seconds or {}).items()},
        certificate="" if tls is None else str(tls.certificate),
        key="" if tls is None else str(tls.key),
        fault=fault,
    )
    log = folder / "server.log"
    places = {"BULLPEN_HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")}
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **places}
    command = [sys.executable, "-m", "tests.web.server_process", msgspec.json.encode(options).decode()]
    with (
        log.open("wb") as errors,
        forked.start(command, env=env, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            if not first:
                raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')}")
            yield ServerProcess(process, msgspec.json.decode(first, type=Started), log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(WAIT_SECONDS)
            finally:
                process.kill()


async def _serve(options: Options) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    tls = Tls(certificate=Path(options.certificate), key=Path(options.key)) if options.certificate else None
    team = load_team(Path(options.team)) if options.team else None
    with listening("127.0.0.1", 0, tls=tls is not None) as (listener, place):
        async with serving(listener, place, team=team, db=Path(options.folder) / "conversations.db", tls=tls) as served:
            print(json.dumps({"host": place.hosts[0], "token": served.keys.token}), flush=True)
            await stop.wait()


def main(options: Options) -> None:
    """Serve until SIGTERM."""
    if options.files:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (options.files, hard))
    SECONDS.update(options.seconds)  # type: ignore[arg-type]
    # As `bullpen serve` does.
    begin_logging(shown=True)
    exec(options.fault)
    asyncio.run(_serve(options))


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Options))
