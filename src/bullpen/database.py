"""The database file: opened for one command, or shared within an event loop."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from bullpen.config import default_database
from bullpen.errors import BullpenError, MissingExtra, NoConversations
from bullpen.store.base import Finding as StoredFinding
from bullpen.store.base import Store
from bullpen.store.files import has_log
from bullpen.store.sqlite import SqliteStore
from bullpen.store.thread import Desk

if TYPE_CHECKING:
    from bullpen.store.backup import Contents, Restored
    from bullpen.store.postgres.store import PostgresStore
    from bullpen.store.transfer import Transferable

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

Database = Store
"""What a user interface holds. `view` decides what to show of it."""
Finding = StoredFinding
"""One problem with the stored data."""


def database_path(path: Path | None = None) -> Path:
    """Return the file, or the user's default."""
    return default_database() if path is None else Path(path)


def open_database(path: Path | None = None) -> Database:
    """Open the file, or the user's default; raise NoConversations if it does not exist: reading must not create it."""
    path = database_path(path)
    if not path.exists() and not has_log(path):
        raise NoConversations
    return SqliteStore(path)


def open_or_create_database(path: Path | None = None) -> Database:
    """Open the file, or the user's default, and create it if it does not exist."""
    return SqliteStore(database_path(path))


def back_up(path: Path | str | None, target: Path, *, overwrite: bool) -> "Contents":
    """Write a backup of the file, of the user's default, or of what is on a server. All may be in use."""
    # Nothing else needs it, and commands start faster without.
    from bullpen.store import backup

    if isinstance(path, str):
        with _open_server(path) as store, store.copying_all() as copies:
            return backup.back_up_copies(store.path, copies, target, overwrite=overwrite)
    return backup.back_up(database_path(path), target, overwrite=overwrite)


def restore(path: Path | None, source: Path | None) -> "Restored":
    """Put a backup in the place of the file, or of the user's default; None: what the file has without a lost log."""
    from bullpen.store import backup

    if source is None:
        return backup.keep_what_is_left(database_path(path))
    return backup.restore(source, database_path(path))


def is_server(address: str) -> bool:
    """Return whether this is the address of a PostgreSQL server, and not a file."""
    return address.startswith(("postgresql://", "postgres://"))


def open_source(address: str) -> "Transferable":
    """Open a file that exists, or a server, to copy conversations from it."""
    if is_server(address):
        return _open_server(address)
    if not Path(address).exists() and not has_log(Path(address)):
        raise BullpenError(f"There is no file {address}. Nothing was copied.")
    return SqliteStore(address)


def open_target(address: str) -> "Transferable":
    """Open a file or a server to copy conversations there; a file that is missing is created."""
    return _open_server(address) if is_server(address) else SqliteStore(address)


def shown_address(address: str) -> str:
    """Return a file or an address as it may be shown: without the password."""
    if not is_server(address):
        return address
    from bullpen.store.postgres.address import read_address

    return read_address(address).shown


def _open_server(address: str) -> "PostgresStore":
    # Never for one machine, which needs none of this.
    try:
        from bullpen.store.postgres.store import PostgresStore
    except ImportError as error:
        raise MissingExtra("cluster", error.name or "psycopg with libpq") from None
    return PostgresStore(address)


class SharedDatabase:
    """A database, and where the work with it is done."""

    def __init__(self, database: Database, thread: Desk) -> None:
        self.database = database
        self.thread = thread

    async def read(
        self,
        work: Callable[Concatenate[Database, Arguments], Result],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Result:
        """Call a function with the database, in its thread."""
        return await self.thread.do(work, self.database, *args, **kwargs)
