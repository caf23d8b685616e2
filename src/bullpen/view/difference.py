"""Difference: what one agent was given and another was not, as data."""

from collections.abc import Iterator
from difflib import unified_diff

from msgspec import Struct

from bullpen.view.explanation import Explanation, SeenMessage

MOST_LINES = 5_000
"""Of each prompt that are compared."""


class SectionDifference(Struct, frozen=True, kw_only=True):
    """A section of the prompt that takes another number of bytes."""

    section: str
    left_bytes: int
    right_bytes: int


class Difference(Struct, frozen=True, kw_only=True):
    """Two explanations side by side. A message that was dropped was not seen."""

    left: Explanation
    right: Explanation
    only_left: tuple[SeenMessage, ...]
    only_right: tuple[SeenMessage, ...]
    in_both: int
    """How many messages both saw, no matter whether they were new to them."""
    sections: tuple[SectionDifference, ...]
    system_diff: str
    """Empty if both were given the same; else a unified diff."""
    prompt_diff: str


def difference(left: Explanation, right: Explanation) -> Difference:
    """Compare what two agents were given, or one agent in two turns. Slow for long prompts: not for an event loop."""
    seen_left = {seen.id: seen for seen in _seen(left)}
    seen_right = {seen.id: seen for seen in _seen(right)}
    return Difference(
        left=left,
        right=right,
        only_left=tuple(seen for seen in seen_left.values() if seen.id not in seen_right),
        only_right=tuple(seen for seen in seen_right.values() if seen.id not in seen_left),
        in_both=len(seen_left.keys() & seen_right.keys()),
        sections=tuple(_sections(left, right)),
        system_diff=_diff(left, right, left.system, right.system),
        prompt_diff=_diff(left, right, left.prompt, right.prompt),
    )


def _seen(explanation: Explanation) -> Iterator[SeenMessage]:
    for seen in explanation.messages:
        if seen.fate != "dropped":
            yield seen


def _sections(left: Explanation, right: Explanation) -> Iterator[SectionDifference]:
    for section in {**left.section_bytes, **right.section_bytes}:
        sizes = left.section_bytes.get(section, 0), right.section_bytes.get(section, 0)
        if sizes[0] != sizes[1]:
            yield SectionDifference(section=section, left_bytes=sizes[0], right_bytes=sizes[1])


def _diff(left: Explanation, right: Explanation, before: str | None, after: str | None) -> str:
    lines = (before or "").split("\n")[:MOST_LINES], (after or "").split("\n")[:MOST_LINES]
    return "\n".join(unified_diff(*lines, fromfile=_name(left), tofile=_name(right), lineterm=""))


def _name(side: Explanation) -> str:
    return f"{side.title.lower()} ({side.member})"
