"""Other users of the machine look for a way in: on command lines, in files and in the log of a real `bullpen serve`."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from random import Random

import httpx
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import ALL_FOUND, Planted, each_found, in_words

from bullpen.testing.site import button_of

ROUNDS: dict[Size, int] = {"small": 3, "full": 60}
SECONDS = 60.0
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
TICKET = re.compile(r"/enter/([\w-]{43})")

PROGRAM = """
import os
from bullpen.cli import main
os.umask(0)
{fault}
raise SystemExit(main(["serve", "--token-file", "token"]))
"""
ON_THE_COMMAND_LINE = """
import webbrowser
from bullpen.cli.entrance import Entrance
Entrance.open = lambda self, url: webbrowser.open(url)
"""
FOR_EVERYBODY = """
from bullpen.exchange import files
files.FILE_MODE = 0o644
"""
NOT_USED_UP = """
from proofs.torture.planting import make_mistake
from bullpen.web.sessions import Sessions
make_mistake(Sessions.take_ticket, "_without(record.tickets, [key])", "record.tickets")
"""
USED_UP_BY_LOOKING = """
from proofs.torture.planting import make_mistake
from bullpen.web.credentials import Keys
make_mistake(Keys.identity_of, "self._sessions.ticket(_hash_of(ticket))", "self._sessions.ticket(self.redeem(ticket))")
"""
EVERY_ADDRESS = """
import sys
from proofs.torture.planting import make_mistake
from bullpen.cli import serve
make_mistake(serve._is_seen_by_a_person, "return sys.stdout.isatty()", "return True")
"""
# It stays until it is told to go, as a browser would.
BROWSER = """#!{python}
import json, pathlib, sys, time
given = sys.argv[1]
page = given if given.startswith("http") else pathlib.Path(given.removeprefix("file://")).read_text()
pathlib.Path("draft").write_text(json.dumps([given, page]))
pathlib.Path("draft").rename("given")
while not pathlib.Path("go").exists():
    time.sleep(0.01)
"""


class Round:
    """One server, its owner's browser, and everybody else on the machine."""

    def __init__(self, folder: Path, url: str, ticket: str, output: Path) -> None:
        self._folder = folder
        self._url = url
        self._ticket = ticket
        self._output = output
        self.secrets = {ticket, (folder / "token").read_text().strip()}
        self.looked_at = 0
        self.failures: list[str] = []

    def run(self, random: Random) -> None:
        """Let others look before the browser comes in, and after it; then try the address again."""
        self._look()
        with httpx.Client(timeout=SECONDS) as browser:
            for look in random.choices([browser.head, browser.get], k=random.randrange(4)):
                self._expect(look(self._url).status_code, 200, "who only looks at the address")
            self._expect(browser.post(self._url, headers=button_of(self._url)).status_code, 303, "the owner's browser")
            self.secrets.update(str(cookie.value) for cookie in browser.cookies.jar)
        self._look()
        second = httpx.post(self._url, headers=button_of(self._url), timeout=SECONDS)
        self._expect(second.status_code, 401, "whoever comes second")
        printed = TICKET.findall(self._output.read_text())
        if len(printed) != 1 or self._ticket in printed:
            self.failures.append(f"a log has {len(printed)} addresses")

    def look_at_what_is_left(self) -> None:
        """Look again, after the server has ended."""
        self._look()

    def _expect(self, found: int, wanted: int, who: str) -> None:
        if found != wanted:
            self.failures.append(f"{who} got {found}, not {wanted}")

    def _look(self) -> None:
        for kind, name, text in (*_command_lines(), *_open_files(self._folder)):
            self.looked_at += 1
            if any(secret in text for secret in self.secrets):
                self.failures.append(f"everybody can read a key in {kind} {name[:200]}")


def _command_lines() -> Iterator[tuple[str, str, str]]:
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            line = place.read_bytes().decode(errors="replace")
            yield "the command line of", line.replace("\0", " "), line


def _open_files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield what everybody could read if they may enter the folder; our own programs' notes are not part of it."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if _is_open(Path(place, name), stat.S_IXOTH)]
        for path in (Path(place, name) for name in files):
            if path.name not in ("given", "draft", "output") and _is_open(path, stat.S_IROTH):
                with suppress(OSError):
                    yield "the file", str(path), path.read_bytes().decode(errors="replace")


