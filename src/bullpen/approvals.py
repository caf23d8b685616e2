"""What agents ask before they do something, what people or rules answer, and the record of both."""

from typing import Literal

from msgspec import Struct

from bullpen.turn_events import ApprovalAsked

Verdict = Literal["yes", "no", "stop"]
"""What the agent is told: do it, this once; do not do it, and continue; do not do it, and end the turn."""


Scope = Literal["once", "turn", "conversation", "team"]
"""For how long an answer holds: for this question, or for all like it in the turn, the conversation, or the team."""


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer to one question of an agent. How long a yes holds is ours to remember: the CLI always hears once."""

    verdict: Verdict
    reason: str = ""
    """Why not, for the model."""
    command: str = ""
    """Another command to run instead, where the CLI can; empty: the one that was asked for."""
    text: str = ""
    """What a person answered to a question: one of the choices, or other words."""


NOBODY_ANSWERS = Answer(verdict="no", reason="Nobody can be asked here. Do it in another way, or say what you need.")


class ApprovalRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question of an agent, or the answer to it, as it is stored: neither is ever changed."""

    turn_id: str
    member: str
    """Who asked."""
    question: str
    """Which of the turn's questions it is."""
    at: int
    """When, in milliseconds since 1970."""
    number: int = 0
    """Its place among all of the conversation, from 1; 0: it is not stored yet."""
    asked: ApprovalAsked | None = None
    """What was asked. None: this is the answer."""
    answer: Answer | None = None
    by: str = ""
    """Who answered; empty: no person did."""
    scope: Scope = "once"
    because: str = ""
    """Why it was answered without a person: the rule that says so, for example."""
    after_message: int = 0
    """How many messages there were; the store knows."""
    is_copy: bool = False
    """Whether it is from another conversation, where its turn is: it says what was, and allows nothing here."""
    hash: bytes = b""
    """SHA-256 over all of it, and everything before it; from the store."""
