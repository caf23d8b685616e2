"""What Tab completes: commands, and the names of members where names belong."""

import re
from collections.abc import Sequence

from bullpen.team import Team

_MARK = re.compile(r"\[(?:NEXT|DROP|FROM)\s*:\s*(?:[^\]\n]*[,&|]\s*)?(?P<piece>[^\],&|\n]*)\Z", re.IGNORECASE)
_AT = re.compile(r"(?:^|\s)@(?P<piece>[^\s@]*)\Z")
_COMMAND = re.compile(r"\A/(?P<piece>\w*)\Z")
_ARGUMENT = re.compile(r"\A/(?:next|drop|hand|prompt)\s+(?:.*[,&]\s*)?(?P<piece>[^,&\n]*)\Z")


class Completion:
    """Completes for one team."""

    def __init__(self, team: Team, commands: Sequence[str]) -> None:
        self._names = tuple(member.name for member in team.members)
        self._commands = tuple(sorted(commands))

    def __call__(self, before: str) -> tuple[str, Sequence[str]]:
        """Return the piece before the cursor, and what it could become."""
        if found := _COMMAND.search(before):
            return found["piece"], [f"{name} " for name in _beginning(self._commands, found["piece"])]
        if found := _ARGUMENT.search(before) or _AT.search(before):
            return found["piece"], _beginning(self._names, found["piece"])
        if found := _MARK.search(before):
            names = _beginning(self._names, found["piece"])
            return found["piece"], [f"{names[0]}]"] if len(names) == 1 else names
        return "", ()


def _beginning(words: Sequence[str], piece: str) -> list[str]:
    return [word for word in words if word.lower().startswith(piece.lower())]
