"""TurnAgents: which agent takes a turn, and where: in its folder, or apart from others that do the same task."""

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.state import ConversationState
from bullpen.files.own_paths import candidate_path
from bullpen.files.place import find_place
from bullpen.files.worktree import why_no_worktree
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import candidate_of, is_judges
from bullpen.team.team import Member

NO_FILES = "this conversation does not keep files"


class TurnAgents:
    """The agents of a team, each as it is in one turn."""

    def __init__(self, agents: Mapping[str, MemberAgent], state: ConversationState, home: Path | None) -> None:
        """`home` is the folder in which worktrees are; None if there are none."""
        self.of_members = agents
        self._state = state
        self._home = home
        self._can_be_apart: set[Path] = set()

    def of(self, turn: WaitingTurn) -> MemberAgent:
        """Return the agent of a turn."""
        agent, rounds = self.of_members[turn.member], self._state.progress.rounds
        shared = agent.shared or agent.folder
        if is_judges(rounds, turn.id):
            # It only picks.
            member = replace(agent.member, permissions="read-only", allow=(), workspace="shared")
            return replace(agent, member=member, folder=shared, shared=None)
        candidate = candidate_of(rounds, turn.id)
        if candidate is None or self._home is None or not may_change_files(agent):
            return agent
        own = candidate_path(self._home, self._state.conversation_id, turn.member, candidate.place)
        return replace(agent, folder=own / _place_in(shared), shared=shared)

    def is_apart(self, turn: WaitingTurn) -> bool:
        """Return whether a turn is one of best of several, which leaves no trace in a member's own session."""
        rounds = self._state.progress.rounds
        return is_judges(rounds, turn.id) or candidate_of(rounds, turn.id) is not None

    def why_not_apart(self, member: Member) -> str:
        """Return why a member cannot work in a worktree for one turn, and what to do about it; nothing if it can."""
        agent = self.of_members.get(member.name)
        if member.pool and member.permissions != "read-only":
            return f"{member.name} cannot do the task apart from the others: it runs on other machines."
        if agent is None or not may_change_files(agent):
            return ""
        shared = agent.shared or agent.folder
        if self._home is not None and shared in self._can_be_apart:
            return ""
        if reason := NO_FILES if self._home is None else why_no_worktree(shared):
            return f"{member.name} cannot do the task apart from the others: {reason}."
        self._can_be_apart.add(shared)
        return ""


def may_change_files(agent: MemberAgent) -> bool:
    """Return whether an agent may change files."""
    return agent.member.permissions != "read-only"


def _place_in(shared: Path) -> Path:
    return Path(os.path.realpath(shared)).relative_to(find_place(shared).root)
