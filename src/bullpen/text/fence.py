"""Text as a fenced block of Markdown, so that nothing in it is a marker, a name or a heading."""

import re

_TILDES = re.compile("~{3,}")


def fenced(text: str, kind: str = "") -> str:
    """Return a text in a fence that is longer than any in it."""
    longest = max((len(run) for run in _TILDES.findall(text)), default=3)
    fence = "~" * (longest + 1)
    return f"{fence}{kind}\n{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{fence}"
