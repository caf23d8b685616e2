"""Strangers and a guest take up connections, in every way that costs them little, while the owner has pages open."""

import resource
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from random import Random

import httpx
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.planting import ALL_FOUND, Planted, each_found, in_words
from tests.web.server_process import ServerProcess, all_of, server_process

from bullpen.testing.stage import write_team

ROUNDS: dict[Size, int] = {"small": 2, "full": 60}
FILES = (128, 256, 512, 1024)
"""How many files the servers may open: the last is what most systems allow."""
TABS = 20
SECONDS = 60.0
FAULTY_SECONDS = 5.0
MOST_LINES = 3
ADDRESSES = [f"127.0.0.{number}" for number in range(1, 9)] if sys.platform == "linux" else ["127.0.0.1"]
"""The first is the owner's too."""
NO_LIMITS = """
import uvicorn
from bullpen.web.server import Server
Server.startup = uvicorn.Server.startup
Server.shutdown = uvicorn.Server.shutdown
"""
OWNERS_FIRST = """
from proofs.torture.planting import make_mistake
from bullpen.web.connections import Connections
make_mistake(Connections._drop_oldest_stream, "min(several)", "max(several)")
"""
NO_LONGER = """
from proofs.torture.planting import make_mistake
from bullpen.web.accepting import Acceptor
make_mistake(Acceptor._accept, "except OSError as error:", "except BlockingIOError as error:")
"""
AGAIN_AND_AGAIN = """
from proofs.torture.planting import make_mistake
from bullpen.web.accepting import Acceptor
make_mistake(Acceptor._say, ">= QUIET_SECONDS", ">= 0")
"""

Sent = Callable[[ServerProcess, Random], bytes]
WAYS: dict[str, Sent] = {
    "silent": lambda server, random: b"",
    "half a head": lambda server, random: server.request("/", key=False)[:-2] + b"X-Slow: ",
    "half a body": lambda server, random: (
        server.request("/c", key=False)[:-2].replace(b"GET", b"POST") + b"Content-Length: 1000\r\n\r\nx"
    ),
    "unread answers": lambda server, random: server.request("/static/htmx.min.js", key=False) * 20,
    "anything": lambda server, random: random.randbytes(200),
    "refused": lambda server, random: server.request("/", key=False),
}


