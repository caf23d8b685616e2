"""One conversation: say → route → prompt → run → say. loop.py is the place to begin."""
