"""Chips: what matters most about a message, in a word each beside its name: its verdict, and its checks."""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from bullpen.markers.grammar import Verdict, read_markers
from bullpen.messages import ConversationMessage
from bullpen.routing.reviews import UNASKED, verdict_of
from bullpen.text.clean import one_line
from bullpen.view.activity import Light
from bullpen.view.checks import CheckLine

VERDICTS: dict[Verdict | None, tuple[Light, str, str]] = {
    "approve": ("green", "✓", "approved"),
    "changes": ("yellow", "↺", "changes wanted"),
    None: ("grey", "?", "verdict unclear"),
}
"""The colour, sign and words of each verdict; None: there are several, or it is not at the end."""
NOT_ASKED_FOR: tuple[Light, str, str] = ("grey", "○", "verdict not asked for")
"""The same for a verdict that counts for nothing."""
MOST_NAME = 40


class Chip(Struct, frozen=True, kw_only=True):
    """A few words on a message."""

    kind: Literal["verdict", "check"]
    light: Light
    sign: str
    """One character that says the same, where there are no colours."""
    words: str
    check: int = 0
    """The number of its check."""


def chips(message: ConversationMessage, checks: Iterable[CheckLine] = ()) -> tuple[Chip, ...]:
    """Return the chips of a message; `checks` are those that ran after its turn."""
    return (*_verdict(message), *map(_check, checks))


def _verdict(message: ConversationMessage) -> Iterator[Chip]:
    # Most replies have no marker at all.
    if message.speaker.type != "ai" or "[" not in message.content:
        return
    markers = read_markers(message.content)
    if markers.verdicts:
        counts = UNASKED not in (message.extra or {})
        light, sign, words = VERDICTS[verdict_of(message.content, markers)] if counts else NOT_ASKED_FOR
        yield Chip(kind="verdict", light=light, sign=sign, words=words)


def _check(line: CheckLine) -> Chip:
    return Chip(kind="check", light=line.light, sign=line.sign, words=one_line(line.name)[:MOST_NAME], check=line.check)
