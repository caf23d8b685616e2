"""A way to a server that breaks in the worst moment: after it has committed, and before anybody hears that."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from urllib.parse import urlsplit, urlunsplit

COMMITTED = b"COMMIT\0"
WRITTEN = (b"UPDATE 1\0", b"INSERT 0 1\0")
"""What the server answers before, if something was written."""


class Way:
    """Passes everything on, until the answer to a commit."""

    def __init__(self, url: str) -> None:
        place = urlsplit(url)
        self._server = place.hostname or "", place.port or 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lock = Lock()
        self._sockets: list[socket.socket] = []
        self._threads: list[Thread] = []
        self._commits = 0
        self.broken = 0
        """How often it broke."""
        port = self._listener.getsockname()[1]
        self.url = urlunsplit(place._replace(netloc=f"{place.netloc.rpartition('@')[0]}@127.0.0.1:{port}"))

    def break_after(self, commits: int) -> None:
        """Break when so many more are done that have written something."""
        self._commits = commits

    def serve(self) -> None:
        """Take connections, until it is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += client, server
                for one, other in ((client, server), (server, client)):
                    passing = Thread(target=self._pass_on, args=(one, other), kwargs={"is_server": one is server})
                    self._threads.append(passing)
                    passing.start()

    def _pass_on(self, one: socket.socket, other: socket.socket, *, is_server: bool) -> None:
        answers = b""
        with suppress(OSError):
            while data := one.recv(65536):
                *ended, answers = (answers + data).split(COMMITTED) if is_server else [b""]
                if self._breaks(sum(any(tag in part for tag in WRITTEN) for part in ended)):
                    break
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _breaks(self, commits: int) -> bool:
        with self._lock:
            if not self._commits or not commits:
                return False
            self._commits = max(0, self._commits - commits)
            self.broken += self._commits == 0
            return self._commits == 0

    def close(self) -> None:
        """Break for good."""
        for end in (self._listener, *self._sockets):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._sockets):
            end.close()


@contextmanager
def way_to(url: str) -> Iterator[Way]:
    """Yield a way to a server."""
    way = Way(url)
    serving = Thread(target=way.serve)
    serving.start()
    try:
        yield way
    finally:
        way.close()
        serving.join()
