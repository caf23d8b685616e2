"""A session in the hands of one turn, on the machine where its file is: taken, marked, and put back after a bad end.

A session that continues wrongly is worse than none. If anything about its file is uncertain, it is not taken, and
people are told the reason.
"""

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from bullpen.agents.session_file import compared, find_session_file, is_session_id, mark_of, put_back
from bullpen.agents.session_lock import SessionLock
from bullpen.agents.spec import SessionSpec
from bullpen.memory import FileMark, SessionLeft, SessionUse
from bullpen.turn_events import Started

logger = logging.getLogger(__name__)

NO_FILE = FileMark(size=0, digest="")
GONE = "the file of its session is gone"


class WantedSession(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session that a turn is to continue, and what its file was after the last turn in it."""

    id: str
    mark: FileMark
    left_until: int = 0
    """Until when a turn that ended badly may have added to it, in milliseconds since 1970; 0: there was none."""
    is_copied: bool = False
    """Whether it belongs to somebody else, so that the turn continues in a copy."""


def why_not_here(
    sessions: SessionSpec, environment: Mapping[str, str], wanted: WantedSession
) -> tuple[str, Path | None]:
    """Return why a session cannot be continued as its file is now; nothing if it can.

    Its file comes with that if a turn that ended badly has left something in it, which is to be cut off.
    """
    file = find_session_file(sessions, environment, wanted.id)
    # An empty one would vouch for nothing.
    if file is None or wanted.mark.size < 1:
        return GONE, None
    try:
        match compared(file, wanted.mark):
            case "same":
                return "", None
            case "longer" if wanted.is_copied:
                return "its session was continued elsewhere", None
            case "longer" if file.stat().st_mtime_ns // 1_000_000 <= wanted.left_until:
                return "", file
            case "longer":
                # Somebody wrote to it later: a person, who continued the session with the CLI itself.
                return "somebody else continued its session", None
            case _:
                return "the file of its session is not what its last turn left", None
    except OSError as error:
        return f"the file of its session cannot be read ({error.strerror})", None


def hold(
    sessions: SessionSpec, environment: Mapping[str, str], wanted: WantedSession
) -> tuple[str, SessionLock | None]:
    """Take a session for a turn: return why that is not possible, or else its lock.

    The lock comes first: until we have it, another turn may change the file.
    """
    if not is_session_id(wanted.id):
        # An imported session may call itself anything, the path of a person's file for example.
        return GONE, None
    lock, reason = SessionLock(wanted.id), "it was not looked at"
    try:
        reason = _not_locked(lock) or _not_as_it_was(sessions, environment, wanted)
    finally:
        if reason:
            lock.release()
    return reason, None if reason else lock


def _not_locked(lock: SessionLock) -> str:
    """Take a lock, and return why a turn may not run in its session; nothing if it may."""
    try:
        # Not in a copy either: that would have what the other turn has written so far.
        return "" if lock.hold() else "another turn runs in its session"
    except OSError as error:
        return f"its session cannot be locked ({error.strerror})"


def _not_as_it_was(sessions: SessionSpec, environment: Mapping[str, str], wanted: WantedSession) -> str:
    """Cut off what a turn that ended badly has left, and return why the session cannot be continued."""
    reason, longer = why_not_here(sessions, environment, wanted)
    try:
        if longer is not None:
            put_back(longer, wanted.mark)
    except OSError as error:
        return f"the file of its session cannot be written ({error.strerror})"
    return reason


def take_out(sessions: SessionSpec, environment: Mapping[str, str], wanted: WantedSession) -> None:
    """Take out of a session that we hold what a turn left in it that ended badly. If that fails, the next turn does."""
    if wanted.is_copied:
        return
    with suppress(OSError):
        file = find_session_file(sessions, environment, wanted.id)
        if file is not None and compared(file, wanted.mark) == "longer":
            put_back(file, wanted.mark)


def session_left(
    sessions: SessionSpec, environment: Mapping[str, str], use: SessionUse, started: Started, known: int
) -> SessionLeft:
    """Return the session that a turn leaves which ended well; `known` is how large its file was before."""
    session_id = _session_after(use, started)
    file = find_session_file(sessions, environment, session_id)
    mark, is_shortened = _read(file, known, sessions.shortened)
    # Without the turn in it, the next one would continue without knowing what this one was given.
    return SessionLeft(id=session_id if mark.size > known else "", file=mark, is_shortened=is_shortened)


def _session_after(use: SessionUse, started: Started) -> str:
    """Return the session that a turn ran in; nothing if it was to be a copy, and is not known to be one."""
    if use.origin == "forked":
        return started.session_id if started.session_id and started.session_id != use.id else ""
    return started.session_id or use.id


def _read(file: Path | None, start: int, shortened: Iterable[str]) -> tuple[FileMark, bool]:
    """Return what a session's file is now, and whether the CLI has shortened the history in what it added."""
    if file is None:
        return NO_FILE, False
    try:
        mark = mark_of(file)
        with file.open("rb") as opened:
            opened.seek(min(start, mark.size))
            added = opened.read()
            return mark, any(words.encode() in added for words in shortened)
    except OSError as error:
        logger.warning("session file not read file=%s error=%s", file, error)
        return NO_FILE, False
