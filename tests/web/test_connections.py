"""Those who only take up connections stop nobody else: real sockets at a real server with few file descriptors."""

import asyncio
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.web.server_process import WAIT_SECONDS, ServerProcess, all_of, is_open, server_process

from bullpen.testing.stage import write_team
from bullpen.web.connections import (
    FEWEST_CONNECTIONS,
    MOST_CONNECTIONS,
    Awaited,
    Connection,
    Connections,
    most_connections,
)
from bullpen.web.server import Server, Tls

FILES = 256
ROOM = 192
"""Of so many files, for connections; and half of these for one address."""
TABS = 60
SHORT: dict[Awaited, float] = {"request": 0.3, "body": 0.3, "reading": 0.3}
FOR_EVER = "import bullpen.web.server; bullpen.web.server.IDLE_SECONDS = 3600"
UNLIMITED: dict[Awaited, float] = {"request": 3600, "body": 3600, "reading": 3600}


@pytest.fixture
def kept() -> Iterator[ExitStack]:
    """Connections that stay open until the end of the test."""
    with ExitStack() as stack:
        yield stack


def until(is_so: Callable[[], bool]) -> bool:
    """Wait for what takes as long as it takes, but not for ever."""
    give_up = time.monotonic() + WAIT_SECONDS
    while not is_so():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.02)
    return True


def has_no_tracebacks(server: ServerProcess) -> bool:
    return "Traceback" not in server.said and len(server.said.splitlines()) < 5


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_idle_connections_stop_nobody(sent: bytes, tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES, seconds=UNLIMITED) as server:
        tabs = [kept.enter_context(server.stream()) for _ in range(TABS)]
        for _ in range(1100):
            idle = kept.enter_context(server.connect())
            idle.sendall(sent)
        statuses = [server.status() for _ in range(5)]
        said = server.said

        assert statuses == [200] * 5
        assert all(is_open(tab) for tab in tabs)
        assert said == ""


def test_idle_connections_after_an_answer_stop_nobody(tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES, fault=FOR_EVER) as server:
        for _ in range(ROOM):
            idle = kept.enter_context(server.connect())
            idle.sendall(server.request("/", key=False))
            assert idle.recv(1000).startswith(b"HTTP/1.1 401")

        assert server.status() == 200
        assert server.said == ""


def test_idle_connections_from_many_addresses_stop_nobody(tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES, seconds=UNLIMITED) as server:
        tab = kept.enter_context(server.stream())
        for number in range(ROOM * 2):
            kept.enter_context(server.connect(f"127.0.0.{2 + number % 50}"))

        assert server.status() == 200
        assert is_open(tab)
        assert server.said == ""


def test_a_hundred_tabs_of_one_browser_stay_open(tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=512, seconds=SHORT) as server:
        tabs = [kept.enter_context(server.stream()) for _ in range(100)]
        # Longer than any limit: a connection that waits from now on has been closed.
        assert all_of(kept.enter_context(server.connect())) == b""

        assert all(is_open(tab) for tab in tabs)
        assert server.status() == 200


