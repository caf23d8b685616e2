"""Our colours: who speaks, what matters, what does not. Off where nobody would see them."""

import os
from typing import TextIO

from bullpen.team.team import Team, colours_of

CODES = {
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "white": "37",
    "bold": "1",
    "dim": "2",
}
RESET = "\x1b[0m"


class Colours:
    """Colours texts that are already safe."""

    def __init__(self, team: Team | None, *, on: bool) -> None:
        self._on = on
        self._of_member = colours_of(team) if team else {}

    def paint(self, text: str, *styles: str) -> str:
        """Return the text in a style, or as it is."""
        codes = ";".join(CODES[style] for style in styles if style)
        return f"\x1b[{codes}m{text}{RESET}" if self._on and text and codes else text

    def member(self, name: str, text: str | None = None) -> str:
        """Return a member's name in its colour."""
        return self.paint(name if text is None else text, "bold", self._of_member.get(name, ""))


def wants_colours(stream: TextIO) -> bool:
    """Return whether colours are possible and wanted: https://no-color.org."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
