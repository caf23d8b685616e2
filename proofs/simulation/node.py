"""SimulatedNode: owns conversations, and has their turns run by workers, with the real scheduler and the real claim."""

from collections.abc import Callable
from typing import Any

from proofs.simulation.loop import Away, Sleep, Steps
from proofs.simulation.world import BEAT_SECONDS, GONE_SECONDS, STALE_SECONDS, Participant, World

from bullpen.errors import NotTheOwner, StoreConflict
from bullpen.routing import obstacles
from bullpen.routing.obstacles import Situation
from bullpen.routing.queue import TurnQueue, WaitingTurn
from bullpen.store import claiming
from bullpen.store.base import Owner

LOOK_SECONDS = 5.0
OWNER_BEAT_SECONDS = 5.0
MOST_TAKEN_OVER = 20
"""Of conversations whose owner is gone, in one look."""


class NotHere(Exception):
    """Another node owns the conversation."""

    def __init__(self, node: str) -> None:
        self.node = node


class Room:
    """A conversation that a node owns, as far as it knows."""

    def __init__(self, conversation: str, owner: Owner) -> None:
        self.conversation = conversation
        self.owner = owner
        self.queue = TurnQueue()
        self.running: dict[str, WaitingTurn] = {}
        self.highest_turn = 0
        self.is_lost = False


