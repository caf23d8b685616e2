r"""The one grammar of markers: [FROM: x], [NEXT: a, b], [TEAM_TASK] …, [TEAM_TASK: …] and [DROP: a | ALL].

Reading and stripping use the same grammar, so what is removed is exactly what was understood. Case does not matter;
full-width brackets, colons, commas and exclamation marks count, since many people type Chinese. Nothing in code or in a
quote is a marker, and neither is "\[NEXT: x\]": in Markdown, a bracket behind a backslash is a mere character.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from bullpen.markers.code import HIDDEN, hide_code

MarkerKind = Literal["from", "next", "drop", "team_task"]

DEFAULT_INTENT = 2
LONGEST_REMEMBERED = 200
"""Characters. A cache must not hold megabytes of what some agent made up."""

_KINDS: dict[str, MarkerKind] = {"FROM": "from", "NEXT": "next", "DROP": "drop", "TEAM_TASK": "team_task"}

_OPEN, _CLOSE, _COLON = "[\\[［]", "[\\]］]", "[:：]"
_PLAIN = rf"(?:[^\[\]［］\n]++|\n(?![ \t\r]*+[\n{HIDDEN}]))"
"""Any text but brackets, empty lines and lines of code or quotes: a forgotten bracket must not swallow what follows."""


def _balanced(levels: int) -> str:
    """Return a pattern for text in which brackets nest at most so deep and open no marker."""
    if levels == 0:
        return f"{_PLAIN}*+"
    no_marker = f"(?!(?:FROM|NEXT|DROP|TEAM_TASK)(?:{_COLON}|{_CLOSE}))"
    return f"(?:{_PLAIN}|{_OPEN}{no_marker}{_balanced(levels - 1)}{_CLOSE})*+"


def _marker(group: str) -> str:
    """Return the grammar; the group is "(" to read a marker's parts, and "(?:" to find markers only.

    Possessive throughout: no part of a text is tried again in another way, so the scan is linear.
    """
    keyword = f"{group}FROM(?!{_COLON}{_CLOSE})|NEXT|DROP|TEAM_TASK)"
    bracketed = f"{_OPEN}(?=[FNDT]){keyword}{_COLON}{group}{_balanced(3)}){_CLOSE}"
    block = f"{_OPEN}TEAM_TASK{_CLOSE}"
    next_marker = _marker("(?:") if group == "(" else f"{bracketed}|{block}"
    return f"(?:{bracketed}|{block}{group}(?:[^\\[［]++|{_OPEN}(?![FNDT])|(?!{next_marker}){_OPEN})*+))"


MARKER = _marker("(?:")
_MARKER_PARTS = re.compile(f"(?ai){_marker('(')}")
OPENING = re.compile(f"(?ai){_OPEN}(?=[FNDT])(?:FROM|NEXT|DROP|TEAM_TASK)(?:{_COLON}|{_CLOSE})")
_INTENTS = {"P1": 1, "P2": 2, "P3": 3}
_RELAY = re.compile("[,，、]")
_PARALLEL = re.compile("[&＆]")
_DROP_SEPARATOR = re.compile("[,，、|｜&＆]")


class Addressee(Struct, frozen=True, gc=False):
    """One name in a [NEXT: …] and how soon it should answer: 1 next in line, 2 in turn, 3 when nothing else waits."""

    name: str
    intent: int = DEFAULT_INTENT


class Marker(Struct, frozen=True, gc=False):
    """One marker, and where in the text it stands."""

    kind: MarkerKind
    value: str
    start: int
    end: int


class Markers(Struct, frozen=True):
    """What the markers of one message mean together."""

    found: tuple[Marker, ...] = ()
    sender: str | None = None
    next: tuple[tuple[Addressee, ...], ...] = ()
    """A relay of groups; the members of a group answer in parallel."""
    drop: tuple[str, ...] = ()
    team_task: str | None = None

    @property
    def addressees(self) -> tuple[str, ...]:
        """Every name in [NEXT: …], in order."""
        return tuple(addressee.name for group in self.next for addressee in group)

    def __bool__(self) -> bool:
        return bool(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Marker]:
        return iter(self.found)


def read_markers(text: str) -> Markers:
    """Return what the markers in the text say. The last sender and the last non-empty team task win."""
    found = tuple(_find_markers(text))
    sender, team_task = None, None
    groups: list[tuple[Addressee, ...]] = []
    drop: list[str] = []
    for marker in found:
        match marker.kind:
            case "from":
                sender = marker.value or sender
            case "team_task":
                team_task = marker.value or team_task
            case "next":
                groups.extend(_relay(marker.value))
            case "drop":
                drop.extend(_names(_DROP_SEPARATOR, marker.value))
    return Markers(found=found, sender=sender, next=tuple(groups), drop=tuple(drop), team_task=team_task)


def searchable(text: str) -> str | None:
    """Return the text as the marker patterns must see it: without code, quotes and escaped brackets.

    None if it has no marker for certain.
    """
    if ("[" in text or "［" in text) and OPENING.search(text):
        return _hide_escaped_brackets(hide_code(text))
    return None


def _hide_escaped_brackets(text: str) -> str:
    """Return a text of the same length in which brackets behind a backslash are blotted out, so they are none."""
    if "\\[" not in text and "\\]" not in text:
        return text
    # Two backslashes are one that is written: pairs go first, from the left, and what is left of a run escapes.
    unpaired = text.replace("\\\\", HIDDEN * 2)
    return unpaired.replace("\\[", HIDDEN * 2).replace("\\]", HIDDEN * 2)


def _find_markers(text: str) -> Iterator[Marker]:
    for match in _MARKER_PARTS.finditer(searchable(text) or ""):
        kind = _KINDS[match[1].upper()] if match[1] else "team_task"
        start, end = match.span(2 if match[1] else 3)
        yield Marker(kind, text[start:end].strip(), match.start(), match.end())


def _relay(value: str) -> tuple[tuple[Addressee, ...], ...]:
    return tuple(filter(None, map(_group, _RELAY.split(value))))


def _group(names: str) -> tuple[Addressee, ...]:
    # Names are few and short, and come again and again. What is long is no name, and not worth remembering.
    return _known_group(names) if len(names) <= LONGEST_REMEMBERED else _read_group(names)


def _read_group(names: str) -> tuple[Addressee, ...]:
    found = map(_addressee, _names(_PARALLEL, names))
    return tuple(addressee for addressee in found if addressee.name)


_known_group = lru_cache(maxsize=256)(_read_group)


def _addressee(name: str) -> Addressee:
    before, _, after = name.replace("！", "!").rpartition("!")
    intent = _INTENTS.get(after.strip().upper())
    return Addressee(name[: len(before)].strip(), intent) if intent else Addressee(name)


def _names(separator: re.Pattern[str], value: str) -> Iterator[str]:
    return (name for part in separator.split(value) if (name := part.strip()))
