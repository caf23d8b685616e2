"""A record of every running child, so that the next start can end what a crash left running."""

import contextlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from bullpen.agents import process_tree


class Record(Struct, frozen=True, kw_only=True):
    """One child: its process, the process that started it, and the boot of the machine."""

    turn_id: str
    child: process_tree.ProcessId
    owner: process_tree.ProcessId
    boot_id: str


class CrashRecords:
    """Records in a folder, one file for each running child."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or default_folder()

    def record(self, pid: int, turn_id: str) -> None:
        """Record a child that was just started. If that fails, a crash may leave it running."""
        child, owner = process_tree.process_id(pid), process_tree.process_id(os.getpid())
        if child is None or owner is None:
            return
        record = Record(turn_id=turn_id, child=child, owner=owner, boot_id=process_tree.boot_id())
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
            record = _read(file)
            if record is None or not _is_owned(record):
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
    if once and os.getpid() in _ended_by:
        return
    _ended_by.add(os.getpid())
    CrashRecords().end_all()


def may_have_left_something() -> bool:
    """Return whether ending leftover processes is worth a thread. Nearly always there is no record at all."""
    return CrashRecords().are_there()


def default_folder() -> Path:
    """Return the folder for records: the state folder of this user."""
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    except RuntimeError:
        # No home folder: a container may run us as a user id without a name.
        import tempfile

        state = Path(tempfile.gettempdir(), f"bullpen-{os.getuid()}")
    return state / "bullpen" / "running"


def _read(file: Path) -> Record | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def _is_owned(record: Record) -> bool:
    """Return whether the process that started the child is still running and will end it itself."""
    return record.boot_id == process_tree.boot_id() and process_tree.is_alive(record.owner)


def _end(record: Record) -> bool:
    if record.boot_id != process_tree.boot_id():
        return False
    remaining = process_tree.processes_of_turn(record.turn_id)
    if process_tree.is_alive(record.child):
        remaining += [record.child, *process_tree.descendants(record.child.pid)]
    process_tree.end(remaining)
    return bool(remaining)
