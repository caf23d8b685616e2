"""ConversationsModel: the rules of PostgresStore for owners, messages and turns. Each method is one commit."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bullpen.errors import TurnConflict, TurnNumberTaken, UnknownTurn
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import Owner
from bullpen.store.conversation_rows import check_owner


class Turn:
    """A row of turns."""

    def __init__(self, waiting: WaitingTurn) -> None:
        self.waiting = waiting
        self.state = "queued"
        self.owner: str | None = None


class Row:
    """A conversation."""

    def __init__(self) -> None:
        self.owner: Owner | None = None
        self.messages: list[str] = []
        self.turns: dict[str, Turn] = {}

    def open(self, state: str) -> list[WaitingTurn]:
        """Return the queued or the running turns."""
        return [turn.waiting for turn in self.turns.values() if turn.state == state]


class Loaded(NamedTuple):
    """What an owner reads when it opens a conversation."""

    queued: list[WaitingTurn]
    running: list[WaitingTurn]
    highest_turn: int


class ConversationsModel:
    """All conversations, and the locks of their owners."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.locks: dict[str, int] = {}
        """For each owner's token the process whose session holds its lock."""
        self.on_write: Callable[[str, str], None] = lambda _, __: None
        """Is told of every write: the conversation, and the token of who writes."""
        self.on_claim: Callable[[str, str], None] = lambda _, __: None
        self.on_queued: Callable[[str], None] = lambda _: None
        """Is told of conversations to which turns may have been added."""

    def create(self, conversation: str) -> None:
        """Begin a conversation."""
        self.rows[conversation] = Row()

    # Owners

    def hold(self, token: str, process: int) -> None:
        """Lock for an owner, in a session of its process."""
        self.locks[token] = process

    def let_go(self, token: str) -> None:
        """Unlock."""
        self.locks.pop(token, None)

    def become_owner(self, conversation: str, owner: Owner, before: Owner | None) -> bool:
        """Become the owner, if that is still the one before."""
        row = self.rows[conversation]
        if row.owner != before:
            return False
        row.owner = owner
        self.on_claim(conversation, owner.token)
        return True

    def release(self, conversation: str, owner: Owner) -> None:
        """Stop being the owner."""
        self.let_go(owner.token)
        row = self.rows[conversation]
        if row.owner is not None and row.owner.token == owner.token:
            row.owner = None

    # Messages and turns

    def append(
        self,
        conversation: str,
        message: str,
        owner: Owner | None,
        turns: Sequence[WaitingTurn] = (),
        finishes: str | None = None,
    ) -> bool:
        """Store a message, what it asks for and whose reply it is; return whether it was already stored."""
        row = self._fenced(conversation, owner)
        if message in row.messages:
            return True
        if finishes is not None:
            self._step(row, finishes, "running")
        for turn in turns:
            if turn.id in row.turns:
                raise TurnNumberTaken(turn.id, row.turns[turn.id].state)
        self.on_write(conversation, owner.token if owner else "")
        row.messages.append(message)
        row.turns.update({turn.id: Turn(turn) for turn in turns})
        if finishes is not None:
            row.turns[finishes].state = "done"
        self.on_queued(conversation)
        return False

    def start_turn(self, conversation: str, turn_id: str, owner: Owner) -> None:
        """Start a queued turn."""
        row = self._fenced(conversation, owner)
        turn = self._step(row, turn_id, "queued")
        self.on_write(conversation, owner.token)
        turn.state, turn.owner = "running", owner.token

    def end_turn(self, conversation: str, turn_id: str, state: str, owner: Owner | None) -> None:
        """End a running turn without a reply."""
        row = self._fenced(conversation, owner)
        turn = self._step(row, turn_id, "running")
        self.on_write(conversation, owner.token if owner else "")
        turn.state = state

    def adopt(self, conversation: str, turn_ids: Sequence[str], owner: Owner) -> None:
        """Make running turns the owner's."""
        row = self._fenced(conversation, owner)
        for turn_id in turn_ids:
            if turn_id in row.turns and row.turns[turn_id].state == "running":
                row.turns[turn_id].owner = owner.token

    def recover(self, conversation: str, owner: Owner | None) -> list[str]:
        """Interrupt the running turns that another owner has begun, and return them."""
        row = self._fenced(conversation, owner)
        token = owner.token if owner else None
        lost = [turn for turn in row.turns.values() if turn.state == "running" and turn.owner != token]
        for turn in lost:
            turn.state = "interrupted"
        return [turn.waiting.id for turn in lost]

    def load(self, conversation: str) -> Loaded:
        """Return what is open in a conversation."""
        row = self.rows[conversation]
        return Loaded(row.open("queued"), row.open("running"), max(map(int, row.turns), default=0))

    def _fenced(self, conversation: str, owner: Owner | None) -> Row:
        row = self.rows[conversation]
        check_owner(conversation, row.owner, owner)
        return row

    def _step(self, row: Row, turn_id: str, expected: str) -> Turn:
        if turn_id not in row.turns:
            raise UnknownTurn(turn_id)
        if row.turns[turn_id].state != expected:
            raise TurnConflict(turn_id, row.turns[turn_id].state, expected)
        return row.turns[turn_id]
