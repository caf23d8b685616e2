"""The light stream: one for each browser, which tells all its tabs, hidden ones too, where a person is needed."""

import msgspec
from msgspec import Struct

from bullpen.view.activity import ACTIVITIES
from bullpen.view.attention import Attention, attention
from bullpen.view.state import ConversationView
from bullpen.web.frames import Frames, server_sent


class Needed(Struct, frozen=True, kw_only=True):
    """How much one conversation needs a person, as pages get it."""

    id: str
    title: str
    count: int
    text: str
    sign: str = ""
    """Of what it does now."""


class AttentionFeed:
    """Knows where people are needed in the conversations that are open here; on a node, another one knows of all."""

    def __init__(self, also: "AttentionFeed | None" = None) -> None:
        self.frames = Frames()
        self._also = also
        """Another one that is to know the same, among other things."""
        self._known: dict[str, Needed] = {}

    def update(self, view: ConversationView) -> None:
        """Take the new state of a conversation, and tell every browser if that changes anything."""
        self._tell(view.id, view.title, attention(view))

    def forget(self, conversation_id: str) -> None:
        """Take that a conversation was closed here."""
        if conversation_id in self._known:
            self._tell(conversation_id, self._known.pop(conversation_id).title, Attention())

    def snapshot(self) -> bytes:
        """Return everything that is known, for a browser that begins to listen."""
        return b"".join(server_sent("attention", msgspec.json.encode(one)) for one in self._known.values())

    def _tell(self, conversation_id: str, title: str, now: Attention) -> None:
        self.take(
            Needed(id=conversation_id, title=title, count=now.count, text=now.text, sign=ACTIVITIES[now.activity].sign)
        )

    def take(self, needed: Needed) -> None:
        """Take how much a conversation needs a person, here or on another node."""
        if self._known.get(needed.id) != needed:
            self._known[needed.id] = needed
            self.frames.publish("attention", msgspec.json.encode(needed))
        if self._also is not None:
            self._also.take(needed)
