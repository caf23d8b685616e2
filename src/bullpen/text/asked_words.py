"""What an agent asks, in a few words on one line."""

from bullpen.text.visible import visible
from bullpen.turn_events import ApprovalAsked

MOST_CHARACTERS = 80


def words_of(asked: ApprovalAsked) -> str:
    """Return the beginning of what is asked."""
    if asked.kind == "question":
        return few(asked.why)
    return few(asked.command or ", ".join(asked.paths) or asked.tool)


def few(text: str) -> str:
    """Return the beginning of a text on one line, with everything written out that would not be seen."""
    words = visible(" ".join(text[: 4 * MOST_CHARACTERS].split()))
    return words if len(words) <= MOST_CHARACTERS else f"{words[: MOST_CHARACTERS - 1]}…"
