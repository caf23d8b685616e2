"""A client that sends exactly the headers it is told to, over one connection as long as that lasts."""

import http.client
from contextlib import suppress

SECONDS = 60
NO_ANSWER = 0


class SocketClient:
    """Asks one server, request after request."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)

    def close(self) -> None:
        """Leave."""
        self._connection.close()

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes | None = None) -> int:
        """Return the status of the answer, or NO_ANSWER."""
        for _ in range(2):
            # A server may close a connection between two requests; the second is a new one.
            with suppress(http.client.RemoteDisconnected, ConnectionError):
                return self._asked(method, path, headers, body)
            self.close()
        return NO_ANSWER

    def _asked(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> int:
        self._connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            self._connection.putheader(name, value.encode())
        if body is not None:
            self._connection.putheader("Content-Length", str(len(body)))
        self._connection.endheaders(body)
        answer = self._connection.getresponse()
        if answer.getheader("Content-Type", "").startswith("text/event-stream"):
            # It has no end.
            self.close()
        else:
            answer.read()
        return answer.status
