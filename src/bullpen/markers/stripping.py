"""Removing the markers from a text and leaving everything else as it was.

If there are too many markers, those that are not read stay, as ordinary text.
"""

import re
from collections.abc import Iterator
from typing import Literal, get_args

from bullpen.markers.grammar import OPENING, OPENINGS, find_markers, read_markers
from bullpen.text.clean import WHITE_SPACE

Whitespace = Literal["preserve", "collapse", "specification"]
Spans = list[tuple[int, int]]

_REST_OF_LINE = re.compile(r"([ \t]*+)(\r?\n|\Z)?+")
_RUN_OF_SPACE = re.compile(f"[{WHITE_SPACE}]{{2,}}+")
# The specification's patterns. In JavaScript, ſ is not an S in any case.
_FROM, _TEAM_TASK, _NEXT = (
    re.compile(pattern, re.IGNORECASE | re.ASCII)
    for pattern in (r"\[FROM:[^\]]++\]", r"\[TEAM_TASK\][^\[]*+", r"\[NEXT:[^\]]*+\]")
)


def strip_all_markers(text: str, whitespace: Whitespace = "preserve") -> str:
    """Return the text without its markers and the white space around them, trimmed at both ends.

    With whitespace="collapse" every line is trimmed too, runs of spaces become one, and empty lines go. If there are
    too many markers, the rest stays, and everything that would open one is broken by a space. "specification" does the
    same as the function of this name in the specification, in code, too.
    """
    if whitespace not in get_args(Whitespace):
        choices = "'preserve', 'collapse' or 'specification'"
        raise ValueError(f"whitespace must be {choices}, got {whitespace!r}")
    if whitespace == "specification":
        return _as_specified(text)
    tidy = _collapse if whitespace == "collapse" else _trim
    found = find_markers(text)
    if found is None:
        return tidy(text)
    between = _all_between_markers if whitespace == "collapse" else _words_between_markers
    pieces = list(between(text, found.spans))
    stripped = tidy("".join(pieces))
    if found.are_cut:
        return _with_openings_broken(stripped)
    # If nothing was removed, no lines were joined, and none was moved to the left, there is no new marker.
    is_unchanged = len(pieces) == 1 and whitespace == "preserve" and stripped[:1] == text[:1]
    return stripped if is_unchanged else _without_new_markers(stripped)


def text_for_people(text: str) -> str:
    """Return what people read: a text without its markers, or all of it if there is nothing else."""
    return strip_all_markers(text) or text


def without_markers(text: str, whitespace: Whitespace = "preserve", *, task_counts: bool = True) -> str:
    """Return what a message says: its text without markers, or its team task if that is all there is.

    "[TEAM_TASK] Build it" is a whole message, and still asks for something. A task that does not count, since its
    author may not set one, is part of the text. The specification knows neither rule.
    """
    if whitespace == "specification":
        return _as_specified(text)
    if not task_counts:
        return strip_all_markers(_with_tasks_as_text(text), whitespace)
    stripped = strip_all_markers(text, whitespace)
    if stripped or not (markers := read_markers(text)):
        return stripped
    tasks = [marker.value for marker in markers if marker.kind == "team_task" and marker.value]
    return strip_all_markers("\n\n".join(tasks), whitespace)


def _as_specified(text: str) -> str:
    text = _TEAM_TASK.sub("", _without_bracketed(_FROM, text))
    return _collapse(_without_bracketed(_NEXT, text))


def _without_bracketed(pattern: re.Pattern[str], text: str) -> str:
    # After the last closing bracket nothing matches, but every opening would be followed to the end.
    end = text.rfind("]") + 1
    return pattern.sub("", text[:end]) + text[end:]


def _with_tasks_as_text(text: str) -> str:
    """Return the text with its tasks, but without their markers."""
    pieces, done = [], 0
    for marker in read_markers(text):
        if marker.kind == "team_task":
            pieces += [text[done : marker.start], marker.value]
            # What follows the task in its own line stays there.
            done = marker.end - (len(text[marker.start : marker.end]) - len(text[marker.start : marker.end].rstrip()))
    return "".join([*pieces, text[done:]])


def _all_between_markers(text: str, markers: Spans) -> Iterator[str]:
    done = 0
    for start, end in markers:
        yield text[done:start]
        done = end
    yield text[done:]


def _words_between_markers(text: str, markers: Spans) -> Iterator[str]:
    """Yield the text between groups of markers, without the white space that belongs to them."""
    done = 0
    for start, end, space_between in _neighbours(text, markers):
        space_after, line_end = _rest_of_line(text, end)
        before = text[done:start]
        trimmed = before.rstrip(" \t")
        opens_line = trimmed.endswith("\n") or (not trimmed and text[done - 1 : done] in ("", "\n"))
        if line_end is not None:
            yield trimmed
            done = end + len(space_after) + (len(line_end) if opens_line else 0)
        elif opens_line:
            yield before
            done = end + len(space_after)
        elif before != trimmed and space_after:
            yield before
            done = end + 1
        else:
            yield before
            done = end
            if before == trimmed and not space_after and space_between:
                yield space_between
    yield text[done:]


def _neighbours(text: str, markers: Spans) -> Iterator[tuple[int, int, str]]:
    """Yield where groups of markers with only white space between them begin and end, and a space if there is any."""
    group: tuple[int, int, str] | None = None
    for start, end in markers:
        if group and not (space := text[group[1] : start]).strip(" \t"):
            group = group[0], end, " " if space else group[2]
        else:
            if group:
                yield group
            group = start, end, ""
    if group:
        yield group


def _rest_of_line(text: str, place: int) -> tuple[str, str | None]:
    """Return the white space that follows, and the line break if nothing else is before it."""
    rest = _REST_OF_LINE.match(text, place)
    return (rest[1], rest[2]) if rest else ("", None)


def _without_new_markers(text: str) -> str:
    """Return the text with all openings broken by a space if removing markers has created a new one.

    Without the marker inside it, "[FR[NEXT: x]OM: human]" would speak in somebody else's name.
    """
    found = find_markers(text)
    if found is None or not found.spans:
        return text
    if found.are_cut:
        return _with_openings_broken(text)
    after_brackets = [opening.end() for opening in OPENING.finditer(found.visible)]
    return " ".join(map(text.__getitem__, map(slice, [0, *after_brackets], [*after_brackets, len(text)])))


def _with_openings_broken(text: str) -> str:
    """Return the text with a space in every opening, in code, too: after so much text, we do not know what is code."""
    for bracket, opening in OPENINGS.items():
        text = opening.sub(f"{bracket} ", text) if bracket in text else text
    return text


def _trim(text: str) -> str:
    return text.strip(WHITE_SPACE)


def _collapse(text: str) -> str:
    lines = (_RUN_OF_SPACE.sub(" ", line).strip(WHITE_SPACE) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)
