"""Backups: one file with everything, checked before it gets its name; and putting one in the place of the database.

A backup is a database without a log, so it can be copied, kept on any disk, and read by every command with --db.
"""

import fcntl
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec import Struct

from bullpen.errors import BullpenError, NoConversations, OutputExists, StoreDamaged
from bullpen.store import files, fsck, schema, write_ahead_log
from bullpen.store.base import Finding
from bullpen.store.database import Database, connect, open_here, store_error
from bullpen.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from bullpen.store.transfer import Copied

# SQLite's errors about what is read while copying; the others are about what is written.
ABOUT_SOURCE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

CONTENTS = "SELECT count(*), coalesce(sum(messages), 0), coalesce(max(last_at), 0) FROM states"


class Contents(Struct, frozen=True):
    """What is in a database."""

    conversations: int
    messages: int
    last_at: int
    """When something was last said or done; 0 if there is nothing."""
    stuck: int = 0
    """How many of the conversations refuse what is said in them, which can be mended."""


class Restored(Struct, frozen=True, kw_only=True):
    """A database that was put in the place of another."""

    contents: Contents
    findings: tuple[Finding, ...]
    """What is wrong with it: nothing, if it is from a backup."""
    kept: Path | None
    """Where the other one is now, if there was one."""


def back_up(path: Path, target: Path, *, overwrite: bool = False) -> Contents:
    """Write a backup of a database, which may be in use, and check it before it gets its name."""
    if not path.exists():
        raise NoConversations
    path = path.resolve()
    if target.resolve() in [path.with_name(path.name + ending) for ending in files.ENDINGS]:
        raise BullpenError(f"{target.absolute()} belongs to the database itself. Choose another file.")

    def fill(draft: Path) -> None:
        with closing(Database(path)) as database:
            _copy(database, draft, target)

    return _write(path, target, fill, overwrite=overwrite)


def back_up_copies(source: object, copies: Iterable["Copied"], target: Path, *, overwrite: bool = False) -> Contents:
    """Write a backup of conversations of another store, and check it before it gets its name."""

    def fill(draft: Path) -> None:
        draft.unlink()
        with SqliteStore(draft) as store:
            # A file without a single conversation has its tables, too.
            store.conversations()
            for copied in copies:
                store.copy_in(copied)
        with closing(connect(draft, "mode=rw")) as copy:
            copy.execute("PRAGMA journal_mode = DELETE")

    return _write(source, target, fill, overwrite=overwrite)


def _write(source: object, target: Path, fill: Callable[[Path], None], *, overwrite: bool) -> Contents:
    """Have a draft filled, check it, and give it its name."""
    target = target.absolute()
    if target.is_dir():
        raise BullpenError(f"{target} is a folder. Choose a name for the backup in it.")
    if os.path.lexists(target):
        if not overwrite:
            raise OutputExists(target)
        _check_is_no_database_in_use(target)
    with files.draft_of(target) as draft:
        fill(draft)
        contents = _contents(draft, _check(draft, source))
        files.sync(draft)
        with _locked(target) as there, _locked(draft):
            if there is not None:
                _check_has_no_log(target)
            files.put_synced(draft, target, overwrite=overwrite)
    return contents


def restore(backup: Path, path: Path) -> Restored:
    """Put a backup in the place of a database, if it is complete and nobody has the database open."""
    if not backup.exists():
        raise BullpenError(f"There is no file {backup}. Nothing was changed.")
    backup, path = backup.resolve(), path.resolve()
    if backup == path:
        raise BullpenError(f"{backup} is the database itself. Choose a backup of it.")
    if files.has_log(backup):
        hint = f"Make a backup of it first: bullpen backup FILE --db {backup}"
        raise BullpenError(f"{backup} is a database that is in use, or was when its process died. {hint}")
    files.check_file(backup, schema.latest_version(), has_log=False)
    files.make_folder_of(path)
    with files.draft_of(path) as draft:
        shutil.copyfile(backup, draft)
        findings = _findings(draft, backup)
        if damage := [finding for finding in findings if finding.kind != "stuck"]:
            raise _damaged(backup, damage[0].text)
        contents = _contents(draft, findings)
        # Before the lock, since it may take long, and other processes that open the database wait meanwhile.
        files.sync(draft)
        with _locked(path) as file:
            return Restored(contents=contents, findings=(), kept=_put_in_place(draft, path, file))


