"""An agent with many turns: each has a script of its own, and each prompt is kept.

Its folder has script-1 and so on, and script for all further turns; without one the agent says its name and the number
of its turn. The prompt of the first turn is kept in prompt-1, which is there as soon as the turn begins.
"""

import os

from bullpen.testing.agent.quick_json import to_json
from bullpen.testing.agent.streams import write

NOBODY_ELSE = 0o600
MOST_TURNS = 1_000_000


class Turn:
    """The next turn of the agent with this folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.number, self._prompt = _next(folder)

    @property
    def script(self) -> str:
        """The file with the steps, or the steps themselves."""
        for name in (f"script-{self.number}", "script"):
            if os.access(f"{self._folder}/{name}", os.R_OK):
                return f"{self._folder}/{name}"
        name = self._folder.rpartition("/")[2]
        return to_json([{"say": f"{name}:{self.number} says so."}])

    def keep(self, prompt: bytes) -> None:
        """Keep the prompt."""
        write(prompt, self._prompt)
        os.close(self._prompt)


def _next(folder: str) -> tuple[int, int]:
    """Return the number of the next turn, and the open file for its prompt."""
    for number in range(1, MOST_TURNS):
        try:
            return number, os.open(f"{folder}/prompt-{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, NOBODY_ELSE)
        except FileExistsError:
            continue
    raise AssertionError
