"""ToolUse: what an agent did with the tools of its turn, as it is stored with the turn."""

from typing import Literal

from msgspec import Struct

UseKind = Literal["look up", "hand over", "ask", "note"]


class ToolUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call."""

    kind: UseKind
    words: str
    """What it did: "read #3 to #9"."""
    bytes: int = 0
    """How much it read."""
