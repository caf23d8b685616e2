"""McpServer: `bullpen mcp`, which a CLI starts for one turn: calls of its model go through a socket to bullpen.

It speaks MCP on its input and output, and knows nothing of conversations: what a tool does is done where the turn is.
It imports little, since it is started for every turn: that is why it does without msgspec, and without our own types
for calls and answers.
"""

import json
import os
import re
import select
import socket
import sys

from bullpen.tools.catalog import SERVER, TOOLS

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Of the protocol, the newest first. A client that speaks a newer one is offered ours."""
LONGEST_LINE = 4 * 1024 * 1024
TOO_LONG = b"too long: "
"""Before what is kept of a longer one, which is not JSON then."""
KEPT_OF_LONGER = 1024
_ID = re.compile(rb'"id"\s*:\s*(-?[0-9]{1,20}|"[^"\\]{1,200}")\s*[,}]')
LONGEST_CALL = 1024 * 1024
"""Characters. No tool takes nearly as much."""
ENDED = "The turn that this belongs to has ended."
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602


class McpServer:
    """Answers one client. Does no I/O: lines go in, and what is to be sent collects in `replies` and `calls`."""

    def __init__(self) -> None:
        self.replies: list[object] = []
        """For the client."""
        self.calls: list[dict[str, object]] = []
        """For bullpen."""
        self.is_connected = True
        """Whether bullpen can be asked."""
        self._ids: dict[int, object] = {}
        """The client's ids of the calls that are not answered yet."""
        self._last = 0

    def hear(self, line: bytes) -> None:
        """Take a line of the client."""
        try:
            message = json.loads(line, parse_constant=str)
        except (ValueError, RecursionError):
            why = f"This is not JSON, or longer than {LONGEST_LINE:,} bytes."
            self._refuse(_id_in(line), PARSE_ERROR, why)
            return
        for one in message if isinstance(message, list) else [message]:
            self._hear(one)

    def answered(self, number: int, text: str, *, is_error: bool) -> None:
        """Take an answer to a call."""
        if number in self._ids:
            result = {"content": [{"type": "text", "text": text}], "isError": is_error}
            self._reply(self._ids.pop(number), result)

    def disconnected(self) -> None:
        """Answer everything that is open: the turn has ended."""
        self.is_connected = False
        for number in list(self._ids):
            self.answered(number, ENDED, is_error=True)

    def _hear(self, message: object) -> None:
        match message:
            case {"method": str(method), "id": str() | int() | float() as request, **others}:
                parameters = others.get("params")
                self._asked(request, method, parameters if isinstance(parameters, dict) else {})
            case {"method": "notifications/cancelled", "params": {"requestId": cancelled}}:
                for number in [number for number, request in self._ids.items() if request == cancelled]:
                    del self._ids[number]
                    self.calls.append({"id": number})
            case {"method": str()} | {"result": _} | {"error": _}:
                pass
            case _:
                self._refuse(None, INVALID_REQUEST, "This is not a request.")

    def _asked(self, request: object, method: str, parameters: dict[str, object]) -> None:
        match method:
            case "initialize":
                wanted = parameters.get("protocolVersion")
                self._reply(
                    request,
                    {
                        "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": SERVER, "version": "1"},
                    },
                )
            case "ping":
                self._reply(request, {})
            case "tools/list":
                self._reply(request, {"tools": TOOLS})
            case "tools/call":
                self._call(request, parameters)
            case _:
                self._refuse(request, UNKNOWN_METHOD, f"{method} is not known here.")

    def _call(self, request: object, parameters: dict[str, object]) -> None:
        match parameters:
            case {"name": str(name)} if any(tool["name"] == name for tool in TOOLS):
                arguments = parameters.get("arguments") or {}
            case _:
                self._refuse(request, INVALID_PARAMS, f"There is no tool {parameters.get('name')!r}.")
                return
        if not isinstance(arguments, dict):
            self._refuse(request, INVALID_PARAMS, "The arguments of a tool are an object.")
            return
        if len(json.dumps(arguments)) > LONGEST_CALL:
            self._refuse(request, INVALID_PARAMS, f"The arguments have more than {LONGEST_CALL:,} characters.")
            return
        self._last += 1
        self._ids[self._last] = request
        if self.is_connected:
            self.calls.append({"id": self._last, "tool": name, "arguments": arguments})
        else:
            self.disconnected()

    def _reply(self, request: object, result: object) -> None:
        self.replies.append({"jsonrpc": "2.0", "id": request, "result": result})

    def _refuse(self, request: object, code: int, text: str) -> None:
        self.replies.append({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": text}})


def _id_in(line: bytes) -> object:
    """Return the id of a request that cannot be read, so that nobody waits for its answer; None: there is none."""
    first = _ID.search(line[: KEPT_OF_LONGER + len(TOO_LONG)])
    found = [first] if first else list(_ID.finditer(line[-KEPT_OF_LONGER:]))
    return json.loads(found[-1][1].decode(errors="replace")) if found else None


class Lines:
    """Lines that come in pieces."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete; of one that is far too long only some, which nobody can read."""
        self._rest += data
        *lines, rest = self._rest.split(b"\n")
        if len(rest) > LONGEST_LINE:
            # An id may be at the beginning or at the end.
            start = b"" if rest.startswith(TOO_LONG) else TOO_LONG
            rest = bytearray(start) + rest[:KEPT_OF_LONGER] + rest[-KEPT_OF_LONGER:]
        self._rest = rest
        return [bytes(line) for line in lines if line.strip()]


def serve(path: str, stdin: int = 0, stdout: int = 1) -> None:
    """Serve a client until its end of the connection is closed."""
    server, from_client, from_bullpen = McpServer(), Lines(), Lines()
    connection = _connect(path)
    if connection is None:
        server.disconnected()
    waited_for: list[int | socket.socket] = [stdin, *([connection] if connection is not None else ())]
    while True:
        readable, _, _ = select.select(waited_for, [], [])
        if stdin in readable:
            data = os.read(stdin, 65536)
            if not data:
                return
            for line in from_client.feed(data):
                server.hear(line)
        if connection is not None and connection in readable:
            data = _received(connection)
            for line in from_bullpen.feed(data):
                answer = json.loads(line)
                server.answered(answer["id"], answer["text"], is_error=answer["is_error"])
            if not data:
                connection = None
                waited_for = [stdin]
                server.disconnected()
        connection = _send(server, connection, stdout)
        if connection is None:
            waited_for = [stdin]


def _send(server: McpServer, connection: socket.socket | None, stdout: int) -> socket.socket | None:
    """Send what has collected; return the connection to bullpen, if there still is one."""
    calls, server.calls = server.calls, []
    if connection is not None and calls:
        try:
            connection.sendall(_encoded(calls))
        except OSError:
            connection = None
            server.disconnected()
    replies, server.replies = server.replies, []
    data = _encoded(replies)
    while data:
        data = data[os.write(stdout, data) :]
    return connection


def _encoded(messages: list[object] | list[dict[str, object]]) -> bytes:
    # Half of a surrogate pair is not text.
    return b"".join(json.dumps(message, ensure_ascii=False).encode(errors="replace") + b"\n" for message in messages)


def _connect(path: str) -> socket.socket | None:
    try:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(path)
    except OSError:
        return None
    return connection


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except OSError:
        return b""


if __name__ == "__main__":
    serve(sys.argv[1])
