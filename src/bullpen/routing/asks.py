"""What agents ask people in their replies: [ASK: yes | no | later]. Plain data."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from bullpen.markers.grammar import Markers
from bullpen.markers.stripping import strip_all_markers

MOST_WORDS = 300
"""Characters of what an agent said that are kept beside the answers that it offers, from its end."""


class OpenAsk(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reply of an agent with the answers that it offers."""

    member: str
    choices: tuple[str, ...]
    words: str = ""
    """The end of what it said."""
    at: int = 0


Asks = Mapping[str, OpenAsk]
"""By the turns of the replies."""


def new_asks(member: str, text: str, markers: Markers, turn_id: str, at: int) -> dict[str, OpenAsk]:
    """Return what a reply asks people."""
    if not markers.ask:
        return {}
    words = strip_all_markers(text)
    kept = words if len(words) <= MOST_WORDS else f"…{words[1 - MOST_WORDS :]}"
    return {turn_id: OpenAsk(member=member, choices=markers.ask, words=kept, at=at)}


def asks_without(asks: Asks, members: Iterable[str]) -> dict[str, OpenAsk]:
    """Return what is still asked after members were answered, or have spoken again."""
    over = frozenset(members)
    return {turn: ask for turn, ask in asks.items() if ask.member not in over}
