"""Figure: the time from an agent's write to the terminal, against a plain reader of its pipe."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterable
from pathlib import Path
from statistics import median, quantiles
from time import monotonic, monotonic_ns, sleep

from msgspec import Struct

from benchmarks.conversation_stage import conversation_in
from benchmarks.report import Figure, duration, times
from bullpen.team.file import load_team

GOAL_PLAIN = 3.0
GOAL_SCREEN_SECONDS = 0.017
"""One frame of a screen that is painted 60 times a second."""
PAUSE_SECONDS = 0.05
PIECES, QUICK_PIECES = 150, 40
ROUNDS, QUICK_ROUNDS = 3, 1
IGNORED_PIECES = 10
PATIENCE_SECONDS = 60.0
SILENCE_SECONDS = 3.0

# Writes the time a few times a second, like an agent: words, lines that wrap, paragraphs. All processes have the same
# clock.
PROGRAM = """
import os, sys, time
sys.stdin.read()
for piece in range({pieces}):
    time.sleep({pause})
    end = b"\\n\\n" if piece % 15 == 14 else b" "
    os.write(1, b"T%dE%b" % (time.monotonic_ns() // 1000, end))
"""
# The least that a chat could do: an event loop that copies what comes to a terminal.
RELAY = """
import asyncio, os, subprocess, sys
loop = asyncio.new_event_loop()
agent = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
def copy():
    data = os.read(agent.stdout.fileno(), 65536)
    os.write(1, data) if data else loop.stop()
loop.add_reader(agent.stdout.fileno(), copy)
loop.run_forever()
"""
TIME = re.compile(rb"T(\d{9,})E")


class Door(Struct, frozen=True):
    """One way to look at a conversation in a terminal."""

    name: str
    options: tuple[str, ...]
    ready: bytes
    leave: tuple[bytes, ...]
    messages: int = 0
    """How many messages the conversation has already."""


PLAIN = "chat --plain"
DOORS = (
    Door(PLAIN, ("--plain",), "▸".encode(), (b"/quit", b"\r")),
    Door("chat, the full screen", (), b"Say something", (b"\x11",)),
    Door("the same after 10,000 messages", (), b"Say something", (b"\x11",), messages=10_000),
)


class Delay(Struct, frozen=True):
    """The delay of pieces, in seconds."""

    median: float
    p99: float


def measure(*, quick: bool) -> Figure:
    """Let an agent write, and measure when it appears in the terminal."""
    pieces, rounds = (QUICK_PIECES, QUICK_ROUNDS) if quick else (PIECES, ROUNDS)
    program = [sys.executable, "-c", PROGRAM.format(pieces=pieces, pause=PAUSE_SECONDS)]
    plain: list[Delay] = []
    copied: list[Delay] = []
    shown: dict[str, list[Delay]] = {door.name: [] for door in DOORS}
    for _ in range(rounds):
        plain.append(_delay(_read_plainly(program)))
        copied.append(_delay(_read_copied(program)))
        for door in DOORS:
            shown[door.name].append(_delay(_read_in_terminal(program, door, pieces)))
    pipe = _typical(plain)
    typical = {name: _typical(delays) for name, delays in shown.items()}
    copy = _typical(copied)
    plain_ratio = typical[PLAIN].median / pipe.median
    slowest = max(one.median for name, one in typical.items() if name != PLAIN)
    return Figure(
        title="From an agent's write to the terminal",
        goal=f"the full screen within {duration(GOAL_SCREEN_SECONDS)} at the median, also after 10,000 messages, and "
        f"the plain chat within {GOAL_PLAIN:g} times a bare pipe",
        met=plain_ratio <= GOAL_PLAIN and slowest <= GOAL_SCREEN_SECONDS,
        measured=f"the full screen {duration(slowest)}, the plain chat {times(plain_ratio)} times",
        reason=f"a bare pipe takes {duration(pipe.median)}, and an event loop that only copies to a terminal "
        f"{times(copy.median / pipe.median)} times as long. On the way to a terminal, a word is decoded, recorded, "
        "published, made safe, and drawn above the line that is being typed. The full screen also reads "
        "it as Markdown, lays out what has changed, and paints at most 60 times a second.",
        columns=("what", "median", "ratio", "99th percentile", "ratio"),
        rows=[
            ("a bare pipe", duration(pipe.median), "1", duration(pipe.p99), "1"),
            *(
                (
                    name,
                    duration(one.median),
                    times(one.median / pipe.median),
                    duration(one.p99),
                    times(one.p99 / pipe.p99),
                )
                for name, one in {"an event loop that only copies": copy, **typical}.items()
            ),
        ],
        meaning=f"The agent writes a word each {duration(PAUSE_SECONDS)}, and a new paragraph after fifteen; a word is "
        f"in the terminal when a program that reads the terminal has it. Wall-clock time, medians over {rounds} "
        f"rounds of {pieces} words.",
    )


def _read_plainly(program: list[str]) -> list[float]:
    process = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)
    assert process.stdout is not None
    delays: list[float] = []
    while data := os.read(process.stdout.fileno(), 65536):
        now = monotonic_ns() / 1e9
        delays += [now - int(found) / 1e6 for found in TIME.findall(data)]
    process.stdout.close()
    process.wait()
    return delays


def _read_copied(program: list[str]) -> list[float]:
    main, other = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", RELAY, *program], stdin=subprocess.DEVNULL, stdout=other)
    os.close(other)
    delays: list[float] = []
    # At the end of the program, its terminal is gone.
    with contextlib.suppress(OSError):
        while data := os.read(main, 65536):
            now = monotonic_ns() / 1e9
            delays += [now - int(found) / 1e6 for found in TIME.findall(data)]
    process.wait()
    os.close(main)
    return delays


def _read_in_terminal(program: list[str], door: Door, pieces: int) -> list[float]:
    with tempfile.TemporaryDirectory(prefix="bullpen-bench-") as folder:
        team = f'[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = {json.dumps(program)}\n'
        file, db = Path(folder, "team.toml"), Path(folder, "talk.db")
        file.write_text(team)
        resume = ("--resume", conversation_in(load_team(file), db, door.messages)) if door.messages else ()
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        process = subprocess.Popen(
            [sys.executable, "-m", "bullpen", "chat", "--trust", "--db", str(db), *resume, *door.options],
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, "BULLPEN_HOME": folder, "TERM": "xterm-256color", "XDG_STATE_HOME": folder},
        )
        os.close(other)
        try:
            return _watched(main, door, pieces)
        finally:
            process.wait(PATIENCE_SECONDS)
            os.close(main)


def _watched(main: int, door: Door, pieces: int) -> list[float]:
    """Say something, and return when each piece was seen for the first time."""
    seen: dict[bytes, float] = {}
    tail = b""
    until = monotonic() + PATIENCE_SECONDS
    has_spoken = False
    # A line that scrolls away between two frames is never seen, so silence also ends the loop.
    while len(seen) < pieces and monotonic() < until:
        if not select.select([main], [], [], 1.0)[0]:
            continue
        data = os.read(main, 65536)
        now = monotonic_ns() / 1e9
        tail = tail[-64:] + data
        for found in TIME.findall(tail):
            seen.setdefault(found, now - int(found) / 1e6)
            until = monotonic() + SILENCE_SECONDS
        if not has_spoken and door.ready in tail:
            has_spoken = True
            _press(main, (b"go", b"\r"))
    _press(main, door.leave)
    _drain(main)
    return list(seen.values())


def _press(main: int, keys: Iterable[bytes]) -> None:
    for key in keys:
        # As people type: the screen shows what was typed before it is sent.
        sleep(0.2)
        os.write(main, key)


def _drain(main: int) -> None:
    """Read to the end, so that the program can exit."""
    try:
        while select.select([main], [], [], PATIENCE_SECONDS)[0] and os.read(main, 65536):
            pass
    except OSError:
        return


def _delay(delays: list[float]) -> Delay:
    kept = delays[IGNORED_PIECES:]
    return Delay(median(kept), quantiles(kept, n=100, method="inclusive")[-1])


def _typical(delays: list[Delay]) -> Delay:
    return Delay(median(one.median for one in delays), median(one.p99 for one in delays))
