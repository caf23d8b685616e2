"""Every error bullpen raises on purpose, in one tree.

BullpenError
├── InvalidSnapshot     a snapshot that cannot be loaded; nothing was changed
├── PromptTooLarge      what may not be cut does not fit the byte budget; nothing was sent
└── UnknownMessage      a message id that this conversation does not have

Arguments of the wrong type or range are the caller's bug and raise TypeError or ValueError, as in the rest of Python.
"""

from collections.abc import Mapping


class BullpenError(Exception):
    """Something bullpen could not do, in a sentence for people."""


class InvalidSnapshot(BullpenError, ValueError):
    """A snapshot that cannot be loaded."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Invalid snapshot format: {reason}. The conversation was left as it was.")
        self.reason = reason


class PromptTooLarge(BullpenError, ValueError):
    """The parts of a prompt that may not be cut need more bytes than there are."""

    def __init__(self, agent_type: str, *, max_bytes: int, section_bytes: Mapping[str, int], advice: str) -> None:
        sizes = ", ".join(f"{name} {size:,}" for name, size in section_bytes.items() if size)
        super().__init__(f"The prompt for {agent_type} does not fit into {max_bytes:,} bytes ({sizes}). {advice}")
        self.agent_type = agent_type
        self.max_bytes = max_bytes
        self.section_bytes = dict(section_bytes)


class UnknownMessage(BullpenError, LookupError):
    """A message id that is not in the conversation."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"There is no message {message_id!r} in this conversation. Ids look like 'msg-1'.")
        self.message_id = message_id
