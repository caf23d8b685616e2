"""Answers to what agents ask: may it do that?"""

from typing import Literal

from msgspec import Struct

Verdict = Literal["yes", "no", "stop"]
"""What the agent is told: do it, this once; do not do it, and continue; do not do it, and end the turn."""


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
