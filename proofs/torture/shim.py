"""The shim between a process and its file system: compiled when it is needed, and told what to do."""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).with_name("shim.c")
ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "torture"

SHORT_WRITE = -1


def why_not() -> str:
    """Return why processes cannot be put behind the shim here, or nothing."""
    if not sys.platform.startswith("linux"):
        return "the shim between a process and its disk is written for Linux"
    return "" if shutil.which("cc") else "there is no C compiler (cc) to build the shim with"


def library() -> Path:
    """Return the compiled shim."""
    path = CACHE / f"shim-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.so"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", draft, SOURCE, "-ldl"], check=True)
        draft.replace(path)
    return path


def environment() -> dict[str, str]:
    """Return the environment in which a Python process starts behind the shim, and finds this package."""
    paths = [str(ROOT / "src"), str(ROOT)]
    return {**os.environ, "LD_PRELOAD": str(library()), "PYTHONPATH": os.pathsep.join(paths)}


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder in memory, where syncing takes no time: what a disk would lose is decided by disk.py."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="torture-", dir=memory if memory.is_dir() else None) as name:
        yield Path(name)


class Shim:
    """The shim of this process, which must have been started behind it."""

    def __init__(self) -> None:
        # What this process starts itself is none of the shim's business.
        os.environ.pop("LD_PRELOAD", None)
        self._library = ctypes.CDLL(None)
        self._library.torture_failed_call.restype = ctypes.c_char_p
        self._library.torture_calls.restype = ctypes.c_long
        self._library.torture_fail.argtypes = (ctypes.c_int, ctypes.c_long, ctypes.c_long)

    def watch(self, folder: Path) -> None:
        """Stand between this process and everything in a folder."""
        self._library.torture_watch(bytes(folder))

    def record(self, log: Path) -> None:
        """Write down what happens in the folder from now on."""
        self._library.torture_record(bytes(log))

    def fail(self, error: int, *, at: int, count: int) -> None:
        """Let calls fail, beginning with one counted from now."""
        self._library.torture_fail(error, at, count)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._library.torture_heal()

    @property
    def failed_call(self) -> str:
        """The first call that failed, or nothing."""
        return bytes(self._library.torture_failed_call()).decode()
