"""The tables: created and migrated by the scripts in sql/, and checked when a file is opened."""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from sqlite3 import SQLITE_ERROR, Connection, OperationalError, complete_statement

from bullpen.store.files import APPLICATION_ID
from bullpen.store.packing import DamagedData

SCRIPTS = Path(__file__).with_name("sql")

# Checking all pages takes a millisecond per megabyte, so larger files are only checked where they will be written.
SMALL_PAGES = 1024


@cache
def scripts() -> tuple[Path, ...]:
    """Return the migrations in order; their number is the version of the format."""
    return tuple(sorted(SCRIPTS.glob("*.sql")))


def latest_version() -> int:
    """Return the version of the format that this bullpen writes."""
    return len(scripts())


def build(db: Connection) -> None:
    """Create the tables in a new file."""
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    migrate(db)
    db.execute("PRAGMA journal_mode = WAL")


def migrate(db: Connection) -> None:
    """Apply the scripts that are new to this file, each in its own transaction."""
    version = version_of(db)
    for number, script in enumerate(scripts()[version:], start=version + 1):
        _apply(db, number, script)


def _apply(db: Connection, number: int, script: Path) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster.
        if version_of(db) < number:
            for statement in _statements(script.read_text(encoding="utf-8")):
                db.execute(statement)
            db.execute("INSERT INTO migrations VALUES (?, ?, ?)", (number, script.stem, _schema_sha256(db)))
            db.execute(f"PRAGMA user_version = {number}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _statements(script: str) -> Iterator[str]:
    # Not Connection.executescript, which would commit first.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if complete_statement(statement):
            yield statement
            statement = ""


def check(db: Connection) -> None:
    """Raise DamagedData or sqlite3.Error if the tables are not ours, as far as a quick check can tell."""
    if not _is_as_recorded(db):
        raise DamagedData("its tables are not those that bullpen created")
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    if pages <= SMALL_PAGES:
        _check_pages(db)
    else:
        _touch(db)


def _is_as_recorded(db: Connection) -> bool:
    query = "SELECT schema_sha256 FROM migrations ORDER BY number DESC LIMIT 1"
    try:
        return bool(db.execute(query).fetchone() == (_schema_sha256(db),))
    except OperationalError as error:
        # No such table or column; without a code, text that cannot be decoded.
        if getattr(error, "sqlite_errorcode", SQLITE_ERROR) == SQLITE_ERROR:
            return False
        raise


def _check_pages(db: Connection) -> None:
    """Raise DamagedData with the first problem that SQLite's own check finds."""
    # fsck finds impossible rows, and can name them.
    db.execute("PRAGMA ignore_check_constraints = ON")
    (result,) = db.execute("PRAGMA quick_check(1)").fetchone()
    db.execute("PRAGMA ignore_check_constraints = OFF")
    if result != "ok":
        raise DamagedData(str(result))


def _touch(db: Connection) -> None:
    """Read the end of every table, which is where the next message goes."""
    for table in (
        "conversations",
        "states",
        "speakers",
        "messages",
        "turns",
        "prompts",
        "streams",
        "stream_parts",
        "memories",
        "decisions",
        "changes",
        "checks",
        "approvals",
        "said_data",
        "indexed",
    ):
        db.execute(f"SELECT * FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()  # noqa: S608
    db.execute("SELECT rowid FROM said WHERE said MATCH 'x' LIMIT 1").fetchone()


def version_of(db: Connection) -> int:
    """Return the version of the format that a file has."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def _schema_sha256(db: Connection) -> bytes:
    # SQLite's internal tables may come and go, and VACUUM moves tables; neither changes the schema.
    rows = db.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    )
    return hashlib.sha256("\n".join(sorted("\0".join(map(str, row)) for row in rows)).encode()).digest()
