"""Opinions: what agents say about a change, and their verdicts, as every door reads them."""

from msgspec import Struct

from bullpen.markers.grammar import Verdict, read_markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.messages import ConversationMessage
from bullpen.routing.verdict_words import verdict_in_words


class Opinion(Struct, frozen=True, kw_only=True):
    """What one agent says."""

    member: str
    text: str
    """Without markers."""
    verdict: Verdict | None
    """None: that is not clear."""


def opinion(message: ConversationMessage) -> Opinion:
    """Return the opinion in a reply: what [VERDICT: …] says, else what its words do; unclear if several differ."""
    verdicts = set(read_markers(message.content).verdicts)
    verdict = verdict_in_words(message.content) if not verdicts else verdicts.pop() if len(verdicts) == 1 else None
    text = strip_all_markers(message.content).strip()
    return Opinion(member=message.speaker.role_id, text=text, verdict=verdict)
