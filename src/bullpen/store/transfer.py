"""A whole conversation as rows that mean the same in every store, to copy it from one to another.

Numbers of rows are a store's own, so rows name turns by their ids. Messages are not among them: they are read and
added as messages, and their chain of hashes shows that each is the same.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
from msgspec import Struct

from bullpen.store import approval_rows, change_rows, check_rows
from bullpen.store.base import Store, StoredMessage
from bullpen.store.packing import DamagedData

Row = tuple[object, ...]

CONVERSATION = (
    *("id", "team", "team_file", "team_path", "started_at", "first_link", "team_task", "extra", "title", "archived_at"),
)
STATE = ("last_at", "waits_for", "paused", "progress", "approvals", "approvals_head")
"""Who owns it is not copied; where its messages end follows from them."""


class Table(Struct, frozen=True):
    """One kind of rows of a conversation."""

    name: str
    columns: tuple[str, ...]
    turns: tuple[str, ...] = ()
    """Those of the columns that hold a turn: its number in a store, its id in a copy."""
    order: str = "number"
    belongs_to_turn: bool = False
    """Whether it is of the conversation only because its turn is."""


TURN_COLUMNS = (
    *("id", "member", "asked_by", "intent", "step", "position", "state", "retry_of", "owner", "queued_at"),
    *("started_at", "ended_at", "reply", "usage", "failure", "after_message", "uses"),
)
PROMPT_COLUMNS = ("turn", "prompt", "system", "report", "base")
TABLES = (
    Table("turns", TURN_COLUMNS, turns=("retry_of",)),
    Table("prompts", PROMPT_COLUMNS, turns=("turn", "base"), order="turn", belongs_to_turn=True),
    Table("streams", ("turn", "command", "stream"), turns=("turn",), order="turn", belongs_to_turn=True),
    Table("stream_parts", ("turn", "data"), turns=("turn",), belongs_to_turn=True),
    Table("memories", ("turn", "member", "memory"), turns=("turn",)),
    Table("decisions", ("at", "person", "choice", "turns")),
    Table("changes", (*change_rows.COLUMNS.split(", "), "patch"), order="sequence"),
    Table("checks", tuple(check_rows.COLUMNS.split(", ")), order="sequence"),
    Table("approvals", (*approval_rows.COLUMNS.split(", "), "is_open"), order="sequence"),
)
"""In an order in which they can be added."""


class Copied(Struct, frozen=True):
    """A conversation that is being read. Its parts are read once, in this order."""

    conversation: Row
    """What CONVERSATION names."""
    state: Row
    """What STATE names."""
    messages: Iterable[StoredMessage]
    rows: Callable[[Table], Iterable[Row]]

    @property
    def id(self) -> str:
        """The conversation's id."""
        return str(self.conversation[CONVERSATION.index("id")])

    @property
    def first_link(self) -> bytes:
        """What its chain of hashes begins with."""
        link = self.conversation[CONVERSATION.index("first_link")]
        return link if isinstance(link, bytes) else b""


class Transferable(Store, Protocol):
    """A store whose conversations can be copied to another one."""

    def copying_out(self, conversation_id: str) -> AbstractContextManager[Copied]:
        """Let the block read one state of a conversation."""

    def copy_in(self, copied: Copied) -> None:
        """Add a conversation that nobody owns, all of it or nothing, or raise ConversationExists.

        Every message and every approval must have the hash that it had, and everything is read back and compared before
        it is final.
        """

    @property
    def path(self) -> object:
        """Where the store is, for people."""


def select(table: Table, mark: str) -> str:
    """Return the query for the rows of a conversation; the mark is where its number belongs."""
    columns = [_named(name) if name in table.turns else name for name in table.columns]
    of_turns = f"turn IN (SELECT number FROM turns WHERE conversation = {mark})"  # noqa: S608
    where = of_turns if table.belongs_to_turn else f"conversation = {mark}"
    return f"SELECT {', '.join(columns)} FROM {table.name} AS row WHERE {where} ORDER BY {table.order}"  # noqa: S608


def insert(table: Table, mark: str, *, turn: str) -> str:
    """Return the statement that adds a row; `turn` is the query for a turn's number, with a mark for its id."""
    columns = table.columns if table.belongs_to_turn else ("conversation", *table.columns)
    values = [turn if name in table.turns else mark for name in columns]
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join(values)})"  # noqa: S608


def _named(column: str) -> str:
    return f"(SELECT id FROM turns AS named WHERE named.number = row.{column})"  # noqa: S608


class Digest:
    """A hash over everything in a conversation, the same in every store."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def seen(self, copied: Copied) -> Copied:
        """Return a conversation whose parts are added when they are read."""
        self._add([*copied.conversation, *copied.state])
        return Copied(
            copied.conversation,
            copied.state,
            self._messages(copied.messages),
            lambda table: self._rows(table, copied.rows(table)),
        )

    def value(self) -> bytes:
        """Return the hash over what was read."""
        return self._hash.digest()

    def _messages(self, messages: Iterable[StoredMessage]) -> Iterator[StoredMessage]:
        for stored in messages:
            # The hash covers all of it.
            self._add([stored.sequence, stored.hash])
            yield stored

    def _rows(self, table: Table, rows: Iterable[Row]) -> Iterator[Row]:
        self._add([table.name])
        for row in rows:
            self._add(list(row))
            yield row

    def _add(self, values: list[object]) -> None:
        self._hash.update(msgspec.msgpack.encode(values))


def check_approvals(problems: Iterable[approval_rows.Problem]) -> None:
    """Raise DamagedData with the first problem of the approvals that were added."""
    for _, problem in problems:
        raise DamagedData(problem)


def check_read_back(copied: Copied, digest: Digest) -> None:
    """Raise DamagedData if a conversation that was added is not read back as the one that was copied."""
    if digest_of(copied) != digest.value():
        raise DamagedData(f"conversation {copied.id!r} was not read back as it was copied")


def digest_of(copied: Copied) -> bytes:
    """Read a whole conversation, and return its digest."""
    digest = Digest()
    seen = digest.seen(copied)
    for _ in seen.messages:
        pass
    for table in TABLES:
        for _ in seen.rows(table):
            pass
    return digest.value()
