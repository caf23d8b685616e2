"""Every step at which a process that works with files can be killed. It imports nothing of the product.

A step is a call that changes the disk (a file that is renamed, removed, linked or written through, a folder that is
made or removed), the beginning and the end of a call that writes to the store, and a program that is started: before
it, while it runs, and while it runs and is killed, too.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

SYSTEM_CALLS = ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "symlink")
STORE_CALLS = (
    *("append", "extend", "update", "start_turn", "end_turn", "keep_output", "requeue", "add_changes"),
    *("finish_changes", "recover", "claim", "delete"),
)
LONGEST_GIT_SECONDS = 0.008
Step = Callable[[str, "subprocess.Popen[bytes] | None"], None]


def at_each(step: Step, store: type) -> None:
    """Call something at each step of this process from now on, with its name, and the program that was started."""
    for name in SYSTEM_CALLS:
        setattr(os, name, _before(getattr(os, name), partial(step, name, None)))
    for name in STORE_CALLS:
        setattr(store, name, _around(getattr(store, name), partial(step, f"store.{name}", None)))
    popen = subprocess.Popen

    class Counted(popen):  # type: ignore[misc,valid-type]
        def __init__(self, *given: Any, **named: Any) -> None:
            step("a program", None)
            super().__init__(*given, **named)
            if isinstance(self.args, list) and Path(self.args[0]).name == "git":
                step("git runs", None)
                step("git is killed", self)

    subprocess.Popen = Counted  # type: ignore[misc]


def dying_at(number: int, chance: random.Random) -> Step:
    """Return a step that is the last one of this process, if it is this one."""
    left = number

    def step(_: str, program: "subprocess.Popen[bytes] | None") -> None:
        nonlocal left
        left -= 1
        if left < 0:
            if program is not None:
                time.sleep(chance.uniform(0, LONGEST_GIT_SECONDS))
                # It leads a session of its own.
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def _before(function: Any, step: Callable[[], None]) -> Any:
    def called(*given: Any, **named: Any) -> Any:
        step()
        return function(*given, **named)

    return called


def _around(function: Any, step: Callable[[], None]) -> Any:
    def called(*given: Any, **named: Any) -> Any:
        step()
        result = function(*given, **named)
        step()
        return result

    return called
