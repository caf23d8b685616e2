"""World: the simulated database and network, and everybody who is in it."""

from collections.abc import Callable, Sequence
from typing import Any

from proofs.simulation.conversations import ConversationsModel
from proofs.simulation.loop import Actor, Ask, Away, Bells, Loop, Network, Ring, Sleep, Steps
from proofs.simulation.model import ClusterModel
from proofs.simulation.watcher import Watcher

from bullpen.store.base import Owner

BEAT_SECONDS, STALE_SECONDS, GONE_SECONDS = 1.0, 5.0, 2.5
"""As in cluster/membership.py."""
CLOSED_SECONDS = 0.2
"""After which the server has noticed that a process is dead."""


class World:
    """All that there is."""

    def __init__(self, seed: int | str, words: int) -> None:
        """Begin. So many words will be said."""
        self.loop = Loop(seed)
        self.network = Network(self.loop)
        self.bells = Bells(self.loop, self.network)
        self.cluster = ClusterModel(lambda: self.loop.now)
        self.conversations = ConversationsModel()
        self.watcher = Watcher(self.conversations, words)
        self.actors: dict[str, Participant] = {}
        """Those that live, by their names."""
        self._sessions: dict[int, set[str]] = {}
        self._conversation_of: dict[str, str] = {}
        self.abandoned: dict[str, None] = {}
        """Conversations with unfinished turns whose owner lost its lock, and that nobody has claimed since."""
        self.conversations.on_queued = self._queued
        self.cluster.on_outcome = self._outcome
        self.cluster.on_order = lambda pool: self.bells.ring(("pool", pool), most=3)
        self.cluster.on_given_up = self.free_locks

    def _outcome(self, key: tuple[str, str], how: str) -> None:
        self.watcher.turn_ends(key, how)
        self.bells.ring(("outcome", key))

    def hold(self, conversation: str, token: str, process: int) -> None:
        """Lock for an owner."""
        self.conversations.hold(token, process)
        self._sessions.setdefault(process, set()).add(token)
        self._conversation_of[token] = conversation

    def become_owner(self, conversation: str, owner: Owner, before: Owner | None) -> bool:
        """Become the owner, if that is still the one before. Who has lost its lock by then leaves it at once."""
        is_ours = self.conversations.become_owner(conversation, owner, before)
        if is_ours:
            self.abandoned.pop(conversation, None)
            if owner.token not in self.conversations.locks:
                self._abandon(conversation)
        return is_ours

    def let_go(self, token: str) -> None:
        """Unlock for a former owner."""
        process = self.conversations.locks.get(token)
        self.conversations.let_go(token)
        if process is not None:
            self._sessions[process].discard(token)
        conversation = self._conversation_of.pop(token, None)
        if conversation is None:
            return
        owner = self.conversations.rows[conversation].owner
        if owner is not None and owner.token == token:
            self._abandon(conversation)

    def _queued(self, conversation: str) -> None:
        """Note what somebody asked for whom others have given up, and who does not know it yet."""
        owner = self.conversations.rows[conversation].owner
        if owner is not None and owner.token not in self.conversations.locks:
            self._abandon(conversation)

    def _abandon(self, conversation: str) -> None:
        """Note what nobody owns any more, if there is anything to do: else it waits until somebody speaks."""
        row = self.conversations.rows[conversation]
        if row.open("queued") or row.open("running"):
            self.abandoned[conversation] = None

    def free_locks(self, process: int) -> None:
        """End the sessions of a process."""
        for token in sorted(self._sessions.get(process, ())):
            self.let_go(token)


class Participant(Actor):
    """A node, a worker or a person."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.loop, name)
        self.world = world
        self.id = 0
        self._former: list[int] = []
        world.actors[name] = self

    def once(self, do: Callable[..., Any], *given: Any) -> Steps:
        """Ask once; raises Away if there is no answer."""
        return (yield Ask(self.world.network, lambda: do(*given)))

    def do(self, do: Callable[..., Any], *given: Any) -> Steps:
        """Ask until there is an answer, as Database.do: what is done may be done again."""
        while True:
            try:
                return (yield Ask(self.world.network, lambda: do(*given), may_be_doubled=True))
            except Away:
                yield Sleep(0.3)

    def join(self, kind: Any, pools: Sequence[str] = ()) -> Steps:
        """Take part, as somebody new."""
        if self.id:
            self._former.append(self.id)
        self.id = yield from self.do(self.world.cluster.join_cluster, kind, pools)

    def beat_until_given_up(self, stop_turns: Callable[[list[tuple[str, str]]], None] = lambda _: None) -> Steps:
        """Say again and again that one lives."""
        while True:
            try:
                ended = yield from self.once(self.world.cluster.beat, self.id)
            except Away:
                continue
            if ended is None:
                return
            stop_turns(ended)
            yield Sleep(BEAT_SECONDS)

    def ring(self, key: object, most: float) -> Ring:
        """Return what waits for a bell."""
        return Ring(self.world.bells, key, most)

    def die(self) -> None:
        """Be killed. The server notices a moment later that its sessions are closed; if it is cut off, it does not."""
        self.is_dead = True
        del self.world.actors[self.name]
        if not self.is_cut_off:
            self.loop.after(CLOSED_SECONDS, self.close)

    def close(self) -> None:
        """Let the server notice that it is dead."""
        for process in (*self._former, *([self.id] if self.id else ())):
            self.world.cluster.processes[process].holds_lock = False
            self.world.free_locks(process)
