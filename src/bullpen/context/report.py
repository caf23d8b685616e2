"""The account of one prompt: what went in, what was left out, and what each part took."""

from collections.abc import Sequence

from msgspec import Struct


class PromptReport(Struct, frozen=True, kw_only=True):
    """What was kept, dropped and cut, and how many bytes each section takes."""

    agent_type: str
    max_bytes: int
    section_bytes: dict[str, int]
    """UTF-8 bytes with headings: system, team_task, context, message, and the separators between them."""
    context_ids: Sequence[str] = ()
    """The messages that were offered, oldest first; "#1" is the first of those that have no id."""
    dropped_messages: int = 0
    """How many of the offered messages, from the oldest on, did not fit."""
    message_bytes_cut: int = 0
    """How much of the current message did not fit."""
    instruction_bytes_cut: int = 0
    """How much was taken out of the middle of the instruction file."""

    @property
    def total_bytes(self) -> int:
        """What is sent: the prompt and the system text."""
        return sum(self.section_bytes.values())

    @property
    def kept_messages(self) -> int:
        """How many of the offered messages are in the prompt."""
        return len(self.context_ids) - self.dropped_messages

    @property
    def kept_ids(self) -> tuple[str, ...]:
        """The context messages in the prompt, oldest first."""
        return tuple(self.context_ids[self.dropped_messages :])

    @property
    def dropped_ids(self) -> tuple[str, ...]:
        """The context messages left out, oldest first."""
        return tuple(self.context_ids[: self.dropped_messages])

    @property
    def cuts(self) -> tuple[str, ...]:
        """Every cut in a phrase; empty when all of it was sent."""
        phrases = (
            (self.instruction_bytes_cut, f"SYSTEM instruction file shortened by {self.instruction_bytes_cut:,} bytes"),
            (self.dropped_messages, f"CONTEXT trimmed to {self.kept_messages:,} of {len(self.context_ids):,} messages"),
            (self.message_bytes_cut, f"MESSAGE cut by {self.message_bytes_cut:,} bytes"),
        )
        return tuple(phrase for happened, phrase in phrases if happened)
