"""What Tab completes, in the form that the line editor wants."""

from collections.abc import Sequence

from bullpen.team.team import Team
from bullpen.view.completion import options_for


class Completion:
    """Completes for one team."""

    def __init__(self, team: Team, commands: Sequence[str]) -> None:
        self._names = {member.name: member.role for member in team.members}
        self._commands = dict.fromkeys(sorted(commands), "")

    def __call__(self, before: str) -> tuple[str, Sequence[str]]:
        """Return the piece before the cursor, and what it could become."""
        options = options_for(before, self._names, self._commands)
        piece = before[len(before) - options[0].replaces :] if options else ""
        return piece, [option.insert for option in options]
