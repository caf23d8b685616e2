"""What an agent asks, in a few words on one line."""

from bullpen.text.visible import visible
from bullpen.turn_events import ApprovalAsked

MOST_CHARACTERS = 80
NEW_LINE = " ⏎ "


def words_of(asked: ApprovalAsked) -> str:
    """Return what is asked, shortened in the middle."""
    if asked.kind == "question":
        return few(asked.why)
    return few(asked.command or ", ".join(asked.paths) or asked.tool)


def few(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the beginning and the end of a text on one line, with everything written out that would not be seen.

    The end of a command may be what matters, and so may a line of it: blanks hide neither.
    """
    lines = (" ".join(line.split()) for line in text.splitlines())
    words = visible(NEW_LINE.join(line for line in lines if line))
    if len(words) <= most:
        return words
    end = most // 2
    return f"{words[: most - end - 1]}…{words[-end:]}"
