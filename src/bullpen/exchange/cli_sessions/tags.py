"""What CLIs write between tags into what a person says."""

from collections.abc import Iterable


def without_tags(text: str, names: Iterable[str]) -> str:
    """Return a text without these elements, begun and ended by tags; one that does not end is text."""
    for name in names:
        if f"<{name}>" in text:
            text = "".join(_outside(text, f"<{name}>", f"</{name}>"))
    return text


def _outside(text: str, begin: str, end: str) -> Iterable[str]:
    position = 0
    while (start := text.find(begin, position)) >= 0 and (stop := text.find(end, start)) >= 0:
        yield text[position:start]
        position = stop + len(end)
    yield text[position:]
