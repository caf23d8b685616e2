"""SecondPress: what cannot be undone happens when its key is pressed a second time."""

import time

QUESTION_SECONDS = 5.0
"""How long the question is open."""


class SecondPress:
    """Remembers what was asked last."""

    def __init__(self) -> None:
        self._asked = ""
        self._asked_at = float("-inf")

    def confirms(self, question: str) -> bool:
        """Return whether this was asked a moment ago, so that it may be done; else it is asked now."""
        now = time.monotonic()
        is_second = question == self._asked and now - self._asked_at <= QUESTION_SECONDS
        self._asked, self._asked_at = ("", float("-inf")) if is_second else (question, now)
        return is_second
