"""Figure: how long it takes from the command to a screen that takes input, against an empty screen and bare Python."""

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import monotonic

from benchmarks.agents_stage import own_folder
from benchmarks.report import Figure, code, duration, times
from benchmarks.terminal import Terminal
from benchmarks.vendor_screens import vendor_screens

GOAL_SCREEN, GOAL_PLAIN = 1.5, 8.0
ROUNDS, QUICK_ROUNDS = 15, 3
VENDOR_ROUNDS = 5
"""They take seconds, and are only there for comparison."""
TEAM = '[[member]]\nname = "kim"\n[[member]]\nname = "max"\ncommand = ["cat"]\n'
EMPTY_APP = """
from textual.app import App
from textual.widgets import TextArea

class Empty(App):
    def compose(self):
        yield TextArea(placeholder="Say something")

Empty().run()
"""
LEAVE = b"\x11"
LIBRARIES = "import argparse, asyncio, logging, msgspec, sqlite3, tomllib"
"""What a chat needs of other people's code."""
BARE, EMPTY, PLAIN, SCREEN = "python -c pass", "an empty Textual app", "bullpen chat --plain", "bullpen chat"
SCREENS: dict[str, tuple[tuple[str, ...], bytes, bytes]] = {
    EMPTY: (("-c", EMPTY_APP), b"Say something", LEAVE),
    PLAIN: (("-m", "bullpen", "chat", "--trust", "--plain"), "▸".encode(), b"\x04"),
    SCREEN: (("-m", "bullpen", "chat", "--trust"), b"Say something", LEAVE),
}
"""Each with what it runs, what is on the screen when it is ready, and the key that leaves."""


def measure(*, quick: bool) -> Figure:
    """Start each in turn at a terminal of its own."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    taken: dict[str, list[float]] = {name: [] for name in (BARE, LIBRARIES, *SCREENS)}
    with own_folder() as folder:
        (folder / "team.toml").write_text(TEAM)
        for _ in range(rounds):
            taken[BARE].append(_alone("pass"))
            taken[LIBRARIES].append(_alone(LIBRARIES))
            for name, (arguments, ready, leave) in SCREENS.items():
                taken[name].append(_seconds_until(arguments, ready, leave, folder))
        taken |= _vendors(min(rounds, VENDOR_ROUNDS))
    typical = {name: median(seconds) for name, seconds in taken.items()}
    screen, plain = typical[SCREEN] / typical[EMPTY], typical[PLAIN] / typical[BARE]
    return Figure(
        title="Ready for input",
        goal=f"the full screen within {GOAL_SCREEN:g} times an empty Textual app, and the plain chat within "
        f"{GOAL_PLAIN:g} times bare Python",
        met=screen <= GOAL_SCREEN and plain <= GOAL_PLAIN,
        measured=f"the full screen {times(screen)} times, the plain chat {times(plain)} times",
        reason=f"the libraries alone that a chat cannot do without take {times(typical[LIBRARIES] / typical[BARE])} "
        "times bare Python. The rest goes into about a hundred modules of ours, which are loaded only when they are "
        "needed, and into opening the database durably.",
        columns=("command", "time", "÷ bare Python", "÷ an empty Textual app"),
        rows=[
            (code(name), duration(seconds), times(seconds / typical[BARE]), times(seconds / typical[EMPTY]))
            for name, seconds in typical.items()
        ],
        meaning="Wall-clock time from starting the command until its input line is in the terminal, in a new "
        f"conversation of a trusted team; medians over {rounds} rounds. The vendors' own screens are started without a "
        f"network, in a home where their first questions are answered; medians over {VENDOR_ROUNDS} rounds.",
    )


def _vendors(rounds: int) -> dict[str, list[float]]:
    """Start the screens of the vendors' own CLIs."""
    with own_folder() as home, own_folder() as folder:
        screens = vendor_screens(home, folder)
        taken: dict[str, list[float]] = {name: [] for name in screens}
        for _ in range(rounds):
            for name, screen in screens.items():
                environment = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", **screen.environment}
                began = monotonic()
                with Terminal(list(screen.command), folder, environment) as terminal:
                    terminal.read_until(screen.ready)
                    taken[name].append(monotonic() - began)
    return taken


def _alone(program: str) -> float:
    began = monotonic()
    subprocess.run([sys.executable, "-c", program], check=True)
    return monotonic() - began


def _seconds_until(arguments: tuple[str, ...], ready: bytes, leave: bytes, folder: Path) -> float:
    # As installed: compiled once, and the same for all.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    places = {"BULLPEN_HOME": str(folder), "XDG_STATE_HOME": str(folder), "TERM": "xterm-256color"}
    began = monotonic()
    with Terminal([sys.executable, *arguments], folder, environment | places) as terminal:
        terminal.read_until(ready)
        seconds = monotonic() - began
        terminal.leave(leave)
    return seconds
