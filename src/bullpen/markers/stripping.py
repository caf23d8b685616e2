"""Taking the markers out of a text and leaving everything else as it was."""

import re
from collections.abc import Iterator
from typing import Literal

from bullpen.markers.grammar import MARKER, OPENING, read_markers, searchable
from bullpen.text.clean import WHITE_SPACE

Whitespace = Literal["preserve", "collapse"]

_NEIGHBOURS_AND_REST_OF_LINE = re.compile(rf"(?ai)({MARKER}(?:(?:([ \t])[ \t]*+)?+{MARKER})*+)([ \t]*+)(\r?\n|\Z)?+")
_MARKER = re.compile(rf"(?ai){MARKER}")
_RUN_OF_SPACE = re.compile(f"[{WHITE_SPACE}]{{2,}}+")


def strip_all_markers(text: str, whitespace: Whitespace = "preserve") -> str:
    """Return the text without its markers and the white space that only they caused, trimmed at both ends.

    With whitespace="collapse" every line is trimmed too, runs of spaces become one, and empty lines go.
    """
    if whitespace not in ("preserve", "collapse"):
        raise ValueError(f"whitespace must be 'preserve' or 'collapse', got {whitespace!r}")
    tidy = _collapse if whitespace == "collapse" else _trim
    visible = searchable(text)
    if visible is None:
        return tidy(text)
    between = _all_between_markers if whitespace == "collapse" else _words_between_markers
    pieces = list(between(text, visible))
    stripped = tidy("".join(pieces))
    # Where nothing was taken out, no line joined, and none moved to the left, nothing can have come about.
    is_as_it_was = len(pieces) == 1 and whitespace == "preserve" and stripped[:1] == text[:1]
    return stripped if is_as_it_was else _without_new_markers(stripped)


def without_markers(text: str, whitespace: Whitespace = "preserve", *, task_counts: bool = True) -> str:
    """Return what a message says: its text without markers, or its team task if that is all there is.

    "[TEAM_TASK] Build it" takes all of the message, and yet asks for something. A task that does not count, since its
    author may not set one, is part of what is said.
    """
    if not task_counts:
        return strip_all_markers(_with_tasks_as_text(text), whitespace)
    stripped = strip_all_markers(text, whitespace)
    if stripped or not (markers := read_markers(text)):
        return stripped
    tasks = [marker.value for marker in markers if marker.kind == "team_task" and marker.value]
    return strip_all_markers("\n\n".join(tasks), whitespace)


def _with_tasks_as_text(text: str) -> str:
    """Return a text in which the tasks stay and only their markers go."""
    pieces, done = [], 0
    for marker in read_markers(text):
        if marker.kind == "team_task":
            pieces += [text[done : marker.start], marker.value]
            # What follows the task in its own line stays there.
            done = marker.end - (len(text[marker.start : marker.end]) - len(text[marker.start : marker.end].rstrip()))
    return "".join([*pieces, text[done:]])


def _all_between_markers(text: str, visible: str) -> Iterator[str]:
    done = 0
    for marker in _MARKER.finditer(visible):
        yield text[done : marker.start()]
        done = marker.end()
    yield text[done:]


def _words_between_markers(text: str, visible: str) -> Iterator[str]:
    """Yield the text between groups of markers, less the white space that is only there because of them."""
    done = 0
    for markers in _NEIGHBOURS_AND_REST_OF_LINE.finditer(visible):
        before = text[done : markers.start()]
        trimmed = before.rstrip(" \t")
        opens_line = trimmed.endswith("\n") or (not trimmed and text[done - 1 : done] in ("", "\n"))
        closes_line = markers[4] is not None
        if closes_line:
            yield trimmed
            done = markers.end(4) if opens_line else markers.end(3)
        elif opens_line:
            yield before
            done = markers.end(3)
        elif before != trimmed and markers[3]:
            yield before
            done = markers.end(1) + 1
        else:
            yield before
            done = markers.end(1)
            if before == trimmed and not markers[3] and markers[2]:
                yield " "
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


def _trim(text: str) -> str:
    return text.strip(WHITE_SPACE)


def _collapse(text: str) -> str:
    lines = (_RUN_OF_SPACE.sub(" ", line).strip(WHITE_SPACE) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
