"""AnsweredMessages: which message a turn answers, and what led to it."""

from collections.abc import Iterator, Mapping

from bullpen.errors import UnknownMessage
from bullpen.messages import ConversationMessage
from bullpen.routing.queue import WaitingTurn
from bullpen.routing.summaries import covered_by
from bullpen.store.base import Store, StoredMessage
from bullpen.team.team import Team

LONGEST_CHAIN = 100
"""How many messages, each an answer to the next, are followed back to what a person asked for."""
LOOK_BACK = 1_000
"""How many messages are searched, at most, for what people said in a relay."""


class AnsweredMessages:
    """The messages of one conversation, as turns answer them. Reads the store."""

    def __init__(self, store: Store, conversation_id: str, team: Team) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._team = team

    def chain(self, message_id: str) -> Iterator[ConversationMessage]:
        """Yield a message, the one that it answers, and so on. An import may name messages that do not exist."""
        parent: str | None = message_id
        for _ in range(LONGEST_CHAIN):
            try:
                message = None if parent is None else self._store.message(self._conversation_id, parent).message
            except UnknownMessage:
                return
            if message is None:
                return
            yield message
            parent = message.routing.parent_message_id if message.routing else None

    def by(self, turn: WaitingTurn) -> tuple[StoredMessage, list[str]]:
        """Return the message that a turn answers, and the ids of those that the agent must not see.

        In a relay it is the last reply of the step before. Those who answer at the same time do not see each other's
        replies.
        """
        asking = self._store.message(self._conversation_id, turn.message_id)
        replies = self._replies_to(turn)
        earlier = [reply for step, reply in replies if step < turn.step]
        current = max(earlier, default=asking, key=lambda reply: reply.sequence)
        return current, [reply.message.id for step, reply in replies if step == turn.step]

    def latest(self, turn: WaitingTurn) -> tuple[StoredMessage, list[str]]:
        """Return the same with the specification's current message: the latest of all that one request has led to."""
        current, hidden_ids = self.by(turn)
        *_, request = self.chain(turn.message_id)
        related = {request.id}
        begin = self._store.message(self._conversation_id, request.id).sequence
        for stored in self._store.messages(self._conversation_id, after=begin, limit=LOOK_BACK):
            message = stored.message
            if message.routing is None or message.routing.parent_message_id not in related:
                continue
            related.add(message.id)
            if stored.sequence > current.sequence and message.id not in hidden_ids and covered_by(message) is None:
                current = stored
        return current, hidden_ids

    def _replies_to(self, turn: WaitingTurn) -> list[tuple[int, StoredMessage]]:
        """Return what others have replied to the same message, each with its step in the relay."""
        turns = self._store.turns(self._conversation_id, message_id=turn.message_id)
        replies = [
            (other.step, self._store.message(self._conversation_id, other.reply_id))
            for other in turns
            if other.reply_id is not None
        ]
        # A summary answers nobody, and is not for everybody.
        replies = [(step, reply) for step, reply in replies if covered_by(reply.message) is None]
        people = {person.name for person in self._team.people}
        steps = {other.member: other.step for other in turns if other.member in people}
        return [*replies, *self._said_by_people(steps, turn.message_id)] if steps else replies

    def _said_by_people(self, steps: Mapping[str, int], message_id: str) -> list[tuple[int, StoredMessage]]:
        """Return what people said in a relay. Their turns do not run, but their messages name the one they answer."""
        return [
            (steps[stored.message.speaker.role_id], stored)
            for stored in self._store.messages(self._conversation_id, limit=LOOK_BACK)
            if stored.message.speaker.role_id in steps
            and stored.message.routing
            and stored.message.routing.parent_message_id == message_id
        ]
