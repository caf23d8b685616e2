"""The Agent Client Protocol, as far as both of its ends must agree: we run agents that speak it, and are one."""

from collections.abc import Mapping

# Not from typing: an editor would wait for that to be imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from bullpen.turn_events import AskedKind

PROTOCOL_VERSION = 1

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
SIGN_IN_NEEDED = -32000
NOT_FOUND = -32002

ASKED_KINDS: "Mapping[str, AskedKind]" = {
    "execute": "command",
    "edit": "edit",
    "delete": "edit",
    "move": "edit",
    "fetch": "network",
}
"""What is asked for, by the kind of the tool; any other kind is a tool like any other."""

QUESTION = "bullpen/isQuestion"
"""In the `_meta` of a call that asks a person something, and asks for no permission."""
