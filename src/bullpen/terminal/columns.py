"""How many columns a text takes on a terminal."""

import unicodedata


def width(text: str) -> int:
    """Return how many columns a text takes: Chinese and emoji take two."""
    return len(text) if text.isascii() else sum(map(letter_width, text))


def letter_width(letter: str) -> int:
    """Return how many columns one character takes; those that only change the one before them take none."""
    if letter < "\u0300":
        return 1
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def cut(text: str, room: int) -> str:
    """Return as much of a text as there is room for, with a mark if that is not all."""
    if width(text) <= room:
        return text
    kept, taken = [], 0
    for letter in text:
        taken += letter_width(letter)
        if taken > room - 1:
            break
        kept.append(letter)
    return "".join(kept).rstrip() + "…"
