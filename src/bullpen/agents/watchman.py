"""Where there cannot be a guardian, as on macOS: a process that waits for our death, and ends what our records name."""

import contextlib
import logging
import os
import sys
from pathlib import Path

logger = logging.getLogger(__name__)

# It loads nothing of ours before it is needed. Its input ends when we are dead, or nearly.
_PROGRAM = """
import os, sys, time
os.read(0, 1)
from pathlib import Path
from bullpen.agents.crash_records import CrashRecords
for _ in range(20):
    CrashRecords(Path(sys.argv[1])).end_all()
    time.sleep(0.1)
"""

_watched: dict[Path, int] = {}
"""The folders of records, and our ends of the pipes. They are never closed, except by our end."""


def watch(folder: Path) -> None:
    """See that what is recorded in a folder ends soon after this process, however it ends."""
    if folder in _watched:
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
    command = [sys.executable, "-c", _PROGRAM, str(folder)]
    try:
        theirs, ours = os.pipe()
        with contextlib.closing(os.fdopen(theirs)), contextlib.ExitStack() as if_it_fails:
            if_it_fails.callback(os.close, ours)
            actions = [*nowhere, (os.POSIX_SPAWN_DUP2, theirs, 0)]
            # In a group of its own: a key in the terminal does not end it.
            os.posix_spawn(sys.executable, command, environment, file_actions=actions, setpgroup=0)
            if_it_fails.pop_all()
    except OSError as error:
        logger.warning("agents may run after a crash of bullpen until its next start error=%s", error)
        return
    _watched[folder] = ours


def _forget_after_fork() -> None:
    for pipe in _watched.values():
        os.close(pipe)
    _watched.clear()


os.register_at_fork(after_in_child=_forget_after_fork)
