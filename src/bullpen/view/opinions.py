"""Opinions: what agents say about a change, and their verdicts, as every door reads them."""

from msgspec import Struct

from bullpen.markers.grammar import Verdict, read_markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.messages import ConversationMessage
from bullpen.routing.reviews import verdict_of


class Opinion(Struct, frozen=True, kw_only=True):
    """What one agent says."""

    member: str
    text: str
    """Without markers."""
    verdict: Verdict | None
    """None: that is not clear."""


def opinion(message: ConversationMessage) -> Opinion:
    """Return the opinion in a reply: what [VERDICT: …] says, else what its words do; unclear if several differ."""
    verdict = verdict_of(message.content, read_markers(message.content))
    return Opinion(member=message.speaker.role_id, text=strip_all_markers(message.content).strip(), verdict=verdict)
