"""SecondPress: what cannot be undone happens when its key is pressed a second time."""

from bullpen.clock import monotonic

QUESTION_SECONDS = 5.0
"""How long the question is open."""


class SecondPress:
    """Remembers what was asked last."""

    def __init__(self) -> None:
        self._asked = ("", "")
        self._asked_at = float("-inf")

    def confirms(self, question: str, about: str = "") -> bool:
        """Return whether this was asked a moment ago, so that it may be done; else it is asked now.

        `about` tells what would be done from what is asked about in the same words.
        """
        now = monotonic()
        is_second = (question, about) == self._asked and now - self._asked_at <= QUESTION_SECONDS
        self._asked, self._asked_at = (("", ""), float("-inf")) if is_second else ((question, about), now)
        return is_second
