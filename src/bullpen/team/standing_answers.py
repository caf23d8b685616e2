"""What people have allowed a team's members once and for all: in a file of ours, never in a CLI's own.

Each is exactly what was asked for, at exactly that place: a command, an edit, the input of a tool.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from bullpen import config
from bullpen.team.answer_scopes import may_hold_longer
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
        return may_hold_longer(asked) and any(is_like(asked, before) for before in self._of(member))

    def wider(self) -> dict[str, list[ApprovalAsked]]:
        """Return what is kept that is wider than what was shown, by member: any change of a file, a file elsewhere."""
        found = {member: [one for one in self._of(member) if is_wider(one)] for member in self._members()}
        return {member: some for member, some in found.items() if some}

    def take_back_wider(self, member: str, asked: ApprovalAsked) -> bool:
        """Forget what is kept that is wider than this question; return whether there was anything."""
        kept = self._of(member)
        left = [one for one in kept if not (is_wider(one) and is_like(replace(asked, diff=one.diff), one))]
        if left == kept:
            return False

        def without(content: Any) -> Any:
            content[self._team][member] = list(map(_kept, left))
            return content

        self._file.change(without)
        return True

    def remember(self, member: str, asked: ApprovalAsked) -> None:
        """Allow this to a member from now on."""
        kept = _kept(asked)

        def added(content: Any) -> Any:
            teams = content if isinstance(content, dict) else {}
            members = teams.setdefault(self._team, {})
            before = members.setdefault(member, [])
            if kept not in before:
                before.append(kept)
            return teams

        self._file.change(added)

    def _members(self) -> list[str]:
        try:
            return list(self._file.read()[self._team])
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return []

    def _of(self, member: str) -> list[ApprovalAsked]:
        try:
            return msgspec.convert(self._file.read()[self._team][member], list[ApprovalAsked])
        except (OSError, ValueError, RecursionError, KeyError, TypeError, json.JSONDecodeError, msgspec.MsgspecError):
            return []


def is_wider(kept: ApprovalAsked) -> bool:
    """Return whether an earlier version kept more than was shown: any change of a file, or what is elsewhere."""
    return (kept.kind == "edit" and not kept.diff) or not may_hold_longer(kept)


def _kept(asked: ApprovalAsked) -> Any:
    return msgspec.to_builtins(replace(asked, id="", why=""))
