"""A test depends on nothing but itself: not on the environment, the PATH, the home, or what is above its folder.

All tests of a run write below one new folder, which is removed if all pass. Above their own folders there are traps: a
`.git` that is no repository, and instruction files that nobody may read. Whatever a test opens for writing elsewhere
fails it, and so does a connection that leaves the machine.
"""

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import psutil
import pytest

RUN = "BULLPEN_TEST_RUN"
"""The variable that names the folder of the run; children inherit it, so that what is left of them is found."""
PREFIX = "bp-"
KEPT_VARIABLES = ("CI", "BULLPEN_NEW_SCREENS", "BULLPEN_NEWEST", "BULLPEN_TEST_POSTGRES", "BULLPEN_TORTURE_KILLS")
KEPT_PREFIXES = ("PYTEST_", "COV_", "npm_config_")
# Not .mcp.json: settings of agents are looked for above a folder, as their CLIs do.
TRAPS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", "team.toml")
TRAP = "Nobody may read this: it is above the folder of a test.\n"

_POSIX = """
    awk basename cat chmod cmp cp cut date diff dirname echo env expr false find grep head id kill ln ls mkdir
    mkfifo mktemp mv nice nohup od printf ps pwd readlink rm rmdir sed seq setsid sh sleep sort stat stty tail
    tee test touch tr true tty uname uniq wc which xargs
"""
PROGRAMS = ("bash", "git", "python3", *_POSIX.split())
"""All that a test may find on the PATH: Python, git, bash, and what every system has beside a shell."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"open": 0, "os.mkdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "os.remove": 0, "os.rmdir": 0}
_CHANGES |= {"os.truncate": 0, "sqlite3.connect": 0}
"""Events of the interpreter that change files, and which of their arguments says where."""
_ENDING_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""A shell or `nohup` may have this process ignore them."""
_DEVICES = ("/dev/null/", "/dev/full/", "/dev/tty/", "/dev/ptmx/", "/dev/pts/", "/dev/fd/", "/dev/urandom/", "/proc/")
_ROOT = Path(__file__).parents[2]

_folder = pytest.StashKey[Path]()


class _Guard:
    """Notes what a running test may not do. An audit hook cannot be removed, so there is one for all tests."""

    def __init__(self) -> None:
        self.is_on = False
        self.roots: tuple[str, ...] = ()
        self.seen: list[str] = []

    def __call__(self, event: str, args: tuple[object, ...]) -> None:
        if not self.is_on:
            return
        if event in _CHANGES:
            if event != "open" or _is_for_writing(args):
                self._written(event, args[_CHANGES[event]])
        elif event in ("socket.connect", "socket.getaddrinfo"):
            address = args[1] if event == "socket.connect" else args[:1]
            if isinstance(address, tuple) and address and not _is_here(address[0]):
                self.seen.append(f"{event} {address[0]!r}")

    def _written(self, event: str, path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike):
            return
        name = os.fsdecode(path)
        # One that is not absolute may be below a folder that is open: the event does not tell.
        if not name.startswith("/") or "/__pycache__" in name:
            return
        name = os.path.normpath(name)
        if not f"{name}/".startswith(self.roots):
            self.seen.append(f"{event} {name}")


_guard = _Guard()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the run its folder, and leave it nothing else of the person's."""
    folder = Path(os.environ[RUN]) if hasattr(config, "workerinput") else _new_run(config)
    for name in ("COLUMNS", "LINES"):
        # Written by the library that reads lines, into the environment of processes that pytest starts.
        os.environ.pop(name, None)
    config.stash[_folder] = folder
    _guard.roots = (f"{folder / 'w'}/", f"{folder / 'h'}/", f"{folder / 'tmp'}/", *_DEVICES, f"{_ROOT / '.cache'}/")
    sys.addaudithook(_guard)


