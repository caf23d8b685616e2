"""RecordedAgents: of whom it is recorded what they change in files, and people who are told of whom it is not."""

from bullpen.conversation.events import Trouble
from bullpen.conversation.file_history import FileHistory
from bullpen.conversation.journal import Journal
from bullpen.conversation.member_agent import MemberAgent
from bullpen.conversation.turn_agents import is_watched

NOT_RECORDED = (
    "What {} changes in files is not recorded, and cannot be taken back: it is in no pool, so it runs on this node. A "
    "worker on this machine would record it; give it a pool then."
)


class RecordedAgents:
    """Either all folders are here, or on workers."""

    def __init__(self, journal: Journal, history: FileHistory | None) -> None:
        self._journal = journal
        self._history = history
        self._told: set[str] = set()

    def has(self, agent: MemberAgent) -> bool:
        """Return whether it is recorded what an agent changes."""
        return is_watched(agent) and not self._is_beside(agent)

    def tell_of(self, agent: MemberAgent) -> None:
        """Tell people, once, of an agent on a node whose changes are not recorded: nobody else would."""
        name = agent.member.name
        if is_watched(agent) and self._is_beside(agent) and name not in self._told:
            self._told.add(name)
            self._journal.publish(Trouble(text=NOT_RECORDED.format(name)))

    def _is_beside(self, agent: MemberAgent) -> bool:
        return self._history is not None and self._history.is_elsewhere != agent.is_elsewhere
