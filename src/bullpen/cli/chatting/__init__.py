"""The chat: the line that a person writes in, and what can be typed there."""
