"""A record of every running child, so that the next start can end what a crash left running."""

import contextlib
import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from bullpen.agents import process_tree
from bullpen.config import state_folder

# No turn takes as long as this, so a record that is older is not of a turn that runs on another machine.
KEPT_SECONDS = 7 * 24 * 3600


class Record(Struct, frozen=True, kw_only=True):
    """One child: its process, its guardian, the process of bullpen that it belongs to, and where their pids count."""

    turn_id: str
    child: process_tree.ProcessId
    guardian: process_tree.ProcessId | None = None
    owner: process_tree.ProcessId
    boot_id: str
    namespace: str = ""


class CrashRecords:
    """Records in a folder, one file for each running child."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_folder() / "running"

    def record(self, pid: int, turn_id: str, guardian_pid: int | None = None) -> None:
        """Record a child that was just started. If that fails, a crash may leave it running."""
        child, owner = process_tree.process_id(pid), process_tree.process_id(os.getpid())
        if child is None or owner is None:
            return
        record = Record(
            turn_id=turn_id,
            child=child,
            guardian=None if guardian_pid is None else process_tree.process_id(guardian_pid),
            owner=owner,
            boot_id=process_tree.boot_id(),
            namespace=process_tree.pid_namespace(),
        )
        with contextlib.suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            unfinished = self._file(turn_id).with_suffix(".new")
            unfinished.write_bytes(msgspec.json.encode(record))
            unfinished.replace(self._file(turn_id))

    def forget(self, turn_id: str) -> None:
        """Remove the record of a child that has ended."""
        with contextlib.suppress(OSError):
            self._file(turn_id).unlink()

    def are_there(self) -> bool:
        """Return whether there is any record, of a crash or of a running child. This is fast."""
        return bool(self._files())

    def end_all(self) -> int:
        """End every process of turns whose owner is dead. Return how many turns had left something running."""
        ended = 0
        for file in self._files():
            try:
                record = _read(file)
            except OSError:
                # It cannot be read now, or somebody else has just removed it.
                continue
            if record is not None and (_is_owned(record) or _may_count_elsewhere(record, file)):
                continue
            ended += record is not None and _end(record)
            with contextlib.suppress(OSError):
                file.unlink()
        return ended

    def _files(self) -> list[Path]:
        try:
            return sorted(self.folder.glob("*.json"))
        except OSError:
            return []

    def _file(self, turn_id: str) -> Path:
        return self.folder / f"{turn_id}.json"


_ended_by: set[int] = set()


def end_leftover_processes(*, once: bool = False) -> None:
    """End what an earlier bullpen process left running; with `once`, only the first time in this process."""
    if once and were_leftovers_ended():
        return
    _ended_by.add(os.getpid())
    CrashRecords().end_all()


def were_leftovers_ended() -> bool:
    """Return whether this process has looked for leftovers of others before."""
    return os.getpid() in _ended_by


def may_have_left_something() -> bool:
    """Return whether ending leftover processes is worth a thread. Nearly always there is no record at all."""
    return CrashRecords().are_there()


def _read(file: Path) -> Record | None:
    """Return a record, or None if it is damaged."""
    data = file.read_bytes()
    try:
        return msgspec.json.decode(data, type=Record)
    except msgspec.MsgspecError:
        return None


def _is_here(record: Record) -> bool:
    """Return whether the pids of a record are those of this machine since it was started, and of this container."""
    return (record.boot_id, record.namespace) == (process_tree.boot_id(), process_tree.pid_namespace())


def _is_owned(record: Record) -> bool:
    """Return whether the process that a child belongs to is still running and will end it itself."""
    return _is_here(record) and process_tree.is_alive(record.owner)


def _may_count_elsewhere(record: Record, file: Path) -> bool:
    """Return whether a record may be of a turn on another machine, or in a container, with the same state folder."""
    try:
        return not _is_here(record) and time.time() - file.stat().st_mtime < KEPT_SECONDS
    except OSError:
        return False


def _end(record: Record) -> bool:
    """End what is left of a turn, and return whether anything was."""
    if not _is_here(record):
        return False
    was_any = process_tree.end_firmly(lambda: _remaining(record))
    if record.guardian and not process_tree.descendants(record.guardian.pid):
        # It should have ended by now.
        process_tree.end([record.guardian])
    return was_any


def _remaining(record: Record) -> list[process_tree.ProcessId]:
    """Return what still runs of a turn."""
    roots = [root for root in (record.guardian, record.child) if root is not None and process_tree.is_alive(root)]
    families = [process for root in roots for process in process_tree.descendants(root.pid)]
    child = [record.child] if record.child in roots else []
    return [*process_tree.processes_of_turn(record.turn_id), *families, *child]