def _new_run(config: pytest.Config) -> Path:
    is_ours = "not foreign" in config.option.markexpr
    place = Path((is_ours and _fast_folder()) or tempfile.gettempdir()).resolve()
    _remove_earlier_runs(place)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=place))
    # Some tests become somebody else.
    folder.chmod(0o755)
    for name in ("home", "h", "tmp", "bin", ".git"):
        (folder / name).mkdir()
    for name in TRAPS:
        (folder / name).write_text(TRAP, encoding="utf-8")
    path = os.environ.get("PATH", os.defpath)
    for name in PROGRAMS:
        if program := sys.executable if name == "python3" else shutil.which(name, path=path):
            (folder / "bin" / name).symlink_to(program)
    kept = {
        name: value for name, value in os.environ.items() if name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)
    }
    if "PYTHONPATH" in os.environ:
        # In a copy of the project, the processes that tests start import the copy, too.
        kept["PYTHONPATH"] = os.pathsep.join(map(str, (_ROOT / "src", _ROOT)))
    os.environ.clear()
    os.environ.update(kept, LANG="C.UTF-8", TERM="dumb", HOME=str(folder / "home"), TMPDIR=str(folder / "tmp"))
    os.environ.update({"PATH": path, RUN: str(folder)})
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(_ROOT / ".cache" / "hypothesis")
    for number in _ENDING_SIGNALS:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    tempfile.tempdir = None
    if not config.option.basetemp:
        config.option.basetemp = folder / "w"
    return folder


def _remove_earlier_runs(place: Path) -> None:
    """Remove what is left of runs that failed: only the last one can be looked at."""
    for folder in place.glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        # Other runs may remove it at the same moment, and their own.
        with suppress(FileNotFoundError):
            if pid.isdigit() and not psutil.pid_exists(int(pid)) and folder.stat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)


def _fast_folder() -> str | None:
    """Return a folder in memory if there is one: the tests sync thousands of small files to the disk.

    Not for programs that are not ours: the sandbox of Codex shows them another /dev.
    """
    memory = Path("/dev/shm")
    outer = os.environ.get("TMPDIR")
    if outer is None and memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 4 * 2**30:
        return str(memory)
    return outer


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give each test a home of its own, and let only those that need foreign programs find them."""
    full, nobodys = os.environ["PATH"], os.environ["HOME"]
    home = tempfile.mkdtemp(dir=item.config.stash[_folder] / "h")
    os.environ["HOME"] = home
    if not item.get_closest_marker("foreign"):
        os.environ["PATH"] = str(item.config.stash[_folder] / "bin")
    try:
        return (yield)
    finally:
        os.environ.update(PATH=full, HOME=nobodys)
        shutil.rmtree(home, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that wrote into what is not its own, or left the machine."""
    _guard.seen.clear()
    _guard.is_on = item.get_closest_marker("foreign") is None
    try:
        result = yield
    finally:
        _guard.is_on = False
    if _guard.seen:
        pytest.fail("It reached out of its folder: " + ", ".join(dict.fromkeys(_guard.seen)), pytrace=False)
    return result


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Look what is left where no test may write, and remove the folder if all is well."""
    config = session.config
    if hasattr(config, "workerinput"):
        return
    folder = config.stash[_folder]
    left = [str(path) for name in ("home", ".git") for path in sorted((folder / name).rglob("*"))]
    left += [name for name in TRAPS if (folder / name).read_text(encoding="utf-8") != TRAP]
    if left and exitstatus == 0:
        print(f"\nA test wrote outside its folder: {', '.join(left[:20])}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if session.exitstatus == 0:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"\nWhat the tests wrote is in {folder}")


def _is_for_writing(args: tuple[object, ...]) -> bool:
    _, mode, flags = args
    return bool(flags & _WRITES) if isinstance(flags, int) else isinstance(mode, str) and mode not in ("r", "rb")


def _is_here(host: object) -> bool:
    if not isinstance(host, str) or host in ("", "localhost"):
        return True
    try:
        address = ip_address(host.partition("%")[0])
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return False
