"""Notices: what bullpen itself says, as one line, what is below it, and the diffs that it points to."""

from collections.abc import Iterator

from msgspec import Struct

from bullpen.markers.stripping import text_for_people
from bullpen.messages import ConversationMessage
from bullpen.routing.summaries import covered_by
from bullpen.team.team import BULLPEN
from bullpen.text.patterns import pattern

_DIFF = pattern(r"(?:The diff: )?/diff ([0-9](?:[0-9.,]*[0-9])?)(?:, or bullpen diff [0-9.,]*[0-9])?")


class Words(Struct, frozen=True):
    """A part of a text."""

    text: str
    turns: str = ""
    """If it names the diff of turns, so that a door can lead there: which turns, as /diff takes them."""


class Notice(Struct, frozen=True, kw_only=True):
    """A message of bullpen."""

    line: str
    rest: str
    """What unfolds; often nothing."""


def notice_of(message: ConversationMessage) -> Notice | None:
    """Return a message as a notice, or None if bullpen did not say it, or if it is a summary."""
    is_ours = message.speaker.type == "system" and message.speaker.role_id == BULLPEN
    if not is_ours or covered_by(message) is not None:
        return None
    line, _, rest = text_for_people(message.content).partition("\n")
    return Notice(line=line, rest=rest.strip("\n"))


def words_with_diffs(text: str) -> Iterator[Words]:
    """Yield the parts of a text of bullpen: plain words, and the diffs that it tells people to look at."""
    end = 0
    for found in _DIFF.finditer(text):
        before, turns = text[end : found.start()], found[1]
        the = "The" if before.strip()[-1:] in ("", ".") else "the"
        yield Words(before)
        yield Words(f"{the} diff of {'turn' if turns.isdigit() else 'turns'} {turns}", turns)
        end = found.end()
    yield Words(text[end:])
