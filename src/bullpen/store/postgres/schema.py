"""The tables: created and migrated by the scripts in sql/, one process at a time."""

from functools import cache
from pathlib import Path

from bullpen.errors import StoreFailed, StoreTooNew, StoreTooOld
from bullpen.store.postgres.connections import Connections, Db

SCRIPTS = Path(__file__).with_name("sql")

OLDEST_SERVER = 13
"""The major version. The tests run with newer ones."""
LOCK = 0x62756C6C70656E  # "bullpen"
MIGRATIONS = "CREATE TABLE IF NOT EXISTS migrations (number integer PRIMARY KEY, name text NOT NULL)"
IS_THERE = "SELECT to_regclass('migrations') IS NOT NULL"
UTF8 = "Create a database for bullpen: createdb --encoding=UTF8 --template=template0 bullpen"


@cache
def scripts() -> tuple[Path, ...]:
    """Return the migrations in order; their number is the version of the format."""
    return tuple(sorted(SCRIPTS.glob("*.sql")))


def prepare(connections: Connections) -> None:
    """Bring the tables into the newest format, or raise why this database cannot be used."""
    shown = connections.address.shown
    with connections.reading() as db:
        encoding, is_there = db.execute("SHOW server_encoding"), db.execute(IS_THERE)
        if db.server_version < OLDEST_SERVER:
            raise StoreTooOld(shown, db.server_version, OLDEST_SERVER)
        if encoding.fetchone() != ("UTF8",):
            raise StoreFailed(shown, "its encoding is not UTF8", UTF8)
        found = _version(db) if is_there.fetchone() == (True,) else 0
    if found > len(scripts()):
        raise StoreTooNew(shown, found, len(scripts()))
    if found < len(scripts()):
        _migrate(connections)


def _migrate(connections: Connections) -> None:
    """Apply the scripts that are new, all or none. Others wait meanwhile, and find that it is done."""
    with connections.writing() as db:
        db.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        db.execute(MIGRATIONS)
        version = _version(db)
        for number, script in enumerate(scripts()[version:], start=version + 1):
            for statement in _statements(script.read_text(encoding="utf-8")):
                db.execute(statement)
            db.execute("INSERT INTO migrations VALUES (%s, %s)", (number, script.stem))


def _version(db: Db) -> int:
    row = db.execute("SELECT count(*) FROM migrations").fetchone()
    return int(row[0]) if row else 0


def _statements(script: str) -> list[bytes]:
    """Return the statements of a script. In a pipeline, each is sent on its own; none has a semicolon in it."""
    lines = "\n".join(line.partition("--")[0].rstrip() for line in script.splitlines())
    return [statement.strip().encode() for statement in lines.split(";") if statement.strip()]