def keep_what_is_left(path: Path) -> Restored:
    """Continue with what a database has whose log was lost. The files as they were are kept."""
    if not path.exists():
        raise NoConversations
    path = path.resolve()
    with files.draft_of(path) as draft, _locked(path) as file:
        if file is None or not write_ahead_log.damage(path):
            raise BullpenError(f"No log of {path} was lost, so nothing was changed. `bullpen fsck` checks the rest.")
        with draft.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        if files.has_log(path):
            shutil.copyfile(files.log_of(path), files.log_of(draft))
        findings = _findings(draft, path)
        damage = tuple(finding for finding in findings if finding.kind != "stuck")
        contents = _contents(draft, findings)
        files.sync(draft)
        return Restored(contents=contents, findings=damage, kept=_put_in_place(draft, path, file))


def _copy(database: Database, draft: Path, target: Path) -> None:
    """Copy one state of a database, no matter what others write meanwhile."""
    with database.reading() as db:
        try:
            with closing(connect(draft, "mode=rw")) as copy:
                # So that nothing is needed beside it, which some disks could not hold.
                copy.executescript("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF;")
                db.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
                # Nobody has the copy open.
                copy.execute("UPDATE states SET owner = NULL")
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in ABOUT_SOURCE:
                raise
            raise store_error(target, error) from error


def _check(draft: Path, source: object) -> list[Finding]:
    """Raise StoreDamaged if a backup does not hold what was said, by every message's hash; return what is stuck."""
    with closing(connect(draft, "mode=ro&immutable=1")) as db:
        findings = [*fsck.check_file(db), *fsck.check_conversations(db, None), *fsck.check_index(db)]
    for finding in findings:
        if finding.kind != "stuck":
            raise StoreDamaged(source, finding.text, "No backup was written. `bullpen fsck` says more.")
    return findings


def _findings(draft: Path, named: Path) -> list[Finding]:
    """Bring a copy into the newest format, and return what is wrong with it."""
    try:
        # The first write brings it into that format; closing puts its log into it, which it must not need any more.
        with closing(Database(draft)) as database, database.writing():
            pass
        with SqliteStore(draft) as store:
            return store.fsck()
    except StoreDamaged as error:
        raise _damaged(named, error.reason) from error


def _damaged(path: Path, reason: str) -> StoreDamaged:
    return StoreDamaged(path, reason, "Nothing was changed. Use another backup.")


def _contents(path: Path, findings: Iterable[Finding]) -> Contents:
    stuck = {finding.conversation_id for finding in findings if finding.kind == "stuck"}
    with closing(connect(path, "mode=ro&immutable=1")) as db:
        conversations, messages, last_at = db.execute(CONTENTS).fetchone()
    return Contents(conversations, messages, last_at, len(stuck))


def _check_is_no_database_in_use(path: Path) -> None:
    with _locked(path):
        _check_has_no_log(path)


def _check_has_no_log(path: Path) -> None:
    if files.has_log(path):
        raise BullpenError(f"{path} is a database with a log beside it, not a backup. Choose another file.")


@contextmanager
def _locked(path: Path) -> Iterator[BinaryIO | None]:
    """Keep everybody from opening a database, and give its file if there is one; or raise that somebody has it open.

    The file must not be opened by another way meanwhile: closing that would give up the lock.
    """
    if not path.exists():
        yield None
        return
    if open_here(path):
        raise _in_use(path)
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, *files.ALL_LOCKS)
        except (BlockingIOError, PermissionError):
            raise _in_use(path) from None
        status = os.fstat(file.fileno())
        if files.inode(path) != (status.st_dev, status.st_ino):
            # Another one has the name by now, which is not locked.
            raise _in_use(path)
        yield file


def _in_use(path: Path) -> BullpenError:
    return BullpenError(f"{path} is open in bullpen or another program. Close it there first. Nothing was changed.")


def _put_in_place(draft: Path, path: Path, file: BinaryIO | None) -> Path | None:
    """Give a copy the name of a locked database, and return the name that the database then has.

    If the power fails meanwhile, the index of its log is still there and says that the log is not. Until that index is
    removed nobody may open the copy either, so it is locked before it gets its name.
    """
    there = [ending for ending in files.ENDINGS if path.with_name(path.name + ending).exists()]
    kept = _free_name(path)
    for ending in there:
        source, name = (one.with_name(one.name + ending) for one in (path, kept))
        files.keep(source, name, None if ending else file)
    files.sync(path.parent)
    with _locked(draft):
        files.log_of(path).unlink(missing_ok=True)
        try:
            files.put_synced(draft, path, overwrite=file is not None)
        except OutputExists:
            # Somebody has created one meanwhile.
            raise _in_use(path) from None
        path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    return kept if there else None


def _free_name(path: Path) -> Path:
    name = f"{path.name}.before-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (path.with_name(name + more) for more in ("", *(f"-{number}" for number in range(2, 1000))))
    return next(free for free in names if not os.path.lexists(free))
