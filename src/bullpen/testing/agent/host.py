"""Where an agent plays: its streams, its folder, its variables, and how it waits. Each thread can have its own."""

import os
import time

# Importing it from threading would cost more than the rest of the program.
from _thread import _local
from collections.abc import MutableMapping
from importlib import import_module

# The C half of signal; the Python half makes enums of its numbers, which takes longer than an answer.
_signal = import_module("_signal")


class Host:
    """This process."""

    @property
    def environ(self) -> MutableMapping[str, str]:
        """The environment."""
        return os.environ

    @property
    def folder(self) -> str:
        """The working folder."""
        return os.getcwd()  # noqa: PTH109 - pathlib is slow to import

    def path(self, path: str) -> str:
        """Return where a path of the script leads to."""
        return path

    def read(self, fd: int, size: int) -> bytes:
        """Read what there is; nothing at the end."""
        return os.read(fd, size)

    def write(self, data: memoryview, fd: int) -> int:
        """Write some of the bytes, and return how many."""
        return os.write(fd, data)

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def take_signals(self, sigterm_exit: int | None) -> None:
        """Handle SIGINT and SIGTERM even if our parent ignores them."""
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
        _signal.signal(_signal.SIGTERM, _signal.SIG_DFL if sigterm_exit is None else lambda *_: os._exit(sigterm_exit))


class Here(_local):
    """The host of this thread."""

    host = Host()


here = Here()
