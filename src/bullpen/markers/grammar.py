r"""The one grammar of markers: [FROM: x], [NEXT: a], [TEAM_TASK] …, [DROP: a], [DIFF], [ASK: a], [PICK: B] and others.

Reading and stripping use the same grammar, so what is removed is exactly what was understood. Case does not matter;
full-width brackets, colons, commas and exclamation marks count, since many people type Chinese. Nothing in code or in a
quote is a marker, and neither is "\[NEXT: x\]": in Markdown, a bracket after a backslash is ordinary text. Nobody
writes a thousand markers or names in one message, so no more than that are read.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal, TypeVar

from msgspec import Struct

from bullpen.markers.code import HIDDEN, visible_pieces
from bullpen.text.patterns import pattern

MarkerKind = Literal["from", "next", "drop", "team_task", "diff", "checks", "pick", "ask", "verdict", "sum_up"]

Verdict = Literal["approve", "changes"]

DEFAULT_INTENT = 2
MOST_MARKERS = 1_000
"""In one message. Any after that are text."""
MOST_NAMES = 1_000
"""In all [NEXT: …] and [DROP: …] of one message together."""
MOST_CHOICES = 9
"""In one [ASK: …]: each has a key from 1 to 9. Any after that are not offered."""
LONGEST_CHOICE = 200
"""Characters. The rest of a longer one is cut."""
FIRST_LOOK = 16 * 1024
"""Characters after which we first check whether there are too many markers."""
LONGEST_REMEMBERED = 200
"""Characters. A cache must not keep megabytes that some agent made up."""

T = TypeVar("T")

_KINDS: dict[str, MarkerKind] = {
    "FROM": "from",
    "NEXT": "next",
    "DROP": "drop",
    "TEAM_TASK": "team_task",
    "DIFF": "diff",
    "CHECKS": "checks",
    "PICK": "pick",
    "ASK": "ask",
    "VERDICT": "verdict",
    "SUM UP": "sum_up",
    "SUM_UP": "sum_up",
}
_KEYWORDS = "FROM|NEXT|DROP|TEAM_TASK|DIFF|CHECKS|PICK|ASK|VERDICT|SUM[ _]UP"
FIRST_LETTERS = "ACDFNPSTV"
"""The letters that a marker can begin with."""

_ALONE: dict[str, MarkerKind] = {"D": "diff", "C": "checks", "S": "sum_up"}
"""The markers that need no value, by their first letters."""

_OPEN, _CLOSE, _COLON = "[\\[［]", "[\\]］]", "[:：]"
_PLAIN = rf"(?:[^\[\]［］\n]++|\n(?![ \t\r]*+[\n{HIDDEN}]))"
"""Any text but brackets, empty lines and lines of code or quotes: an unclosed bracket must not swallow the rest."""


def _balanced(levels: int) -> str:
    """Return a pattern for text whose brackets nest at most `levels` deep and open no marker."""
    if levels == 0:
        return f"{_PLAIN}*+"
    no_marker = f"(?!(?:{_KEYWORDS})(?:{_COLON}|{_CLOSE}))"
    return f"(?:{_PLAIN}|{_OPEN}{no_marker}{_balanced(levels - 1)}{_CLOSE})*+"


def _marker(group: str) -> str:
    """Return the grammar; the group is "(" to read a marker's parts, and "(?:" to find markers only.

    Possessive throughout: there is no backtracking, so the scan is linear.
    """
    keyword = f"{group}FROM(?!{_COLON}{_CLOSE})|NEXT|DROP|TEAM_TASK|DIFF|CHECKS|PICK|ASK|VERDICT|SUM[ _]UP)"
    bracketed = f"{keyword}{_COLON}{group}{_balanced(3)}){_CLOSE}"
    block, alone = f"TEAM_TASK{_CLOSE}", f"(?:DIFF|CHECKS|SUM[ _]UP){_CLOSE}"
    next_marker = _marker("(?:") if group == "(" else f"{_OPEN}(?:{bracketed}|{block}|{alone})"
    body = f"{group}(?:[^\\[［]++|{_OPEN}+(?![{FIRST_LETTERS}])|(?!{next_marker}){_OPEN})*+)"
    return f"(?:{_OPEN}(?=[{FIRST_LETTERS}])(?:{bracketed}|{block}{body}|{alone}))"


MARKER = _marker("(?:")
_MARKER = pattern(f"(?ai){MARKER}")
_MARKER_PARTS = pattern(f"(?ai){_marker('(')}")
_OPENS = f"(?=[{FIRST_LETTERS}])(?=(?:{_KEYWORDS})(?:{_COLON}|{_CLOSE}))"
OPENING = pattern(f"(?ai){_OPEN}{_OPENS}")
OPENINGS = {bracket: pattern(f"(?ai){re.escape(bracket)}{_OPENS}") for bracket in "[［"}
"""One pattern for each bracket."""
_INTENTS = {"P1": 1, "P2": 2, "P3": 3}
_BETWEEN_COMMAS = pattern("[^,，、]++")
_BETWEEN_NAMES = pattern("[^&＆|｜]++")
_BAR = pattern("[|｜]")
_ARROW = pattern("->|→")
_NOT_A_BAR = pattern("[,，、&＆]")
_BETWEEN_BARS = pattern("[^|｜]++")
_NAME_TO_DROP = pattern("[^,，、|｜&＆]++")
_NEXT = pattern(f"(?ai){_OPEN}NEXT")
_BLIND_AFTER = pattern(f"(?ai)[ \\t]*+blind(?=[ \\t]*+(?:[\\r\\n]|\\Z|{_OPEN}))")
"""The word "blind" after a [NEXT: …], if nothing but markers follows in its line: prose may begin with it, too."""
_BLIND_WITHIN = pattern(r"(?ai)[;；]\s*+blind\s*+\Z")
_VERDICTS: dict[str, Verdict] = {
    **dict.fromkeys(("approve", "approved", "approves", "通过", "批准"), "approve"),
    **dict.fromkeys(("changes", "change", "changes requested", "request changes", "修改", "需要修改"), "changes"),
}


class Addressee(Struct, frozen=True, gc=False):
    """One name in a [NEXT: …] and when it should answer: 1 first, 2 in order, 3 when nobody else is waiting."""

    name: str
    intent: int = DEFAULT_INTENT


class BestOf(Struct, frozen=True, gc=False):
    """What "[NEXT: a | b -> c]" wants: a and b do the same task apart from each other, and c picks one result."""

    judge: str = ""
    """Empty: a person picks."""
    is_mixed: bool = False
    """Whether there are commas, ampersands or other hand-overs as well, so that nobody knows what is meant."""


class Marker(Struct, frozen=True, gc=False):
    """One marker, and where it is in the text."""

    kind: MarkerKind
    value: str
    start: int
    end: int
    is_blind: bool = False
    """Of a [NEXT: …], whether who answers after a group is not told whose replies are whose."""


class Markers(Struct, frozen=True):
    """What the markers of one message mean together."""

    found: tuple[Marker, ...] = ()
    sender: str | None = None
    next: tuple[tuple[Addressee, ...], ...] = ()
    """A relay of groups; the members of a group answer in parallel."""
    is_after_others: bool = False
    """Whether these answer after whom the message would ask without naming them: "…, and @mei too"."""
    best_of: BestOf | None = None
    """If the members of the only group do the same task apart from each other, and one result is picked."""
    is_blind: bool = False
    """Whether who answers after a group of this relay is not told whose replies are whose."""
    drop: tuple[str, ...] = ()
    team_task: str | None = None
    diff: str | None = None
    """The turn whose changes those get who are asked; empty: the last one that changed files."""
    checks: str | None = None
    """The turn after which checks ran whose results those get who are asked; empty: the last one."""
    pick: str | None = None
    """The neutral name that a judge picks; the last one wins."""
    ask: tuple[str, ...] = ()
    """The answers that an agent offers to a person; the last [ASK: …] with any wins."""
    verdicts: tuple[Verdict | None, ...] = ()
    """What each [VERDICT: …] says about what was reviewed; None: something else than a verdict."""
    sum_up: str | None = None
    """Who is to write a summary of what agents are no longer shown; empty: who usually does."""
    are_cut: bool = False
    """Whether the message has too many markers, names or answers to read all."""

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


class Found(Struct, frozen=True):
    """Where the markers of a text are."""

    visible: str
    """The text as the patterns see it: without code, quotes and escaped brackets. It may end after the last marker."""
    spans: list[tuple[int, int]]
    are_cut: bool
    """Whether there are too many markers to read all."""


def read_markers(text: str) -> Markers:
    """Return what the markers in the text mean. The last sender and the last non-empty team task win."""
    places = find_markers(text)
    if places is None:
        return Markers()
    found = tuple(_read(text, places))
    senders, tasks = ([one.value for one in found if one.kind == kind and one.value] for kind in ("from", "team_task"))
    groups = (group for marker in found if marker.kind == "next" for group in _relay(marker.value))
    relay, more_names = _first_groups(groups, MOST_NAMES)
    dropped = ((name,) for marker in found if marker.kind == "drop" for name in _names(_NAME_TO_DROP, marker.value))
    drop, more_dropped = _first_groups(dropped, MOST_NAMES - sum(map(len, relay)))
    offered = _offered(found)
    return Markers(
        found=found,
        sender=senders[-1] if senders else None,
        next=tuple(relay),
        best_of=_best_of(found),
        is_blind=any(marker.is_blind for marker in found),
        drop=tuple(name for (name,) in drop),
        team_task=tasks[-1] if tasks else None,
        diff=_last(found, "diff"),
        checks=_last(found, "checks"),
        pick=_last(found, "pick"),
        sum_up=_last(found, "sum_up"),
        ask=offered[:MOST_CHOICES],
        verdicts=tuple(_verdict(marker.value) for marker in found if marker.kind == "verdict"),
        are_cut=places.are_cut or more_names or more_dropped or len(offered) > MOST_CHOICES,
    )


def find_markers(text: str) -> Found | None:
    """Return where the markers of a text are; None if it contains none, not even in code."""
    if not any(bracket in text for bracket in "[［") or not any(bracket in text for bracket in "]］"):
        return None
    if not OPENING.search(text):
        return None
    pieces: list[str] = []
    length, next_look = 0, FIRST_LOOK
    for piece in visible_pieces(text):
        pieces.append(piece)
        length += len(piece)
        if next_look <= length < len(text):
            next_look = 4 * length
            pieces = ["".join(pieces)]
            beginning = _without_escaped_brackets(pieces[0])
            if _may_be_too_many(beginning) and len(spans := _spans(beginning)) > MOST_MARKERS:
                return Found(beginning, spans[:MOST_MARKERS], are_cut=True)
    visible = _without_escaped_brackets("".join(pieces))
    spans = _spans(visible)
    return Found(visible, spans[:MOST_MARKERS], are_cut=len(spans) > MOST_MARKERS)


def _may_be_too_many(visible: str) -> bool:
    return visible.count("]") + visible.count("］") > MOST_MARKERS


def _spans(visible: str) -> list[tuple[int, int]]:
    """Return where the markers are, at most one more than are read."""
    found = islice(_MARKER.finditer(visible), MOST_MARKERS + 1)
    return [(marker.start(), _end(visible, *marker.span())) for marker in found]


def _end(visible: str, start: int, end: int) -> int:
    """Return where a marker ends: after the word "blind", if that belongs to it."""
    blind = _BLIND_AFTER.match(visible, end) if _NEXT.match(visible, start) else None
    return end if blind is None else blind.end()


def _without_escaped_brackets(text: str) -> str:
    """Return a text of the same length in which brackets after a backslash are hidden."""
    if "\\[" not in text and "\\]" not in text:
        return text
    # Two backslashes mean one: pairs are hidden first, from the left, and a single one that is left escapes.
    unpaired = text.replace("\\\\", HIDDEN * 2)
    return unpaired.replace("\\[", HIDDEN * 2).replace("\\]", HIDDEN * 2)


def _read(text: str, found: Found) -> Iterator[Marker]:
    matches = (_MARKER_PARTS.match(found.visible, start, end) for start, end in found.spans)
    for match, (_, end) in zip(matches, found.spans, strict=True):
        if match is None:
            continue
        is_blind = end > match.end()
        if match[1]:
            kind, value = _KINDS[match[1].upper()], text[slice(*match.span(2))]
            if kind == "next" and (within := _BLIND_WITHIN.search(value)):
                value, is_blind = value[: within.start()], True
        else:
            is_alone = match[3] is None
            kind = _ALONE[match[0][1].upper()] if is_alone else "team_task"
            value = "" if is_alone else text[slice(*match.span(3))]
        yield Marker(kind, value.strip(), match.start(), end, is_blind)


def _last(found: Sequence[Marker], kind: MarkerKind) -> str | None:
    return next((marker.value for marker in reversed(found) if marker.kind == kind), None)


def _verdict(value: str) -> Verdict | None:
    return _VERDICTS.get(" ".join(value[:LONGEST_REMEMBERED].split()).strip("\"'*`_.!。！ ").casefold())


def _offered(found: Sequence[Marker]) -> tuple[str, ...]:
    """Return the answers of the last [ASK: …] that has any, each once, and one more than are read."""
    for marker in reversed(found):
        choices = (_choice(part) for part in _names(_BETWEEN_BARS, marker.value if marker.kind == "ask" else ""))
        # Of many that are the same, no more are looked at than anybody would write.
        if offered := tuple(islice(dict.fromkeys(islice(filter(None, choices), MOST_NAMES)), MOST_CHOICES + 1)):
            return offered
    return ()


def _choice(text: str) -> str:
    words = " ".join(text[: 4 * LONGEST_CHOICE].split())
    return words if len(words) <= LONGEST_CHOICE else f"{words[: LONGEST_CHOICE - 1].rstrip()}…"


def _first_groups(groups: Iterator[tuple[T, ...]], names: int) -> tuple[list[tuple[T, ...]], bool]:
    """Return the groups up to a number of names, and whether there are more."""
    first: list[tuple[T, ...]] = []
    for group in groups:
        if len(group) > names:
            return [*first, group[:names]] if names else first, True
        first.append(group)
        names -= len(group)
    return first, False


def _best_of(found: tuple[Marker, ...]) -> BestOf | None:
    values = [marker.value for marker in found if marker.kind == "next" and marker.value]
    if not any(map(_BAR.search, values)):
        return None
    # Only the one with a bar in it can have a judge.
    _, *judges = _ARROW.split(next(filter(_BAR.search, values)))
    is_mixed = len(values) > 1 or len(judges) > 1 or any(map(_NOT_A_BAR.search, values))
    return BestOf(judge="".join(judges[:1]).strip(), is_mixed=is_mixed)


def _relay(value: str) -> Iterator[tuple[Addressee, ...]]:
    if _BAR.search(value):
        value = _ARROW.split(value, maxsplit=1)[0]
    return filter(None, (_group(part[0]) for part in _BETWEEN_COMMAS.finditer(value)))


def _group(names: str) -> tuple[Addressee, ...]:
    # Names are few and short, and are repeated often. A long text is not a name, and not worth caching.
    return _known_group(names) if len(names) <= LONGEST_REMEMBERED else _read_group(names)


def _read_group(names: str) -> tuple[Addressee, ...]:
    found = map(_addressee, _names(_BETWEEN_NAMES, names))
    return tuple(islice((addressee for addressee in found if addressee.name), MOST_NAMES + 1))


_known_group = lru_cache(maxsize=256)(_read_group)


def _addressee(name: str) -> Addressee:
    before, _, after = name.replace("！", "!").rpartition("!")
    intent = _INTENTS.get(after.strip().upper())
    return Addressee(name[: len(before)].strip(), intent) if intent else Addressee(name)


def _names(between_separators: re.Pattern[str], value: str) -> Iterator[str]:
    return (name for part in between_separators.finditer(value) if (name := part[0].strip()))