class Round:
    """One server, its owner and the strangers."""

    def __init__(self, server: ServerProcess, files: int, random: Random, seconds: float) -> None:
        self._server = server
        self._files = files
        self._random = random
        self._owner = httpx.Client(base_url=f"http://{server.host}/api", headers=server.headers, timeout=seconds)
        self._seconds = seconds
        self._guest = server.guest()
        self.strangers = self.pages = 0
        self.failures: list[str] = []

    def run(self) -> None:
        """Let strangers come, twice as many as there are files, and the owner work among them."""
        with ExitStack() as opened, self._owner:
            here = f"/conversations/{self._owner.post('/conversations').json()['id']}"
            tabs = [opened.enter_context(self._server.stream(path=f"/api{here}/events?after=0")) for _ in range(TABS)]
            for number in range(4):
                with suppress(OSError):
                    self._let_strangers_in(opened, self._files // 2)
                    self._let_a_guest_in(opened, self._files // 4)
                self._note(here, f"note-{number}-for-every-tab")
                if number == 2:
                    self._take_descriptors_away(opened)
            for number, tab in enumerate(tabs):
                tab.settimeout(self._seconds)
                if not _hears(tab, b"note-3-for-every-tab"):
                    self.failures.append(f"tab {number} of the owner did not hear the last note")
                    break
        said = self._server.said.splitlines()
        if len(said) > MOST_LINES or any("Traceback" in line for line in said):
            self.failures.append(f"the server wrote {len(said)} lines, such as {said[:2]}")

    def _let_strangers_in(self, opened: ExitStack, count: int) -> None:
        for _ in range(count):
            stranger = opened.enter_context(self._server.connect(self._random.choice(ADDRESSES)))
            self.strangers += 1
            stranger.setblocking(False)
            with suppress(OSError):
                stranger.send(WAYS[self._random.choice(list(WAYS))](self._server, self._random))

    def _let_a_guest_in(self, opened: ExitStack, count: int) -> None:
        """Let somebody who may only read open pages, most of them where the owner is."""
        for _ in range(count):
            place = self._random.choice([ADDRESSES[0], self._random.choice(ADDRESSES)])
            page = opened.enter_context(self._server.connect(place))
            page.settimeout(self._seconds)
            page.sendall(self._server.request("/attention", token=self._guest))
            page.recv(1)
            self.pages += 1

    def _note(self, here: str, text: str) -> None:
        """Let the owner do something on a connection of its own."""
        try:
            answer = self._owner.post(f"{here}/note", json={"text": text}, headers={"Connection": "close"})
        except httpx.HTTPError as error:
            self.failures.append(f"the owner's request failed: {error!r}")
        else:
            if not answer.is_success:
                self.failures.append(f"the owner's request was answered with {answer.status_code}: {answer.text[:200]}")

    def _take_descriptors_away(self, opened: ExitStack) -> None:
        """Leave the server no file to open for a while; what is asked meanwhile is answered later."""
        if sys.platform != "linux":
            return
        limits = resource.prlimit(self._server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self._server.pid, resource.RLIMIT_NOFILE, (8, limits[1]))
        waiting = opened.enter_context(self._server.connect())
        waiting.sendall(self._server.request("/api/conversations", more="Connection: close\r\n"))
        time.sleep(0.5)
        resource.prlimit(self._server.pid, resource.RLIMIT_NOFILE, limits)
        waiting.settimeout(self._seconds)
        answer = b""
        with suppress(TimeoutError):
            answer = all_of(waiting)
        if not answer.startswith(b"HTTP/1.1 200"):
            self.failures.append(f"what was asked while there were no descriptors was answered with {answer[:100]!r}")


def _hears(tab: socket.socket, text: bytes) -> bool:
    heard = b""
    with suppress(OSError):
        while text not in heard and (piece := tab.recv(65536)):
            heard = heard[-len(text) :] + piece
    return text in heard


def run(size: Size, seed: int) -> Outcome:
    """Serve, and be visited."""
    return _run(ROUNDS[size], seed)


def run_with_fault(seed: int) -> Outcome:
    """Accept connections as uvicorn does by itself, and with mistakes of our own."""
    return each_found(FAULTS, seed)


def _with_mistake(program: str, seen_as: str) -> Planted:
    return Planted(nullcontext, lambda seed: _run(1, seed, fault=program).failures, seen_as)


FAULTS = {
    "connections are accepted as uvicorn does by itself, without limits": _with_mistake(
        NO_LIMITS, "the owner's request failed|no descriptors"
    ),
    "the streams of owners end first": _with_mistake(OWNERS_FIRST, "did not hear the last note"),
    "nothing is accepted any more after descriptors were missing": _with_mistake(
        NO_LONGER, "the owner's request failed|no descriptors"
    ),
    "the same is said for every connection": _with_mistake(AGAIN_AND_AGAIN, r"the server wrote \d+ lines"),
}


def _run(rounds: int, seed: int, *, fault: str = "") -> Outcome:
    strangers, pages, failures = 0, 0, []
    for number in range(rounds):
        random = Random(f"{seed} {number}")
        files = FILES[number % len(FILES)]
        with tempfile.TemporaryDirectory(prefix="torture-") as temporary:
            folder = Path(temporary)
            team = write_team(folder, {"max": [{"say": "Hi."}]})
            with server_process(folder, team=team, files=files, fault=fault) as server:
                one = Round(server, files, random, FAULTY_SECONDS if fault else SECONDS)
                one.run()
        strangers += one.strangers
        pages += one.pages
        failures += [f"seed {seed}, round {number}, {files} files: {failure}" for failure in one.failures]
    return Outcome(
        tried=strangers,
        unit="connections of strangers",
        failures=tuple(failures),
        figures={
            "servers": rounds,
            "pages of the owner open on each": TABS,
            "pages of guests": pages,
            "ways to take up a connection": len(WAYS),
        },
    )


TORTURE = Torture(
    name="idle connections",
    does="Strangers open connections to a server, twice as many as it may open files. They send nothing, half of a "
    "request, requests whose answers they do not read, or anything. For a while the server can open no file at all. "
    "Somebody who may only read opens as many pages as there are files. "
    f"Meanwhile the owner has {TABS} pages open and goes on working.",
    promise="Every request of the owner is answered, every page of the owner stays open and hears everything, and the "
    f"server writes at most {MOST_LINES} lines about it.",
    run=run,
    fault=in_words(FAULTS),
    seen_as=ALL_FOUND,
    run_with_fault=run_with_fault,
    order=82,
)
