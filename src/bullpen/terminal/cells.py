"""How wide a text is on a terminal. We use rich's widths, but join only emoji, not letters."""

import re
from collections.abc import Iterator

from rich.cells import cell_len, split_graphemes

# rich counts no width for what follows a joiner. That is right between emoji, but wrong between letters: Persian and
# Hindi have joiners too, and a text could hide the rest of its line after them.
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"
_LETTER_JOINER = re.compile(f"(?<![{_EMOJI}\ufe0f])\u200d|\u200d(?![{_EMOJI}])")
_JOINS_NOTHING = "\u200b"


def width(text: str) -> int:
    """Return how many columns a text needs: a Chinese character needs two, and so does an emoji of any length."""
    return len(text) if text.isascii() else cell_len(_measurable(text))


def clusters(text: str) -> Iterator[tuple[str, int]]:
    """Yield what people see as one character, and its width in columns."""
    if text.isascii():
        yield from ((letter, 1) for letter in text)
        return
    for start, end, size in split_graphemes(_measurable(text))[0]:
        yield text[start:end], size


def cut(text: str, room: int) -> str:
    """Return as much of a text as there is room for, with "…" if that is not all."""
    if width(text) <= room:
        return text
    kept, taken = "", 0
    for cluster, size in clusters(text):
        taken += size
        if taken >= room:
            break
        kept += cluster
    return kept.rstrip() + "…"


def _measurable(text: str) -> str:
    """Return a text of the same length in which only emoji are joined."""
    return _LETTER_JOINER.sub(_JOINS_NOTHING, text) if "\u200d" in text else text