def _is_open(path: Path, mode: int) -> bool:
    try:
        return bool(path.lstat().st_mode & mode)
    except OSError:
        return False


@contextmanager
def _served(folder: Path, fault: str) -> Iterator["tuple[subprocess.Popen[bytes], Path]"]:
    browser, output = folder / "browser", folder / "output"
    browser.write_text(BROWSER.format(python=sys.executable))
    browser.chmod(0o755)
    (folder / "tmp").mkdir(mode=0o755)
    places = {"HOME": folder, "TMPDIR": folder / "tmp", "BULLPEN_HOME": folder / "home", "XDG_STATE_HOME": folder}
    env = {**{name: str(path) for name, path in places.items()}, "BROWSER": f"{browser} %s"}
    with output.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(fault=fault)],
            cwd=folder,
            env={**env, "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process, output
    finally:
        (folder / "go").touch()
        process.kill()
        process.wait()


def _round(folder: Path, random: Random, fault: str) -> tuple[int, list[str]]:
    with _served(folder, fault) as (process, output):
        deadline = time.monotonic() + SECONDS
        while not (folder / "given").exists():
            if process.poll() is not None or time.monotonic() > deadline:
                return 0, [f"no browser was opened: {output.read_text()[:300]}"]
            time.sleep(0.01)
        _, page = json.loads((folder / "given").read_text())
        ticket = TICKET.search(page)
        if ticket is None:
            return 0, ["the browser was not given an address"]
        place = output.read_text().split("/enter/")[0].split()[-1]
        tried = Round(folder, f"{place}/enter/{ticket[1]}", ticket[1], output)
        tried.run(random)
        process.send_signal(random.choice(ENDINGS))
        (folder / "go").touch()
        process.wait(SECONDS)
        tried.look_at_what_is_left()
    return tried.looked_at, tried.failures


def _try(rounds: int, seed: int, fault: str = "") -> Outcome:
    if not Path("/proc/self/cmdline").exists():
        return Outcome(tried=0, unit="servers", skipped="there is no /proc, so nobody's command line can be read here")
    random, looked_at, failures = Random(seed), 0, []
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="torture-") as folder:
            looked, found = _round(Path(folder), random, fault)
        looked_at += looked
        failures += [f"round {number}: {one}" for one in found]
    return Outcome(
        tried=rounds,
        unit="servers",
        failures=tuple(failures),
        figures={"command lines and files that everybody can read": looked_at},
    )


def run(size: Size, seed: int) -> Outcome:
    """Look everywhere."""
    return _try(ROUNDS[size], seed)


def run_with_fault(seed: int) -> Outcome:
    """Look where the address is on the browser's command line, and where other mistakes are made."""
    if (there := _try(0, seed)).skipped:
        return there
    return each_found(FAULTS, seed)


def _with_mistake(program: str, seen_as: str) -> Planted:
    return Planted(nullcontext, lambda seed: _try(1, seed, program).failures, seen_as)


FAULTS = {
    "the browser is opened with the address itself, on its command line": _with_mistake(
        ON_THE_COMMAND_LINE, "can read a key in the command line"
    ),
    "private files are for everybody": _with_mistake(FOR_EVERYBODY, "can read a key in the file"),
    "an address is not used up by the first browser": _with_mistake(NOT_USED_UP, "comes second got 303, not 401"),
    "an address is used up by looking at it": _with_mistake(USED_UP_BY_LOOKING, "got 401, not"),
    "a log gets every address": _with_mistake(EVERY_ADDRESS, "a log has 2 addresses"),
}

TORTURE = Torture(
    name="other users look for a way in",
    does=(
        "Real servers open a browser, with no umask, and end by signals; before it comes in, after it and after the "
        "end, everything is read that other users of the machine can read: every command line, and every open file."
    ),
    promise=(
        "no address, cookie or token is in any of it; looking at an address, as chats do for a preview, uses nothing "
        "up; it lets one browser in, once, and a log has only the first."
    ),
    run=run,
    fault=in_words(FAULTS),
    seen_as=ALL_FOUND,
    run_with_fault=run_with_fault,
    order=82,
)
