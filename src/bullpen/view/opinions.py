"""Opinions: what agents say about a change, and their verdicts, as every door reads them."""

from msgspec import Struct

from bullpen.markers.grammar import Verdict, read_markers
from bullpen.markers.stripping import strip_all_markers
from bullpen.messages import ConversationMessage
from bullpen.routing.reviews import verdict_of
from bullpen.routing.verdict_words import verdict_in_words


class Opinion(Struct, frozen=True, kw_only=True):
    """What one agent says."""

    member: str
    text: str
    """Without markers."""
    verdict: Verdict | None
    """None: that is not clear."""


def opinion(message: ConversationMessage) -> Opinion:
    """Return the opinion in a reply: only [VERDICT: approve] at its end approves, and any words may be a veto.

    What a change itself says and a reply repeats must not take a veto away.
    """
    markers = read_markers(message.content)
    is_veto = "changes" in (*markers.verdicts, verdict_in_words(message.content))
    verdict: Verdict | None = "changes" if is_veto else verdict_of(message.content, markers)
    return Opinion(member=message.speaker.role_id, text=strip_all_markers(message.content).strip(), verdict=verdict)
