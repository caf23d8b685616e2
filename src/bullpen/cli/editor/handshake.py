"""The handshake: what an editor is told before anything else is loaded, so that it never waits for that.

It does without msgspec, asyncio, logging and typing, which take longer to import than all of this.
"""

import json

from bullpen import __version__
from bullpen.acp_protocol import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, PROTOCOL_VERSION
from bullpen.cli.editor.lines import Lines, read_some, write_all

OURSELVES = "bullpen"
"""Both ends of the protocol: our driver says so, too."""
HELLO = {
    "protocolVersion": PROTOCOL_VERSION,
    "agentInfo": {"name": OURSELVES, "title": OURSELVES, "version": __version__},
    "agentCapabilities": {
        "loadSession": True,
        "promptCapabilities": {"image": False, "audio": False, "embeddedContext": True},
        "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
    },
    "authMethods": [],
}
"""What we can do. An editor that speaks a newer version of the protocol decides whether ours is enough."""

Reply = dict[str, object]


class Met:
    """An editor that has shaken hands."""

    def __init__(self, client: str, lines: Lines, unheard: list[bytes]) -> None:
        self.client = client
        """What it calls itself."""
        self.lines = lines
        self.unheard = unheard
        """What it has said since."""


def shake_hands(source: int, target: int) -> Met | None:
    """Wait for an editor that shakes hands, and answer; None if it leaves before."""
    lines = Lines()
    while data := read_some(source):
        heard = lines.feed(data)
        for number, line in enumerate(heard, start=1):
            reply = _reply_to(line)
            if reply is not None and not write_all(target, json.dumps(reply).encode() + b"\n"):
                return None
            if reply is not None and "result" in reply:
                return Met(_client(json.loads(line)), lines, heard[number:])
    return None


def hello(params: object, number: object) -> Reply:
    """Return the answer to `initialize`."""
    match params:
        case {"protocolVersion": int()}:
            return {"jsonrpc": "2.0", "id": number, "result": HELLO}
        case _:
            return refusal(number, INVALID_PARAMS, "initialize needs a protocolVersion, which is a number.")


def refusal(number: object, code: int, message: str) -> Reply:
    """Return that a request cannot be answered, and why."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def _reply_to(line: bytes) -> Reply | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return refusal(None, PARSE_ERROR, "This is not JSON.")
    match message:
        case {"method": "initialize", "id": number}:
            return hello(message.get("params"), number)
        case {"id": number}:
            return refusal(number, INVALID_REQUEST, "Send initialize first.")
        case {"method": str()}:
            return None
        case _:
            return refusal(None, INVALID_REQUEST, "Send initialize first.")


def _client(message: Reply) -> str:
    match message:
        case {"params": {"clientInfo": {"name": str(name)}}}:
            return name
        case _:
            return ""
