"""Whom a person's message mentions: "@sarah, please look", outside of code, quotes and markers.

A mention addresses like [NEXT: name], and several are a relay in the order in which they are written. Text has other
words with an "@", such as decorators and addresses: one that is nobody's name counts only where it is meant as a name,
at the beginning of the message or spelled nearly like a member's.
"""

from collections.abc import Iterator
from itertools import islice

from msgspec.structs import replace

from bullpen.markers.code import HIDDEN, hide_code
from bullpen.markers.grammar import MOST_NAMES, Addressee, Markers
from bullpen.routing.name_patterns import Spellings
from bullpen.routing.resolver import Resolver
from bullpen.team.team import Team
from bullpen.text.patterns import pattern

_AT = pattern(r"(?<![\w@＠./\\-])[@＠](?=[^\s@＠])|(?<=[\u2e80-\u9fff\uac00-\ud7af])[@＠](?=[^\s@＠])")
# Not a path, a call or a host: @types/node, @lru_cache(1), @example.com.
_WORD = pattern(r"\w[\w-]*+(?![(/\\@]|\.\w)")


class Mentions:
    """Finds mentions in the messages of one team."""

    def __init__(self, team: Team) -> None:
        self._spellings = Spellings(team.members)
        self._resolver = Resolver(team)

    def added_to(self, markers: Markers, text: str) -> Markers:
        """Return a message's markers with its mentions as addressees, if no [NEXT: …] names any."""
        if markers.next or ("@" not in text and "＠" not in text):
            return markers
        names = list(islice(dict.fromkeys(self._in(_without_markers(text, markers))), MOST_NAMES))
        return replace(markers, next=tuple((Addressee(name),) for name in names))

    def _in(self, visible: str) -> Iterator[str]:
        beginning = len(visible) - len(visible.lstrip())
        for at in _AT.finditer(visible):
            if named := self._spellings.named_at(visible, at.end()):
                yield named
            elif (word := _WORD.match(visible, at.end())) and self._is_meant(word[0], first=at.start() == beginning):
                yield word[0]

    def _is_meant(self, word: str, *, first: bool) -> bool:
        """Return whether a word that is nobody's name is meant as one."""
        return first or self._resolver.is_everyone(word) or bool(self._spellings.meant_by(word))


def _without_markers(text: str, markers: Markers) -> str:
    """Return a text of the same length without code, quotes and markers. A team task may mention anybody."""
    visible = hide_code(text)
    pieces, done = [], 0
    for marker in markers:
        pieces += [visible[done : marker.start], HIDDEN * (marker.end - marker.start)]
        done = marker.end
    return "".join([*pieces, visible[done:]])
