"""The private door of a conversation: a socket at which its owner takes what is decided in another process.

Only the process that owns a conversation writes to it, and an agent that asks waits in that process: so an answer from
another terminal goes there, and not into the database. The one who answers is told at once what became of it. The
socket is in a folder that only this user can enter, under the name of the owner's token, which the database has.
"""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from bullpen.agents import process_tree
from bullpen.callers import UNKNOWN, caller
from bullpen.config import state_folder
from bullpen.conversation.conversation import Conversation
from bullpen.errors import BullpenError, DoorClosed

logger = logging.getLogger(__name__)

MOST_BYTES = 1024 * 1024
"""Of what is decided, and of what became of it."""
READ_SECONDS = 5.0
ANSWER_SECONDS = 30.0
LONGEST_ADDRESS = 100
"""Bytes; some systems take four more."""
BACKLOG = 1
"""Others wait. The loop of asyncio logs a traceback for each place in it when no file descriptor is left."""
TIDY_SECONDS = 3600.0
"""How often sockets of processes that were killed are removed. Each that lives is woken by that."""
TIDIED = ".tidied"
PRIVATE = 0o700


class Decided(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What somebody decides: a command that changes a conversation, and what it is given."""

    action: str
    given: dict[str, Any] = {}
    by: str | None = None
    """Who decides; None: the only person of the team, else its owner."""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of it."""

    told: str = ""
    problem: str = ""
    """Why nothing was done."""


@asynccontextmanager
async def private_door(conversation: Conversation, token: str) -> AsyncIterator[None]:
    """Let other processes of this user decide in a conversation that this one owns, if there can be such a socket."""
    opening = asyncio.create_task(asyncio.to_thread(_listener, door_of(token)))
    try:
        # Who stops waiting for it closes it nevertheless: a thread cannot be stopped.
        listener = await asyncio.shield(opening)
        if listener is None:
            yield
            return
        take = partial(_take, conversation)
        server = await asyncio.start_unix_server(take, sock=listener, limit=MOST_BYTES, backlog=BACKLOG)
        try:
            yield
        finally:
            server.close()
    finally:
        if (opened := await opening) is not None:
            opened.close()
            with contextlib.suppress(OSError):
                door_of(token).unlink()


def decide(token: str, decided: Decided) -> str:
    """Have the owner with this token do something; return what it tells, or raise BullpenError."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(ANSWER_SECONDS)
        try:
            with _address(door_of(token)) as address:
                line.connect(address)
        except OSError as error:
            raise DoorClosed from error
        try:
            line.sendall(msgspec.json.encode(decided) + b"\n")
            with line.makefile("rb") as answers:
                outcome = msgspec.json.decode(answers.readline(MOST_BYTES), type=Outcome)
        except (OSError, msgspec.MsgspecError) as error:
            raise BullpenError("Its process does not say what became of that. `bullpen inbox` shows it.") from error
    if outcome.problem:
        raise BullpenError(outcome.problem)
    return outcome.told


def door_of(token: str) -> Path:
    """Return where the socket of an owner is."""
    # In a damaged database, a token may be anything.
    return state_folder() / "doors" / token.encode(errors="surrogatepass").hex()[:64]


async def _take(conversation: Conversation, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take one decision, and tell what became of it."""
    try:
        # Before anything else: who has sent something may end at once, and its number be another's.
        number = caller(writer.get_extra_info("socket"))
        peer = None if number is None else process_tree.process_id(number)
        async with asyncio.timeout(READ_SECONDS):
            line = await reader.readline()
        outcome = await _outcome(conversation, line, peer)
        writer.write(msgspec.json.encode(outcome) + b"\n")
        await writer.drain()
    except (OSError, TimeoutError, ValueError):
        # It has left, says nothing, or does not end: there is nobody to tell.
        pass
    finally:
        writer.close()


async def _outcome(conversation: Conversation, line: bytes, peer: process_tree.ProcessId | None) -> Outcome:
    # Hardly ever needed, and a conversation opens sooner without.
    from bullpen.view.commands import ACTIONS, Typed, read_form, run_command

    is_agent = None if peer is None else await asyncio.to_thread(process_tree.is_of_an_agent, peer)
    if is_agent is None:
        return Outcome(problem=UNKNOWN)
    if is_agent:
        return Outcome(problem="An agent cannot answer what agents ask. Nothing was done.")
    try:
        decided = msgspec.json.decode(line, type=Decided)
        command = ACTIONS.get(decided.action)
        if command is None:
            return Outcome(problem=f"There is no action {decided.action!r}. Nothing was done.")
        typed = Typed(command, read_form(command.takes, dict(decided.given)))
        return Outcome(told=await run_command(typed, conversation, decided.by))
    except (BullpenError, msgspec.MsgspecError) as error:
        return Outcome(problem=str(error))
    except Exception as error:
        logger.exception("not decided conversation=%s", conversation.id)
        return Outcome(problem=f"This is a bug in bullpen, sorry: {type(error).__name__}")


def _listener(door: Path) -> socket.socket | None:
    """Return a socket that listens; None if there cannot be one: then only this process takes decisions."""
    listener = socket.socket(socket.AF_UNIX)
    try:
        door.parent.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        _check_private(door.parent)
        _remove_dead(door.parent)
        with _address(door) as address:
            listener.bind(address)
    except OSError as error:
        logger.info("no private door folder=%s error=%s", door.parent, error)
        listener.close()
        return None
    return listener


def _check_private(folder: Path) -> None:
    found = folder.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o777 & ~PRIVATE:
        raise PermissionError(errno.EPERM, "others could enter it", str(folder))


def _remove_dead(folder: Path) -> None:
    """Remove the sockets of processes that were killed, if nobody has looked for them lately."""
    note = folder / TIDIED
    with contextlib.suppress(OSError):
        if time.time() - note.stat().st_mtime < TIDY_SECONDS:
            return
    note.touch()
    for door in set(folder.iterdir()) - {note}:
        with socket.socket(socket.AF_UNIX) as line, contextlib.suppress(OSError), _address(door) as address:
            line.settimeout(0.0)
            try:
                line.connect(address)
            except ConnectionRefusedError:
                door.unlink()


@contextmanager
def _address(door: Path) -> Iterator[str]:
    """Yield an address that is short enough: a long one goes by way of the folder that is open here."""
    if len(os.fsencode(door)) <= LONGEST_ADDRESS or not process_tree.LINUX:
        yield str(door)
        return
    folder = os.open(door.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{door.name}"
    finally:
        os.close(folder)
