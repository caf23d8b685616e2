"""How members' names are written in prose, and which member a wrong name probably means."""

import re
from collections.abc import Iterable, Iterator, Sequence

from bullpen.team.team import Member
from bullpen.text.names import nearest, normalized
from bullpen.text.patterns import pattern

# Words that agents use for nobody in particular. A member with such a name is only addressed with an "@".
_NOBODY = pattern(
    "all|anybody|anyone|done|end|everybody|everyone|he|her|him|human|i|it|me|myself|na|name|next|nobody|none|noone|null|"
    "self|she|stop|tbd|team|them|they|this|us|user|we|whoever|you|你|我|他|她|大家|所有人|用户|无|待定"
)

Named = tuple[re.Match[str], str]
"""A match of a member's name in a text, and the member."""

SHORT_NAME = 2
LONGEST_NAME = 120
"""A marker may contain "sarah – please review", but not a page of text."""

# A letter that would make a name part of a longer word. Chinese is written without spaces: 交给Max处理.
LETTER = r"(?-i:[^\W\u2e80-\u9fff\uac00-\ud7af])"
NAME_ENDS = rf"(?!{LETTER}|[(@]|[./\\-]{LETTER})"
"""What may not follow a name: the rest of a word, an address, a path or a call."""
_SEPARATORS = pattern(r"[\s_\-.]+")
_NOT_A_LIST = pattern(r"\b(?:or|not|but|except)\b|或|不", re.IGNORECASE)


class Spellings:
    """The names and display names of some members. A spelling that two of them share matches neither."""

    def __init__(self, members: Iterable[Member]) -> None:
        self._members = tuple(members)
        self._names = _names_by_spelling(self._members)
        self._pattern = _names_pattern(spelling for member in self._members for spelling in _spellings(member))

    def named_in(self, text: str) -> Iterator[Named]:
        """Yield every match of a member's name in a text, with the member."""
        for match in self._pattern.finditer(text):
            if name := self._names.get(normalized(match[0])):
                yield match, name

    def named_at(self, text: str, start: int) -> str | None:
        """Return the member whose name is at this place in a text."""
        match = self._pattern.match(text, start)
        return None if match is None else self._names.get(normalized(match[0]))

    def meant_by(self, wrong_name: str) -> tuple[str, ...]:
        """Return whom a wrong name means: "sarah please review", "max and sarah", a role, a typo."""
        if len(wrong_name) > LONGEST_NAME:
            return ()
        if named := tuple(dict.fromkeys(name for _, name in self.named_in(wrong_name))):
            return () if _NOT_A_LIST.search(wrong_name) else named
        key = normalized(wrong_name)
        if not key or _NOBODY.fullmatch(key):
            return ()
        described = {member.name for member in self._members if key in (normalized(member.role), member.agent)}
        similar = {self._names[spelling] for spelling in nearest(wrong_name, self._names)}
        longer = {
            name for spelling, name in self._names.items() if len(spelling) > SHORT_NAME and key.startswith(spelling)
        }
        return next((tuple(meant) for meant in (described, similar, longer) if len(meant) == 1), ())


def _names_by_spelling(members: Sequence[Member]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for member in members:
        for spelling in _spellings(member):
            found.setdefault(normalized(spelling), set()).add(member.name)
    # A name takes precedence over a display name, as in the Resolver.
    exact = {normalized(member.name): member.name for member in members}
    return {spelling: next(iter(names)) for spelling, names in found.items() if len(names) == 1} | exact


def _spellings(member: Member) -> set[str]:
    """Return the names of a member; "Sarah (backend)" is also called Sarah."""
    names = {member.name, member.display_name, member.display_name.partition("(")[0].strip()}
    return {name for name in names if normalized(name)}


def _names_pattern(spellings: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for names in prose: not in a longer word, an address, a path, a call or an option."""
    longest_first = sorted(set(spellings), key=lambda spelling: (-len(spelling), spelling))
    names = "|".join(map(_name_pattern, longest_first)) or "(?!)"
    return pattern(rf"(?<!{LETTER})(?<!{LETTER}@)(?<![./\\$#-])(?:{names}){NAME_ENDS}", re.IGNORECASE)


def _name_pattern(spelling: str) -> str:
    """Return a pattern for one name. A short name is case-sensitive: with a member IS, the word "is" does not match."""
    if _NOBODY.fullmatch(normalized(spelling)):
        return f"(?<=@){re.escape(spelling)}"
    if len(spelling) <= SHORT_NAME and spelling.isascii():
        return f"(?-i:{'|'.join(sorted({re.escape(spelling), re.escape(spelling.capitalize())}))})"
    return r"[\s_.-]?".join(re.escape(word) for word in _SEPARATORS.split(spelling) if word)
