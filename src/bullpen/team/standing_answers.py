"""What people have allowed a team's members once and for all: in a file of ours, never in a CLI's own.

Each is exactly what was asked for, at exactly that place: a command, the files of an edit, the input of a tool.
"""

import json
from pathlib import Path
from typing import Any

import msgspec

from bullpen import config
from bullpen.team.approval_rules import is_like
from bullpen.team.kept_file import KeptFile
from bullpen.turn_events import ApprovalAsked


class StandingAnswers:
    """What was allowed to the members of one team."""

    def __init__(self, team: Path, file: Path | None = None) -> None:
        self._team = str(team.absolute())
        self._file = KeptFile(file or config.standing_answers_file())

    def holds(self, member: str, asked: ApprovalAsked) -> bool:
        """Return whether exactly this is allowed to a member. If the file cannot be read, nothing is."""
        return any(is_like(asked, before) for before in self._of(member))

    def remember(self, member: str, asked: ApprovalAsked) -> None:
        """Allow this to a member from now on."""
        # Neither what it was for, nor how a file would have changed: the next time may be another one.
        kept = msgspec.to_builtins(msgspec.structs.replace(asked, id="", why="", diff=""))

        def added(content: Any) -> Any:
            teams = content if isinstance(content, dict) else {}
            members = teams.setdefault(self._team, {})
            before = members.setdefault(member, [])
            if kept not in before:
                before.append(kept)
            return teams

        self._file.change(added)

    def _of(self, member: str) -> list[ApprovalAsked]:
        try:
            return msgspec.convert(self._file.read()[self._team][member], list[ApprovalAsked])
        except (OSError, ValueError, RecursionError, KeyError, TypeError, json.JSONDecodeError, msgspec.MsgspecError):
            return []