def test_whoever_has_the_most_streams_loses_the_oldest(tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES, seconds=UNLIMITED) as server:
        few, many = server.guest(), server.guest()
        tabs = [kept.enter_context(server.stream(token=few)) for _ in range(ROOM // 8)]
        more = [kept.enter_context(server.stream(token=many)) for _ in range(ROOM // 2 - len(tabs))]

        assert server.status() == 200
        assert until(lambda: [is_open(tab) for tab in more[:2]] == [False, True])
        assert all(is_open(tab) for tab in tabs)
        assert server.said == ""


def test_one_address_cannot_take_every_place(tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES) as server:
        for _ in range(ROOM // 2):
            kept.enter_context(server.stream("127.0.0.2", token=server.guest()))
        with server.connect("127.0.0.2") as one_more:
            refused = all_of(one_more)

        assert refused == b""
        assert server.status() == 200
        assert "A connection from 127.0.0.2 was refused" in server.said
        assert has_no_tracebacks(server)


@pytest.mark.parametrize("addresses", [1, 8])
def test_a_guest_with_many_streams_stops_nobody(addresses: int, tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES, seconds=UNLIMITED) as server:
        guest, other = server.guest(), server.guest()
        # Half of what there is for one address, so that the owner has more than the guest at first.
        tabs = [kept.enter_context(server.stream(token=token)) for token in (*[""] * (ROOM // 4), other)]
        places = [f"127.0.0.{1 + number % addresses}" for number in range(ROOM * 2)]
        greedy = [kept.enter_context(server.stream(place, token=guest)) for place in places]
        statuses = [server.status() for _ in range(5)]
        tabs.append(kept.enter_context(server.stream()))

        assert statuses == [200] * 5
        assert all(is_open(tab) for tab in tabs)
        # Its own oldest make room for its newest, and for others.
        assert not any(is_open(stream) for stream in greedy[:ROOM])
        assert sum(is_open(stream) for stream in greedy) > ROOM // 5
        assert server.said == ""


FAILS_TWICE = """
import asyncio, errno
Loop = asyncio.SelectorEventLoop
async def failing(self, listener, accept=Loop.sock_accept, left=[errno.{name}] * 2):
    accepted = await accept(self, listener)
    if len(self._selector.get_map()) > 20 and left:
        accepted[0].close()
        raise OSError(left.pop(), "no")
    return accepted
Loop.sock_accept = failing
"""


@pytest.mark.parametrize(("name", "closed"), [("ECONNABORTED", 0), ("EMFILE", 32), ("ENOBUFS", 32)])
def test_only_for_lack_of_room_those_that_wait_are_closed(
    name: str, closed: int, tmp_path: Path, kept: ExitStack
) -> None:
    with server_process(tmp_path, seconds=UNLIMITED, fault=FAILS_TWICE.format(name=name)) as server:
        waiting = [kept.enter_context(server.connect()) for _ in range(60)]

        assert server.status() == 200
        # Two of them are those that could not be accepted.
        assert sum(not is_open(one) for one in waiting) == closed + 2
        assert len(server.said.splitlines()) == 1


def test_there_is_a_limit_for_all_addresses_together(tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES) as server:
        guests = [server.guest() for _ in range(ROOM)]
        streams = [
            kept.enter_context(server.stream(f"127.0.0.{2 + number % 8}", token=guest))
            for number, guest in enumerate(guests)
        ]
        with server.connect() as one_more:
            refused = all_of(one_more)
        streams[0].close()

        assert refused == b""
        assert until(lambda: answers(server))


def answers(server: ServerProcess) -> bool:
    try:
        return server.status() == 200
    except (OSError, IndexError):
        return False


def dripped(connection: socket.socket, begin: bytes) -> bool:
    """Send a little now and then, and return whether the other side has ended that."""
    connection.sendall(begin)

    def is_over() -> bool:
        try:
            connection.sendall(b"x")
        except ConnectionError:
            return True
        return not is_open(connection)

    return until(is_over)


def test_a_request_that_never_ends_is_closed(tmp_path: Path) -> None:
    with server_process(tmp_path, seconds=SHORT) as server:
        head = server.request("/")[:-2]
        body = head.replace(b"GET", b"POST") + b"Content-Length: 100000\r\n\r\n"
        wrong = server.request("/", key=False)[:-2].replace(b"GET", b"POST") + b"Content-Length: 100000\r\n\r\n"
        begun = server.request("/api/conversations")
        for begin in (b"", head + b"X-Slow: ", body, wrong, begun + head + b"X-Slow: "):
            with server.connect() as connection:
                assert dripped(connection, begin), begin

        assert has_no_tracebacks(server)


def test_a_message_that_never_ends_is_closed(tmp_path: Path) -> None:
    team = write_team(tmp_path, {"max": [{"say": "Hi."}]})
    with server_process(tmp_path, team=team, seconds=SHORT) as server:
        url = f"http://{server.host}/api/conversations"
        conversation = httpx.post(url, headers=server.headers).json()["id"]
        head = server.request(f"/api/conversations/{conversation}/messages")[:-2].replace(b"GET", b"POST")
        with server.connect() as connection:
            assert dripped(connection, head + b'Content-Length: 100000\r\n\r\n{"text": "')

        assert server.status() == 200
        assert server.said == ""


def test_who_does_not_read_the_answers_is_closed(tmp_path: Path) -> None:
    with server_process(tmp_path, seconds=SHORT) as server, server.connect() as connection:
        # Far more answers than the system keeps for somebody who does not read.
        connection.sendall(server.request("/static/htmx.min.js", key=False) * 1000)

        def is_over() -> bool:
            try:
                connection.sendall(b"x")
            except ConnectionError:
                return True
            return False

        assert until(is_over)
        assert has_no_tracebacks(server)


def test_a_slow_line_may_take_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Connection] = []
    dropped: list[Connection] = []
    monkeypatch.setattr(Connection, "_start_timer", noting(Connection._start_timer, made))
    monkeypatch.setattr(Connection, "drop", noting(Connection.drop, dropped))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": bytes(32 * 1024 * 1024)})

    async def story() -> list[bool]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = Server(uvicorn.Config(app, lifespan="off", log_config=None))
            running = asyncio.create_task(server.serve(sockets=[listener]))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            transport = made[0].transport
            is_dropped = []
            for _ in range(3):
                left = transport.get_write_buffer_size()
                while transport.get_write_buffer_size() >= left:
                    await reader.read(128 * 1024)
                made[0]._expire()
                is_dropped.append(made[0] in dropped)
            # Nothing is read until the limit is over once more.
            made[0]._expire()
            is_dropped.append(made[0] in dropped)
            writer.close()
            server.should_exit = True
            await running
            return is_dropped

    assert asyncio.run(story()) == [False, False, False, True]


def test_the_limit_of_a_request_does_not_end_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Connection] = []
    begun: list[asyncio.TimerHandle | None] = []
    answered: list[bool] = []
    monkeypatch.setattr(Connection, "_start_timer", noting(Connection._start_timer, made))
    monkeypatch.setattr(Connection, "connection_made", after(Connection.connection_made, begun))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        answered.extend(timer is not None and timer.cancelled() for timer in begun)
        answered.append(made[0].is_waiting)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b""})

    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = Server(uvicorn.Config(app, lifespan="off", log_config=None))
            running = asyncio.create_task(server.serve(sockets=[listener]))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.read()
            writer.close()
            server.should_exit = True
            await running

    asyncio.run(story())
    assert answered == [True, False]


def after(what: Callable[..., None], begun: list[asyncio.TimerHandle | None]) -> Callable[..., None]:
    def done(connection: Connection, transport: asyncio.Transport) -> None:
        what(connection, transport)
        begun.append(connection._timer)

    return done


class Place:
    """What takes up a place."""

    is_waiting = True
    stream_of = None
    is_dropped = False

    def drop(self) -> None:
        self.is_dropped = True


def test_who_has_left_takes_no_place() -> None:
    connections, stays, leaves = Connections(4), Place(), Place()
    for one in (stays, leaves):
        assert connections.make_room("a")
        connections.add(cast(Any, one), "a")
    connections.remove(cast(Any, leaves))
    connections.remove(cast(Any, leaves))

    assert connections.make_room("a")
    assert not stays.is_dropped
    connections.add(cast(Any, Place()), "a")
    assert connections.make_room("a")
    assert stays.is_dropped


def noting(what: Callable[[Connection], None], noted: list[Connection]) -> Callable[[Connection], None]:
    def done(connection: Connection) -> None:
        noted.append(connection)
        what(connection)

    return done


TRIES = """
import asyncio, os
import bullpen.web.accepting
bullpen.web.accepting.PAUSE_SECONDS = 0.01
Loop = asyncio.SelectorEventLoop
async def noted(self, listener, accept=Loop.sock_accept, tries=os.open({path!r}, os.O_WRONLY | os.O_CREAT)):
    try:
        return await accept(self, listener)
    except OSError:
        os.write(tries, b".")
        raise
Loop.sock_accept = noted
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes the limits of another process")
def test_without_descriptors_it_waits_and_goes_on(tmp_path: Path) -> None:
    tries = tmp_path / "tries"
    with server_process(tmp_path, fault=TRIES.format(path=str(tries))) as server, server.stream() as stream:
        most = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        used = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used, most[1]))
        with ExitStack() as waiting:
            connections = [waiting.enter_context(server.connect()) for _ in range(50)]
            for connection in connections:
                connection.sendall(server.request("/api/conversations", more="Connection: close\r\n"))
            assert until(lambda: "cannot be accepted" in server.said)
            # However often it tries again, it has been said once.
            assert until(lambda: tries.stat().st_size > 5)
            said = server.said
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, most)
            answers = [all_of(connection) for connection in connections]

        assert len(said.splitlines()) == 1
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
        assert is_open(stream)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes the limits of another process")
def test_without_descriptors_those_that_wait_make_room(tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, seconds=UNLIMITED) as server:
        for _ in range(40):
            kept.enter_context(server.connect())
        # It accepts one after the other, so those before this one are in.
        tab = kept.enter_context(server.stream())
        _, hard = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
        used = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (used, hard))

        assert server.status() == 200
        assert is_open(tab)
        assert len(server.said.splitlines()) == 1


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    made = Tls(certificate=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    options = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "2"]
    files = ["-keyout", str(made.key), "-out", str(made.certificate)]
    subprocess.run([openssl, "req", *options, *files], check=True, capture_output=True)
    return made


@pytest.mark.foreign
def test_a_handshake_that_never_ends_is_closed(tls: Tls, tmp_path: Path) -> None:
    with server_process(tmp_path, seconds=SHORT, tls=tls) as server, server.connect() as silent:
        assert all_of(silent) == b""
        assert has_no_tracebacks(server)


@pytest.mark.foreign
def test_handshakes_that_do_not_begin_stop_nobody(tls: Tls, tmp_path: Path, kept: ExitStack) -> None:
    with server_process(tmp_path, files=FILES, seconds=UNLIMITED, tls=tls) as server:
        idle = [kept.enter_context(server.connect()) for _ in range(ROOM * 2)]
        context = ssl.create_default_context(cafile=str(tls.certificate))
        context.check_hostname = False
        with context.wrap_socket(server.connect()) as signed_in:
            signed_in.sendall(server.request("/api/conversations", more="Connection: close\r\n"))
            answer = all_of(signed_in)

        assert answer.startswith(b"HTTP/1.1 200")
        assert sum(is_open(one) for one in idle) < ROOM
        assert has_no_tracebacks(server)


@pytest.mark.parametrize(
    ("files", "room"),
    [
        *((1024, 768), (256, 192), (128, 64), (20, FEWEST_CONNECTIONS)),
        *((2**40, MOST_CONNECTIONS), (resource.RLIM_INFINITY, MOST_CONNECTIONS)),
    ],
)
def test_room_is_left_for_the_store_and_the_agents(files: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))

    assert most_connections() == room
