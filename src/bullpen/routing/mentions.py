"""Whom a person's message mentions: "@sarah, please look", outside of code, quotes and markers.

At the beginning of a message a mention addresses like [NEXT: name]; later, it adds who answers after those whom the
message asks anyway. Several are a relay in the order in which they are written. Text has other
words with an "@", such as decorators and addresses: one that is nobody's name counts only where it is meant as a name,
at the beginning of the message or spelled nearly like a member's.
"""

from collections.abc import Iterator
from itertools import islice
from re import IGNORECASE

from msgspec.structs import replace

from bullpen.markers.code import HIDDEN, hide_code
from bullpen.markers.grammar import MOST_NAMES, Addressee, Markers
from bullpen.routing.name_patterns import NAME_ENDS, Spellings
from bullpen.routing.resolver import Resolver
from bullpen.team.team import EVERY_AGENT, Team
from bullpen.text.patterns import pattern

_AT = pattern(r"(?<![\w@＠./\\-])[@＠](?=[^\s@＠])|(?<=[\u2e80-\u9fff\uac00-\ud7af])[@＠](?=[^\s@＠])")
# Not a path, a call or a host: @types/node, @lru_cache(1), @example.com.
_WORD = pattern(r"\w[\w-]*+(?![(/\\@]|\.\w)")
_EVERYONE = pattern(rf"(?:{'|'.join(sorted(EVERY_AGENT))}){NAME_ENDS}", IGNORECASE)
_WORDS = pattern(r"\w")
NEARLY = 0.8
"""How similar a word must be to a name, from 0 to 1."""
LONGEST_NAME = 100
MOST_WORDS = 1_000
"""Different words with an "@" that are looked at."""


class Mentions:
    """Finds mentions in the messages of one team."""

    def __init__(self, team: Team) -> None:
        self._spellings = Spellings(team.members)
        self._resolver = Resolver(team)
        self._names = [name.casefold() for one in team.members for name in (one.name, one.display_name) if name]

    def added_to(self, markers: Markers, text: str) -> Markers:
        """Return a message's markers with its mentions as addressees, if no [NEXT: …] names any."""
        if markers.next or ("@" not in text and "＠" not in text):
            return markers
        visible = _without_markers(text, markers)
        found = list(islice(self._in(visible), MOST_NAMES))
        # Who is asked together with everyone has nobody to wait for.
        asks_everyone = any(self._resolver.is_everyone(name) for name, _ in found)
        return replace(
            markers,
            next=tuple((Addressee(name),) for name, _ in found),
            is_after_others=bool(found) and not asks_everyone and bool(_WORDS.search(visible, 0, found[0][1])),
        )

    def _in(self, visible: str) -> Iterator[tuple[str, int]]:
        """Yield every name that is mentioned, once, and where its "@" is."""
        beginning = len(visible) - len(visible.lstrip())
        seen: set[str] = set()
        for at in _AT.finditer(visible):
            word = self._spellings.named_at(visible, at.end()) or self._everyone_at(visible, at.end())
            is_name = bool(word)
            if not word:
                found = _WORD.match(visible, at.end())
                word = found[0] if found and len(found[0]) <= LONGEST_NAME else ""
            if not word or word in seen:
                continue
            seen.add(word)
            if is_name or at.start() == beginning or self._is_nearly_a_name(word):
                yield word, at.start()
            if len(seen) > MOST_WORDS:
                return

    def _everyone_at(self, visible: str, start: int) -> str:
        found = _EVERYONE.match(visible, start)
        return found[0] if found and self._resolver.is_everyone(found[0]) else ""

    def _is_nearly_a_name(self, word: str) -> bool:
        """Return whether a word is probably a misspelled name, and not an identifier such as maxLength or max_size."""
        from difflib import get_close_matches

        is_plain = "_" not in word and word[1:] == word[1:].lower()
        return is_plain and bool(get_close_matches(word.casefold(), self._names, n=1, cutoff=NEARLY))


def _without_markers(text: str, markers: Markers) -> str:
    """Return a text of the same length without code, quotes and markers. A team task may mention anybody."""
    visible = hide_code(text)
    pieces, done = [], 0
    for marker in markers:
        pieces += [visible[done : marker.start], HIDDEN * (marker.end - marker.start)]
        done = marker.end
    return "".join([*pieces, visible[done:]])
