"""Missed hand-overs: a reply that seems to hand over but has no working marker.

The reply is delivered as it is; people see what was probably meant, with one key to do it. That interrupts them, so
when in doubt nothing is suggested.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from bullpen.markers.code import HIDDEN, hide_code
from bullpen.markers.grammar import Markers, read_markers
from bullpen.routing.hand_over_phrases import STAND_IN, hand_overs, is_address, is_request
from bullpen.routing.last_sentences import Sentence, escaped_marker, last_sentences, marker_in_code
from bullpen.routing.name_patterns import Named, Spellings
from bullpen.routing.resolver import Resolver
from bullpen.team.reach import reach
from bullpen.team.team import Member, Team

Kind = Literal["in_code", "misspelled", "in_words"]
Clue = tuple[Kind, list[str], str]
"""How it was written, who is probably meant, and the quote; no names if nobody is."""

LONGEST_QUOTE = 120
MOST_NAMES = 20

_CODE = re.compile(f"(?<!`)`*+{HIDDEN}[{HIDDEN}`]*+")


class MissedHandOver(Struct, frozen=True, kw_only=True):
    """What a member probably meant, and the words that suggest it."""

    sender: str
    members: tuple[str, ...]
    kind: Kind
    quote: str
    needs_yes: bool = False
    """Whether the sender reaches one of them only with a person's yes."""

    @property
    def sentence(self) -> str:
        """What happened, for people."""
        match self.kind:
            case "in_code":
                return f"{self.sender} wrote {self.quote} only in code."
            case "misspelled" if self.quote.startswith("\\"):
                return f"{self.sender} wrote {self.quote}, but the backslashes turn it into plain text."
            case "misspelled":
                meant = " and ".join(self.members)
                return f"{self.sender} wrote {self.quote}; nobody here is called that. It probably means {meant}."
            case "in_words":
                return f"{self.sender} wrote “{self.quote}” without [NEXT: {', '.join(self.members)}]."


def missed_hand_over(
    text: str, sender: Member, team: Team, *, markers: Markers | None = None, returns_to: str | None = None
) -> MissedHandOver | None:
    """Return the hand-over that a reply probably meant to make; None if a marker names a member.

    `returns_to` is the person that the reply returns to anyway: handing over only to them changes nothing.
    """
    markers = markers or read_markers(text)
    if any(map(Resolver(team).members_called, dict.fromkeys(markers.addressees))):
        return None
    for kind, names, quote in _clues(text, markers, sender, team):
        members = tuple(dict.fromkeys(name for name in names if _may_hand_over(sender, name)))
        if members and members != (returns_to,):
            needs_yes = any(reach(sender, team.member(name)) == "if_allowed" for name in members)
            return MissedHandOver(
                sender=sender.name, members=members, kind=kind, quote=_shortened(quote), needs_yes=needs_yes
            )
    return None


def misspelled_name(text: str, person: Member, team: Team, markers: Markers) -> MissedHandOver | None:
    """Return whom a person's message probably names, if it names nobody in the team."""
    kind, names, quote = _misspelled(text, markers, Spellings(team.members))
    members = tuple(dict.fromkeys(name for name in names if _may_hand_over(person, name)))
    if not members:
        return None
    quote = quote or ", ".join(f"@{name}" for name in markers.addressees)
    return MissedHandOver(sender=person.name, members=members, kind=kind, quote=_shortened(quote))


def _may_hand_over(sender: Member, name: str) -> bool:
    return name != sender.name and (sender.may_address is None or name in sender.may_address)


def _shortened(quote: str) -> str:
    quote = " ".join(quote[: 2 * LONGEST_QUOTE].split())
    return quote if len(quote) <= LONGEST_QUOTE else f"{quote[: LONGEST_QUOTE - 1]}…"


def _clues(text: str, markers: Markers, sender: Member, team: Team) -> Iterator[Clue]:
    """Yield what a reply may mean, the most certain first."""
    visible = hide_code(text)
    yield _misspelled(text, markers, Spellings(team.members))
    yield _escaped(text, visible, Resolver(team))
    yield _in_code(text, visible, Resolver(team))
    yield _in_words(text, visible, Spellings(_addressable(sender, team)))


def _addressable(sender: Member, team: Team) -> list[Member]:
    """Return whom words may hand over to: not the only person, since a reply returns to them anyway."""
    return [member for member in team.members if member != sender and team.people != (member,)]


def _misspelled(text: str, markers: Markers, spellings: Spellings) -> Clue:
    wrong_names = list(dict.fromkeys(markers.addressees))[:MOST_NAMES]
    names = [meant for name in wrong_names for meant in spellings.meant_by(name)]
    quote = next((text[marker.start : marker.end] for marker in markers if marker.kind == "next"), "")
    return "misspelled", names, quote


def _escaped(text: str, visible: str, resolver: Resolver) -> Clue:
    quote = escaped_marker(text, visible)
    return "misspelled", _addressed_by(quote.replace("\\", ""), resolver), quote


def _in_code(text: str, visible: str, resolver: Resolver) -> Clue:
    quote = marker_in_code(text, visible)
    return "in_code", _addressed_by(quote, resolver), quote


def _addressed_by(marker: str, resolver: Resolver) -> list[str]:
    found = map(resolver.members_called, read_markers(marker).addressees)
    return [members[0].name for members in found if len(members) == 1]


def _in_words(text: str, visible: str, spellings: Spellings) -> Clue:
    names: list[str] = []
    quote = ""
    for sentence, in_list in _addressed(last_sentences(text, visible), spellings):
        named = list(spellings.named_in(sentence))
        for found in hand_overs(_with_stand_ins(sentence, named)) if named else ():
            # A list item with a name is usually a plan; with an "@" it addresses somebody.
            if in_list and not found["who"].startswith("@"):
                continue
            first = found.string.count(STAND_IN, 0, found.start("who"))
            names += [name for _, name in named[first : first + found["who"].count(STAND_IN)]]
            quote = quote or _quoted(found, named)
    return "in_words", names, quote


def _addressed(sentences: Iterable[Sentence], spellings: Spellings) -> Iterator[tuple[str, bool]]:
    """Yield the sentences, each with whether it is in a list. "@sarah Done. Please review." asks Sarah to review."""
    addressee = ""
    for sentence in sentences:
        text = sentence.text
        if sentence.begins_paragraph:
            named = next(spellings.named_in(text), None)
            addressee = text[: named[0].end()] if named and is_address(text, named[0].span()) else ""
        elif addressee and is_request(text):
            text = f"{addressee}, … {text}"
        yield text, sentence.in_list


def _with_stand_ins(sentence: str, named: list[Named]) -> str:
    ends = [0, *(match.end() for match, _ in named)]
    starts = [*(match.start() for match, _ in named), len(sentence)]
    return STAND_IN.join(sentence[end:start] for end, start in zip(ends, starts, strict=True))


def _quoted(found: re.Match[str], named: list[Named]) -> str:
    """Return the words from a hand-over to the end of its sentence, with the names restored and without code."""
    first = found.string.count(STAND_IN, 0, found.start())
    spelled = (match[0] for match, _ in named[first:])
    words = re.sub(STAND_IN, lambda _: next(spelled), found.string[found.start() :])
    return _CODE.sub("…", words).strip(" ,;:.。，；：—–-→>(")
