"""One conversation: say → route → prompt → run → say. Start with conversation.py."""
