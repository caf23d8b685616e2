"""Where a conversation is in the tables, and what is asked about it: everything at once, then the answers."""

from msgspec import Struct
from psycopg import Cursor
from psycopg.sql import Composed

from bullpen.errors import UnknownConversation
from bullpen.store.base import Owner
from bullpen.store.conversation_rows import check_owner, owner_from, token_of
from bullpen.store.postgres.connections import Db, Row

CONVERSATION = "(SELECT number FROM conversations WHERE id = %(id)s)"
"""The number of the conversation, in a query."""
FROM = "FROM states JOIN conversations ON conversations.number = states.conversation WHERE conversations.id = %(id)s"
PLACE = f"SELECT conversation, messages, head, owner, first_link, NULL {FROM}"
LOCKED = f"""
    SELECT conversation, messages, head, owner, first_link, pg_current_xact_id()::text::bigint {FROM}
    FOR NO KEY UPDATE OF states
"""
# Whether a transaction has changed the state of a conversation, and nobody has since. It waits for that transaction.
# Its number alone would say nothing: after a crash of the server another one may have it.
CHANGED = f"""
    SELECT states.xmin::text::bigint = %(transaction)s %% 4294967296
        AND owner_token IS NOT DISTINCT FROM %(token)s {FROM} FOR NO KEY UPDATE OF states
"""


class Found(Struct, frozen=True):
    """Where a conversation is in the tables, and where its messages end."""

    number: int
    messages: int
    head: bytes
    owner: Owner | None
    first_link: bytes


class Place:
    """A conversation in one transaction.

    To write, its state is locked until the transaction ends, so what was looked up stays as it is, and so does its
    owner: this is the fence.
    """

    def __init__(self, db: Db, conversation_id: str, *, to_write: bool = False) -> None:
        self.db = db
        self.id = conversation_id
        self._row = self.ask(LOCKED if to_write else PLACE)
        self._found: Found | None = None
        self._fence: tuple[Owner | None] | None = None
        self._answers: dict[tuple[str, ...], list[Row]] | None = None if to_write else {}

    def fence(self, owner: Owner | None) -> None:
        """Let only this owner write, or only if there is none."""
        self._fence = (owner,)

    def ask(self, query: str | Composed, **values: object) -> Cursor[Row]:
        """Ask something about the conversation; %(id)s is its id. The answer is waited for when it is read."""
        return self.db.execute(query, {"id": self.id, **values}, binary=True)

    def all(self, query: str, **values: object) -> list[Row]:
        """Return all rows of an answer. What only reads sees one state, and asks nothing twice."""
        if self._answers is None:
            return self.read(self.ask(query, **values))
        key = query, *map(repr, values.values())
        if key not in self._answers:
            self._answers[key] = self.read(self.ask(query, **values))
        return self._answers[key].copy()

    def read(self, answer: Cursor[Row]) -> list[Row]:
        """Return all rows of an answer, or raise UnknownConversation or NotTheOwner."""
        self.found()
        return self.db.settle(answer).fetchall()

    def found(self) -> Found:
        """Return where the conversation is, or raise UnknownConversation or NotTheOwner."""
        if self._found is None:
            row = self.db.settle(self._row).fetchone()
            if row is None:
                raise UnknownConversation(self.id)
            number, messages, head, owner, first_link, transaction = row
            self._found = Found(number, messages, head, owner_from(owner), first_link)
            if transaction is not None:
                token = token_of(self._found.owner)
                self.db.evidence = CHANGED, {"id": self.id, "transaction": transaction, "token": token}
            if self._fence is not None:
                check_owner(self.id, self._found.owner, *self._fence)
        return self._found
