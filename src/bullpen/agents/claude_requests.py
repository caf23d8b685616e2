"""What the requests of a Claude turn have used so far: its last record says it of all of them, but only at the end."""

from typing import Any

from bullpen.agents.common_records import count
from bullpen.turn_events import Usage

COUNTED = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


class ClaudeRequests:
    """Adds up the requests of one turn, each by the id of the message that it brought."""

    def __init__(self) -> None:
        self._used: dict[str, dict[str, int]] = {}

    def note(self, message_id: Any, told: Any) -> None:
        """Remember what a request has used: its beginning tells what went in, and its end what came out."""
        if isinstance(message_id, str) and isinstance(told, dict):
            before = self._used.get(message_id, {})
            self._used[message_id] = {name: max(count(told.get(name)), before.get(name, 0)) for name in COUNTED}

    @property
    def usage(self) -> Usage:
        """All of it. What it costs is known at the end."""
        cached = self._total("cache_read_input_tokens")
        return Usage(
            input_tokens=self._total("input_tokens") + cached + self._total("cache_creation_input_tokens"),
            output_tokens=self._total("output_tokens"),
            cached_tokens=cached,
        )

    def _total(self, name: str) -> int:
        return sum(used.get(name, 0) for used in self._used.values())
