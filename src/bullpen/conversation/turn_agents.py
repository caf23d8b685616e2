"""TurnAgents: which agent takes a turn, and where: in its folder, or apart from others that do the same task."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from bullpen.agents.registry import is_restricted
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.state import ConversationState
from bullpen.files.worktrees import Worktrees
from bullpen.routing.blind import blind_of
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.rounds import candidate_of
from bullpen.team.team import Member

NOBODY: Mapping[tuple[str, str], MemberAgent] = {}
NO_FILES = "this conversation does not keep files"


class TurnAgents:
    """The agents of a team, each as it is in one turn."""

    def __init__(
        self,
        agents: Mapping[str, MemberAgent],
        state: ConversationState,
        worktrees: Worktrees | None,
        stand_ins: Mapping[tuple[str, str], MemberAgent] = NOBODY,
    ) -> None:
        """Without worktrees, nobody can be apart. Stand-ins are agents in the roles of members, by both names."""
        self.of_members = agents
        self._stand_ins = stand_ins
        self._chosen: dict[str, str] = {}
        self._state = state
        self._worktrees = worktrees
        self._can_be_apart: set[Path] = set()

    def of(self, turn: WaitingTurn) -> MemberAgent:
        """Return the agent of a turn."""
        agent, progress = self._program(turn), self._state.progress
        shared = agent.shared or agent.folder
        if progress.only_reads(turn.id):
            # It only picks, or sums up.
            member = replace(agent.member, permissions="read-only", allow=(), workspace="shared")
            if turn.id in progress.summing:
                # It may know nothing but the messages that it sums up, so it can look nothing up.
                member = replace(member, tools=False)
            return replace(agent, member=member, folder=shared, shared=None)
        candidate, worktrees = candidate_of(progress.rounds, turn.id), self._worktrees_for(agent)
        if candidate is None or worktrees is None or not may_change_files(agent):
            return agent
        folder = worktrees.folder(turn.member, shared, candidate.place)
        return replace(agent, folder=folder, shared=shared, apart=candidate.place)

    def choose(self, turn: WaitingTurn, by: str) -> None:
        """Note who takes a turn that is about to begin: the member itself, or a stand-in."""
        self._chosen[turn.id] = by

    def chosen(self, turn: WaitingTurn) -> str:
        """Return who has a turn: the member itself, or a stand-in, by its name in the team file."""
        return self._chosen.get(turn.id) or self._state.progress.stand_ins.get(turn.id, turn.member)

    def stand_in(self, turn: WaitingTurn) -> str:
        """Return who stands in for a turn's member, by its name in the team file; nothing if nobody does."""
        by = self.chosen(turn)
        return "" if by == turn.member else by

    def stand_ins_of(self, turn: WaitingTurn) -> list[MemberAgent]:
        """Return the stand-ins of a turn's member, in its role."""
        return [agent for (member, by), agent in self._stand_ins.items() if member == turn.member and by != member]

    def forget(self, turn: WaitingTurn) -> None:
        """Forget a turn that has ended."""
        self._chosen.pop(turn.id, None)

    def _program(self, turn: WaitingTurn) -> MemberAgent:
        return self._stand_ins.get((turn.member, self.chosen(turn)), self.of_members[turn.member])

    def is_apart(self, turn: WaitingTurn) -> bool:
        """Return whether a turn is one of best of several or a summary: it leaves nothing in a member's session."""
        return turn.id in self._state.progress.apart

    def has_no_session(self, turn: WaitingTurn) -> bool:
        """Return whether a turn is run without its member's session: what that holds may say who is judged."""
        return self.is_apart(turn) or blind_of(self._state.progress.blind, turn) is not None

    def why_not_apart(self, member: Member) -> str:
        """Return why a member cannot work in a worktree for one turn, and what to do about it; nothing if it can."""
        agent = self.of_members.get(member.name)
        if agent is None or not may_change_files(agent):
            return ""
        shared, worktrees = agent.shared or agent.folder, self._worktrees_for(agent)
        if worktrees is not None and shared in self._can_be_apart:
            return ""
        if reason := NO_FILES if worktrees is None else worktrees.why_not(shared):
            return f"{member.name} cannot do the task apart from the others: {reason}."
        self._can_be_apart.add(shared)
        return ""

    def _worktrees_for(self, agent: MemberAgent) -> Worktrees | None:
        """Return the worktrees where an agent is: either all are here, or on workers."""
        worktrees = self._worktrees
        return worktrees if worktrees is not None and worktrees.are_elsewhere == agent.is_elsewhere else None


def may_change_files(agent: MemberAgent) -> bool:
    """Return whether an agent may change files."""
    return agent.member.permissions != "read-only"


def is_watched(agent: MemberAgent) -> bool:
    """Return whether it is recorded what an agent changes: also if it may only read, but nobody can restrict it."""
    return may_change_files(agent) or not is_restricted(agent.member.agent)
