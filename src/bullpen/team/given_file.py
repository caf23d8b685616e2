"""A file that a person names on the command line, opened without waiting for anybody."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

OPEN_ALREADY = ("/dev/fd/", "/proc/")
"""Where a shell puts what it has opened itself, such as standard input and `<(a command)`. That has another end."""


def open_given(path: Path) -> BinaryIO:
    """Open a file to read it; OSError is raised for a named pipe, a device and the like, which may never end."""
    # Non-blocking: opening a pipe would wait for its writer.
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode):
        return file
    if stat.S_ISFIFO(mode) and os.path.realpath(path).startswith(OPEN_ALREADY):
        os.set_blocking(file.fileno(), True)
        return file
    file.close()
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))
