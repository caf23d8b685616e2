"""The MCP server with the tools of a turn, as CLIs are told of it for one run. Nobody's settings change."""

from collections.abc import Sequence
from typing import Any

import msgspec

SERVER = "bullpen"
TOOL_NAMES = (*("read_history", "search", "read_message", "read_diff", "team", "hand_over", "ask_person", "note"),)
CALL_SECONDS = 3600
"""How long a call may take: somebody may be asked in it."""


def server_config(command: Sequence[str], **others: Any) -> str:
    """Return a server as the settings of most CLIs have it, in JSON."""
    server = {"command": command[0], "args": list(command[1:]), **others}
    return msgspec.json.encode({"mcpServers": {SERVER: server}}).decode()
