"""The inbox: what waits for a person in all conversations, whichever process has them open, or none."""

from pathlib import Path

from msgspec import Struct

from bullpen.clock import milliseconds
from bullpen.conversation.asks import answered_by
from bullpen.conversation.events import Answered
from bullpen.conversation.owner import is_alive
from bullpen.errors import UnknownConversation
from bullpen.store.base import Store, StoredConversation
from bullpen.team.file import team_path
from bullpen.text.asked_words import few
from bullpen.view.answers import answered_words
from bullpen.view.choices import ASK, Decision
from bullpen.view.listing import conversation_summary
from bullpen.view.state import stored_view

RULE_MILLISECONDS = 300
"""A rule answers sooner than this: nobody is called for a question that needs no person."""


DECIDED = "That is decided already"


class Item(Struct, frozen=True, kw_only=True):
    """One thing that waits for a person."""

    conversation: str
    title: str
    team: str
    since: int
    """Milliseconds since 1970."""
    pid: int | None
    """The process that has the conversation open; None if none has."""
    people: tuple[str, ...]
    """Who is in its team."""
    decision: Decision

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from every other one."""
        return self.conversation, *self.decision.key


def inbox(store: Store, team: Path | None = None) -> list[Item]:
    """Return what waits for a person in all conversations, or in those of one team file: the oldest first.

    What waits where nobody has the conversation open comes last, since no agent waits there.
    """
    file = None if team is None else str(team_path(team))
    items: list[Item] = []
    for stored in store.conversations():
        if stored.archived_at is not None or file not in (None, stored.team_path):
            continue
        if stored.owner is not None and is_alive(stored.owner, store):
            items += _items(store, stored, stored.owner.pid)
        elif stored.messages and conversation_summary(store, stored.id).needs_you:
            items += _items(store, stored, None)
    return sorted(items, key=lambda item: (item.pid is None, item.since))


def _items(store: Store, stored: StoredConversation, pid: int | None) -> list[Item]:
    try:
        view = stored_view(store, stored.id)
    except UnknownConversation:
        # It was deleted meanwhile.
        return []
    newest = milliseconds() - RULE_MILLISECONDS
    return [
        Item(
            conversation=view.id,
            title=view.title,
            team=view.team,
            since=decision.at or _began_to_wait(store, view.id, decision) or stored.last_at,
            pid=pid,
            people=tuple(member.name for member in view.members if member.type == "human"),
            decision=decision,
        )
        for decision in view.decisions
        if pid is None or decision.at < newest
    ]


def _began_to_wait(store: Store, conversation_id: str, decision: Decision) -> int:
    """Return when a turn began to wait for a decision; 0 if it is not about a turn."""
    if decision.kind not in ("failed", "conflict", "review", "allow", "left", "programs") or not decision.turn:
        return 0
    turn = store.turn(conversation_id, decision.turn)
    return turn.ended_at or turn.queued_at


def owner_token(store: Store, conversation_id: str) -> str | None:
    """Return the token of the process that has a conversation open; None if none has."""
    owner = store.conversation(conversation_id).owner
    return owner.token if owner is not None and is_alive(owner, store) else None


def what_became_of(store: Store, item: Item) -> str:
    """Return who decided something that waits no more, in a sentence."""
    decision = item.decision
    if decision.kind != "question" or decision.question == ASK:
        return _who_decided(store, item)
    records = store.approvals(item.conversation, turn_ids=[decision.turn])
    mine = [record for record in records if record.question == decision.question]
    asked = next((record.asked for record in mine if record.asked is not None), None)
    answered = next((record for record in mine if record.answer is not None), None)
    return DECIDED if answered is None else answered_words(Answered.of(answered, asked))


def _who_decided(store: Store, item: Item) -> str:
    """Do the same for what is stored as a decision. What was settled by a message alone is not."""
    asked, stored = item.decision, store.decisions(item.conversation)
    if asked.question == ASK:
        known = answered_by(stored, asked.turn)
        return DECIDED if known is None else f"{known[0]} answered {asked.member}: {few(known[1])}"
    actions = {choice.action for choice in asked.choices}
    for one in reversed(stored):
        is_about_it = asked.turn in one.turns if asked.turn else one.choice.split()[0] in actions
        if is_about_it and one.at >= item.since:
            return f"{one.person} decided: {one.choice}"
    return DECIDED