class SimulatedNode(Participant):
    """A node."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world, name)
        self.rooms: dict[str, Room] = {}
        self._opening: set[str] = set()
        self._tokens = 0
        self.begin(self._live())
        self.begin(self._reap())
        self.begin(self._take_over())

    def _live(self) -> Steps:
        while True:
            yield from self.join("node")
            yield from self.beat_until_given_up()
            for room in list(self.rooms.values()):
                self._lose(room)

    def _reap(self) -> Steps:
        while True:
            yield Sleep(BEAT_SECONDS * self.loop.chance.uniform(0.9, 1.1))
            yield from self.do(self.world.cluster.reap, STALE_SECONDS, GONE_SECONDS)

    def _take_over(self) -> Steps:
        """Open what others have left behind, each node some of it."""
        while True:
            yield Sleep(BEAT_SECONDS * self.loop.chance.uniform(0.2, 1.8))
            found = yield from self.do(lambda: list(self.world.abandoned))
            # In a random order, so that not all nodes want the same.
            for conversation in self.loop.chance.sample(found, min(len(found), MOST_TAKEN_OVER)):
                if self.id and conversation not in self.rooms:
                    self.begin(self._open_quietly(conversation))

    def _open_quietly(self, conversation: str) -> Steps:
        try:
            yield from self._open(conversation)
        except (NotHere, Away):
            return

    # What people want

    def say(self, conversation: str, message: str, members: tuple[tuple[str, int], ...]) -> Steps:
        """Store what a person says, once; raises NotHere if another node owns the conversation."""
        room = self.rooms.get(conversation) or (yield from self._open(conversation))
        turns = self._new_turns(room, message, members)
        is_stored = yield from self._write(room, self.world.conversations.append, message, room.owner, turns)
        if not is_stored:
            room.queue.add(turns)
        self._begin_turns(room)

    def _new_turns(self, room: Room, message: str, members: tuple[tuple[str, int], ...]) -> tuple[WaitingTurn, ...]:
        first = room.highest_turn + 1
        room.highest_turn += len(members)
        return tuple(
            WaitingTurn(id=str(number), member=member, message_id=message, step=step)
            for number, (member, step) in enumerate(members, start=first)
        )

    # Owning

    def _open(self, conversation: str) -> Steps:
        """Become the owner, adopt what runs, and begin what may."""
        if conversation in self._opening or not self.id:
            raise Away
        self._opening.add(conversation)
        try:
            self._tokens += 1
            owner = Owner(
                token=f"{self.name} {self.id} {self._tokens}", pid=self.id, start_time=0, boot_id="", host=self.name
            )
            if not (yield from self._claim(conversation, owner)):
                other = yield from self.once(lambda: self.world.conversations.rows[conversation].owner)
                raise NotHere(other.host if other is not None else "")
            room = Room(conversation, owner)
            try:
                loaded = yield from self.once(self.world.conversations.load, conversation)
                adopted = [turn.id for turn in loaded.running]
                yield from self.once(self.world.conversations.adopt, conversation, adopted, owner)
            except (Away, NotTheOwner):
                self._lose(room)
                raise Away from None
            return self._opened(room, loaded)
        finally:
            self._opening.discard(conversation)

    def _opened(self, room: Room, loaded: Any) -> Room:
        room.queue, room.highest_turn = TurnQueue(loaded.queued), loaded.highest_turn
        room.running = {turn.id: turn for turn in loaded.running}
        self.rooms[room.conversation] = room
        for turn in loaded.running:
            self.begin(self._follow(room, turn, is_adopted=True))
        self.begin(self._keep(room))
        self._begin_turns(room)
        return room

    def _claim(self, conversation: str, owner: Owner) -> Steps:
        """Claim as stores do. What claiming.claim asks of the store takes time here, so it is asked again each time."""
        world, me = self.world, self.id
        conversations = world.conversations

        def claimed(asked: Asked) -> bool:
            return claiming.claim(
                AskedLocks(asked, lambda token: world.hold(conversation, token, me), self._let_go),
                owner,
                is_alive=lambda other: bool(asked(lambda: other.token in conversations.locks)),
                present=lambda: asked(lambda: conversations.rows[conversation].owner),
                become=lambda before: bool(asked(lambda: world.become_owner(conversation, owner, before))),
            )

        answers: list[Any] = []
        while True:
            try:
                return claimed(Asked(answers))
            except NotAnswered as question:
                try:
                    answers.append((yield from self.once(question.do)))
                except Away as error:
                    answers.append(error)

    def _keep(self, room: Room) -> Steps:
        """Hold the lock again if it was lost, and notice that somebody else owns it."""
        conversations = self.world.conversations
        while not room.is_lost:
            yield Sleep(OWNER_BEAT_SECONDS)
            try:
                owner = yield from self.once(lambda: conversations.rows[room.conversation].owner)
            except Away:
                continue
            if owner is None or owner.token != room.owner.token:
                self._lose(room)

    def _lose(self, room: Room) -> None:
        if not room.is_lost:
            room.is_lost = True
            if self.rooms.get(room.conversation) is room:
                del self.rooms[room.conversation]
            self._let_go(room.owner.token)

    def _let_go(self, token: str) -> None:
        self.begin(self.do(self.world.let_go, token))

    def _write(self, room: Room, write: Callable[..., Any], *given: Any) -> Steps:
        """Write as the owner. Who is not, or does not know whether it has written, opens the conversation again."""
        try:
            return (yield from self.once(write, room.conversation, *given))
        except (Away, NotTheOwner, StoreConflict):
            self._lose(room)
            raise Away from None

    # Turns

    def _begin_turns(self, room: Room) -> None:
        """Begin every turn that may begin."""
        if room.is_lost:
            return
        situation = Situation(running=room.running.values(), people=["kim"])
        for turn in obstacles.may_begin(room.queue.waiting, situation):
            room.queue.remove([turn.id])
            room.running[turn.id] = turn
            self.begin(self._follow(room, turn, is_adopted=False))

    def _start(self, conversation: str, turn: WaitingTurn, owner: Owner, me: int) -> None:
        """Start a turn and place its order, in one commit."""
        self.world.conversations.start_turn(conversation, turn.id, owner)
        self.world.cluster.place_order((conversation, turn.id), turn.member, me)

    def _follow(self, room: Room, turn: WaitingTurn, *, is_adopted: bool) -> Steps:
        """Have a turn run, wait for its end, and store that."""
        key = room.conversation, turn.id
        try:
            if is_adopted:
                yield from self.do(self.world.cluster.adopt_order, key, self.id)
            else:
                yield from self._write(room, self._start, turn, room.owner, self.id)
            if self.loop.chance.random() < 0.02:
                yield from self.do(self.world.cluster.cancel_order, self.id, key)
            while (how := (yield from self.do(self.world.cluster.outcomes.get, key))) is None:
                if room.is_lost:
                    return
                yield self.ring(("outcome", key), LOOK_SECONDS)
            yield from self._store_end(room, turn, how)
        except Away:
            return
        del room.running[turn.id]
        self._begin_turns(room)
        yield from self.do(self.world.cluster.settle_order, self.id, key)

    def _store_end(self, room: Room, turn: WaitingTurn, how: str) -> Steps:
        conversations = self.world.conversations
        if how == "ended":
            reply = f"reply-{turn.id}"
            asks = (("bo", 0),) if turn.member == "al" and self.loop.chance.random() < 0.2 else ()
            turns = self._new_turns(room, reply, asks)
            yield from self._write(room, conversations.append, reply, room.owner, turns, turn.id)
            room.queue.add(turns)
        else:
            state = "cancelled" if how == "cancelled" else "interrupted"
            yield from self._write(room, conversations.end_turn, turn.id, state, room.owner)
        self.world.watcher.end_is_stored((room.conversation, turn.id), how)


class NotAnswered(Exception):
    """Something that must be asked first."""

    def __init__(self, do: Callable[[], Any]) -> None:
        self.do = do


class Asked:
    """Gives the answers that are there, in their order, and then raises what is to be asked next."""

    def __init__(self, answers: list[Any]) -> None:
        self._answers = iter(list(answers))
        self._question: NotAnswered | None = None

    def __call__(self, do: Callable[[], Any]) -> Any:
        for answer in self._answers:
            if isinstance(answer, Away):
                raise answer
            return answer
        self.check()
        self._question = NotAnswered(do)
        raise self._question

    def check(self) -> None:
        """Raise what is to be asked: what is done because of that exception does not happen."""
        if self._question is not None:
            raise self._question


class AskedLocks:
    """The locks of owners, as claiming.claim knows them."""

    def __init__(self, asked: Asked, hold: Callable[[str], None], let_go: Callable[[str], None]) -> None:
        self._asked, self._hold, self._let_go = asked, hold, let_go

    def hold(self, token: str) -> object:
        """Lock."""
        return self._asked(lambda: self._hold(token))

    def let_go(self, token: str) -> None:
        """Unlock. Nobody waits for that: a session that cannot unlock is lost, and so are its locks."""
        self._asked.check()
        self._let_go(token)

    def remove(self, token: str) -> None:
        """Unlock."""
        self.let_go(token)
