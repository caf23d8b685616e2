"""Watcher: what must hold at every step, known from what happened and not from the rules that are to keep it."""

from collections import Counter

from proofs.simulation.conversations import ConversationsModel
from proofs.simulation.loop import Broken
from proofs.simulation.model import Key


class Watcher:
    """Sees everything, and raises Broken at the first promise that is broken."""

    def __init__(self, conversations: ConversationsModel, words: int) -> None:
        self._conversations = conversations
        self._owners: dict[str, str] = {}
        """Who became the owner of each conversation last."""
        self._started: set[Key] = set()
        self._at_work: dict[tuple[str, str], set[Key]] = {}
        """The agents of each member in a conversation that have not stopped."""
        self._ended: dict[Key, str] = {}
        self._acknowledged: dict[str, list[str]] = {}
        self._words = words
        self.counts: Counter[str] = Counter()
        conversations.on_write = self._wrote
        conversations.on_claim = self._claimed

    def _claimed(self, conversation: str, token: str) -> None:
        self.counts["claims"] += 1
        self._owners[conversation] = token

    def _wrote(self, conversation: str, token: str) -> None:
        if self._owners.get(conversation) != token:
            raise Broken(f"late: somebody wrote in {conversation} who is not its owner any more")

    def agent_starts(self, key: Key) -> None:
        """Note that an agent is started: this is the only thing that must not happen twice."""
        if key in self._started:
            raise Broken(f"run twice: turn {key[1]} of {key[0]}")
        self._started.add(key)
        self.counts["agents started"] += 1
        self._check_order(key)
        member = self._conversations.rows[key[0]].turns[key[1]].waiting.member
        at_work = self._at_work.setdefault((key[0], member), set())
        # Of a turn whose worker is lost nobody knows whether it has stopped, or is still to begin: a worker that was
        # frozen while it took an order begins it when it wakes, and stops it when it hears that it was given up.
        others = [other for other in at_work if self._ended.get(other) != "lost"]
        if self._ended.get(key) == "lost":
            self.counts["agents started after their worker was given up"] += 1
        elif others:
            raise Broken(f"overlapping: {member} works in turns {others[0][1]} and {key[1]} of {key[0]}")
        at_work.add(key)

    def agent_stops(self, key: Key) -> None:
        """Note that nothing of an agent runs any more."""
        member = self._conversations.rows[key[0]].turns[key[1]].waiting.member
        self._at_work[key[0], member].discard(key)

    def _check_order(self, key: Key) -> None:
        row = self._conversations.rows[key[0]]
        me = row.turns[key[1]].waiting
        for other in row.turns.values():
            is_before = other.waiting.message_id == me.message_id and other.waiting.step < me.step
            if is_before and other.state in ("queued", "running"):
                raise Broken(f"out of order: turn {me.id} of {key[0]} began before turn {other.waiting.id} had ended")

    def turn_ends(self, key: Key, how: str) -> None:
        """Note the end of a turn that ran elsewhere."""
        if key in self._ended:
            raise Broken(f"two ends: turn {key[1]} of {key[0]} was {self._ended[key]}, and then {how}")
        self._ended[key] = how
        self.counts[f"turns {how}"] += 1

    def end_is_stored(self, key: Key, how: str) -> None:
        """Note what an owner takes for the end of a turn."""
        if self._ended.get(key) != how:
            raise Broken(f"two ends: turn {key[1]} of {key[0]} was {self._ended.get(key)}, and is stored as {how}")

    def acknowledged(self, conversation: str, message: str) -> None:
        """Note that a person was told that a message is stored."""
        if message not in self._conversations.rows[conversation].messages:
            raise Broken(f"lost: {message} of {conversation} was acknowledged and is not stored")
        self._acknowledged.setdefault(conversation, []).append(message)
        self.counts["words acknowledged"] += 1

    def is_at_rest(self) -> bool:
        """Return whether everything was said, and every turn has ended."""
        open_ = (row.open("queued") or row.open("running") for row in self._conversations.rows.values())
        return self.counts["words acknowledged"] == self._words and not any(open_)

    def check_at_the_end(self) -> None:
        """After all is healed, and time enough."""
        if self.counts["words acknowledged"] != self._words:
            raise Broken(f"stuck: {self.counts['words acknowledged']} of {self._words} words were acknowledged")
        for conversation, row in self._conversations.rows.items():
            if open_ := [turn.waiting.id for turn in row.turns.values() if turn.state in ("queued", "running")]:
                raise Broken(f"stuck: turns {open_} of {conversation}")
            said = [message for message in row.messages if message.startswith("kim-")]
            if said != self._acknowledged.get(conversation, []):
                raise Broken(f"lost or out of order: {said} in {conversation}")
            if len(set(row.messages)) != len(row.messages):
                raise Broken(f"doubled: {row.messages} in {conversation}")
            replies = {f"reply-{turn.waiting.id}" for turn in row.turns.values() if turn.state == "done"}
            if replies != {message for message in row.messages if message.startswith("reply-")}:
                raise Broken(f"doubled: the replies {sorted(replies)} in {conversation}")
