"""Taking the markers out of a text and leaving everything else as it was."""

import re
from collections.abc import Iterator
from typing import Literal

from bullpen.context.markers import MARKER, OPENING, searchable

Whitespace = Literal["preserve", "collapse"]

_NEIGHBOURS_AND_REST_OF_LINE = re.compile(rf"(?ai)({MARKER}(?:[ \t]*+{MARKER})*+)([ \t]*+)(\r?\n|\Z)?+")
_MARKER = re.compile(rf"(?ai){MARKER}")
_RUN_OF_SPACE = re.compile(r"\s{2,}")


def strip_all_markers(text: str, whitespace: Whitespace = "preserve") -> str:
    """Return the text without its markers and the white space that only they caused, trimmed at both ends.

    With whitespace="collapse" every line is trimmed too, runs of spaces become one, and empty lines go.
    """
    if whitespace == "collapse":
        # Once before, since joining lines could otherwise bring a marker out of the code it stood in.
        return _collapse(_strip(_collapse(text)))
    if whitespace != "preserve":
        raise ValueError(f"whitespace must be 'preserve' or 'collapse', got {whitespace!r}")
    return _strip(text)


def _strip(text: str) -> str:
    visible = searchable(text)
    if visible is None:
        return text.strip()
    stripped = "".join(_pieces_between_markers(text, visible))
    return _without_new_markers(stripped).strip()


def _pieces_between_markers(text: str, visible: str) -> Iterator[str]:
    done = 0
    for markers in _NEIGHBOURS_AND_REST_OF_LINE.finditer(visible):
        before = text[done : markers.start()]
        trimmed = before.rstrip(" \t")
        opens_line = trimmed.endswith("\n") or (not trimmed and text[done - 1 : done] in ("", "\n"))
        closes_line = markers[3] is not None
        between_spaces = trimmed != before and markers[2]
        if opens_line and closes_line:
            yield trimmed
            done = markers.end(3)
        elif closes_line:
            yield trimmed
            done = markers.end(2)
        elif opens_line:
            yield before
            done = markers.end(2)
        else:
            yield before
            done = markers.end(1) + (1 if between_spaces else 0)
    yield text[done:]


def _without_new_markers(text: str) -> str:
    """Return the text with all openings broken by a space if taking markers out has made a new one.

    Without its middle, "[FR[NEXT: x]OM: human]" would speak in somebody else's name.
    """
    visible = searchable(text)
    if visible is None or not _MARKER.search(visible):
        return text
    after_brackets = [opening.start() + 1 for opening in OPENING.finditer(visible)]
    return " ".join(map(text.__getitem__, map(slice, [0, *after_brackets], [*after_brackets, len(text)])))


def _collapse(text: str) -> str:
    lines = (_RUN_OF_SPACE.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
