"""One conversation in memory, as far as exports look at a store."""

from collections.abc import Sequence
from dataclasses import dataclass

from bullpen.approvals import ApprovalRecord
from bullpen.check_results import CheckResult
from bullpen.file_changes import ChangeRecord
from bullpen.store.base import StoredConversation, StoredMessage, Turn


@dataclass(frozen=True)
class OneConversation:
    """Answers what an export asks."""

    about: StoredConversation
    stored: list[StoredMessage]

    def conversation(self, _: str) -> StoredConversation:
        """Return the only one."""
        return self.about

    def messages(
        self, _: str, *, after: int | None = None, before: int | None = None, limit: int = 50
    ) -> Sequence[StoredMessage]:
        """Return a page of messages, oldest first; the newest if nothing is said about which."""
        if after is None:
            return self.stored[-limit:]
        return [one for one in self.stored if after < one.sequence < (before or len(self.stored) + 1)][:limit]

    def unanswered(self, _: str, *, first: int, last: int) -> Sequence[Turn]:
        """Return that every turn ended with a reply."""
        return []

    def changes(self, _: str, **__: object) -> Sequence[ChangeRecord]:
        """Return that no files were changed."""
        return []

    def checks(self, _: str, **__: object) -> Sequence[CheckResult]:
        """Return that nothing was checked."""
        return []

    def approvals(self, _: str, **__: object) -> Sequence[ApprovalRecord]:
        """Return that nothing was asked."""
        return []

    def turns(self, _: str, *, message_id: str) -> Sequence[Turn]:
        """Return no turn."""
        return []


def conversation_about(messages: int, team_task: str | None) -> StoredConversation:
    """Return what a store knows of a conversation with so many messages."""
    return StoredConversation(
        id="quiet-river",
        team="team",
        team_file="",
        team_path="",
        started_at=0,
        last_at=0,
        messages=messages,
        first_words="",
        queued=0,
        running=0,
        team_task=team_task,
        waits_for=None,
        paused=None,
        progress={},
        owner=None,
    )
