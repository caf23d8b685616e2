"""LiveConversation: an open conversation and what all its pages share, so that it is rendered only once."""

import secrets
from collections.abc import Callable

from msgspec.structs import replace

from bullpen.conversation.conversation import Conversation
from bullpen.view.state import ConversationView, conversation_view
from bullpen.web.page_feed import PageFeed


class LiveConversation:
    """One open conversation and what its pages are sent."""

    def __init__(self, conversation: Conversation, on_state: Callable[[ConversationView], None]) -> None:
        self.conversation = conversation
        self.epoch = secrets.token_hex(4)
        """Numbers of events and frames start again whenever a conversation is opened; the epoch distinguishes them."""
        self.feed = PageFeed(conversation, self.view, on_state)

    def view(self) -> ConversationView:
        """Return the state of the conversation."""
        view = conversation_view(self.conversation, self.epoch)
        # What another process has taken cannot be decided here.
        return replace(view, is_open=False, decisions=()) if self.conversation.is_lost else view
