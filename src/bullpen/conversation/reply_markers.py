"""What the markers of a reply mean that an agent has given in several texts, with tools between them."""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from msgspec.structs import replace

from bullpen.markers.grammar import Markers, read_markers
from bullpen.text.clean import clean_text

DIFFERS = "It handed over to {before} before a tool, and to {last} after it. The last one counts."
TEXTS_AT = "textsAt"
"""The field of a message that says where in it each text begins but the first. It is covered by the message's hash."""


def texts_of(reply: str, starts: Sequence[int]) -> list[str]:
    """Return the texts of a reply, each of which but the first begins at one of these places."""
    return [clean_text(reply[start:end]) for start, end in pairwise((0, *starts, len(reply)))]


def text_places(content: str, texts: Sequence[str]) -> dict[str, Any] | None:
    """Return the field that says where a message's texts begin; None if it has only one. Notes may surround them."""
    if len(texts) < 2:
        return None
    first = content.index("".join(texts))
    return {TEXTS_AT: [first + end for end in accumulate(map(len, texts[:-1]))]}


def reply_markers(texts: Sequence[str]) -> tuple[Markers, tuple[str, ...]]:
    """Return the markers of a reply, and a note if it handed over differently in an earlier text.

    Of several texts that hand over, only the last one says who is next. A verdict is found only in the last text.
    """
    whole = read_markers("".join(texts))
    last_at = sum(map(len, texts[:-1]))
    final = tuple(one for one in whole.found if one.kind != "verdict" or one.start >= last_at)
    whole = replace(whole, found=final)
    each = [read_markers(text) for text in texts]
    hands_over = [number for number, markers in enumerate(each) if markers.next]
    if len(hands_over) < 2:
        return whole, ()
    last = each[hands_over[-1]]
    starts = [0, *accumulate(map(len, texts))]
    found = tuple(one for one in whole.found if one.kind != "next" or one.start >= starts[hands_over[-1]])
    kept = replace(whole, found=found, next=last.next, best_of=last.best_of, is_blind=last.is_blind)
    before = [each[number] for number in hands_over[:-1] if each[number].next != last.next]
    if not before:
        return kept, ()
    names = {"before": ", ".join(before[-1].addressees), "last": ", ".join(last.addressees)}
    return kept, (DIFFERS.format(**names),)
