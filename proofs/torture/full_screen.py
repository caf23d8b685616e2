"""The full screen, driven at random: nothing that is pressed, clicked or typed ends it or loses text."""

import asyncio
import os
import random
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from traceback import extract_tb
from unittest import mock

from msgspec import Struct
from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.random_person import (
    FIRST_CHARACTER,
    LAST_CHARACTER,
    SCROLLING_KEYS,
    DrivenApp,
    RandomPerson,
    gaps_in,
    kept_by,
    nothing_typed_over,
)
from tests.tui.stage import Script, Stage
from textual.widget import Widget

from bullpen.store.sqlite import SqliteStore
from bullpen.team.file import load_team
from bullpen.tui.chat import ChatScreen
from bullpen.tui.open_conversations import open_conversations
from bullpen.tui.transcript import Transcript

SIZES: dict[Size, int] = {"small": 250, "full": 10_000}
EVENTS_OF_A_SESSION = 250
SESSIONS_AT_ONCE = 10
# Messages to scroll in when nobody speaks.
NOTES = 30
LONGEST_SECONDS = 300.0
MOST_MESSAGES = 100_000

LONG = "\n\n".join(
    f"Paragraph {number}.\n\n- one\n- two\n\n```diff\n-old\n+new\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    for number in range(12)
)
SCRIPTS: list[Script] = [
    [{"say": "Yes. [NEXT: sarah]"}],
    [{"think": "Hm."}, {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "a\nb"}}, {"say": "Done."}],
    [{"say": LONG, "chunk": 40, "delay": 0.001}],
    [{"error": 500, "message": "the model is down"}],
    [{"todo": [{"text": "build", "completed": True}]}, {"say": "Slowly. "}, {"sleep": 0.5}, {"say": "There."}],
    [{"say": "Let me think. "}, {"hang": True}],
    [{"say": "Sarah, please review it."}],
]


class Found(Struct, kw_only=True):
    """What came out of some sessions."""

    failures: list[str] = []
    events: int = 0
    written: int = 0
    messages: int = 0


def run(size: Size, seed: int) -> Outcome:
    """Let random people use the screen, in sessions one after the other; a long run is shared by several processes."""
    sessions = -(-SIZES[size] // EVENTS_OF_A_SESSION)
    numbers = [range(first, min(first + SESSIONS_AT_ONCE, sessions)) for first in range(0, sessions, SESSIONS_AT_ONCE)]
    work = partial(_sessions, seed)
    if len(numbers) == 1:
        found = [work(numbers[0])]
    else:
        with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes:
            found = list(processes.map(work, numbers))
    return Outcome(
        tried=sum(one.events for one in found),
        unit="events",
        failures=tuple(failure for one in found for failure in one.failures),
        figures={
            "characters written": sum(one.written for one in found),
            "messages said": sum(one.messages for one in found),
        },
    )


def _sessions(seed: int, numbers: range, keys: Sequence[str] = ()) -> Found:
    """Return what came out of some sessions with one database; with some keys, nothing else is done."""
    found = Found()
    with _folder() as folder, nothing_typed_over():
        stage = _stage(folder)
        characters = map(chr, range(FIRST_CHARACTER, LAST_CHARACTER + 1))
        for number in numbers:
            asyncio.run(_session(stage, found, f"{seed}-{number}", characters, keys))
    return found


async def _session(stage: Stage, found: Found, seed: str, characters: Iterator[str], keys: Sequence[str]) -> None:
    chance = random.Random(seed)
    person: RandomPerson | None = None
    kept = ""
    try:
        async with asyncio.timeout(LONGEST_SECONDS), open_conversations(load_team(stage.team), stage.db) as opened:
            conversation = await opened.open(None)
            for number in range(NOTES if keys else 0):
                await conversation.say(f"[NEXT: kim] Note {number}.")
            app = DrivenApp(conversation, opened)
            async with app.run_test(size=(100, 30), notifications=True) as pilot:
                person = RandomPerson(app, pilot, chance, characters, keys)
                await pilot.pause()
                for _ in range(EVENTS_OF_A_SESSION):
                    await person.act()
                    if not app.is_running:
                        found.failures.append(f"session {seed}: the screen ended, after {', '.join(person.last)}")
                        break
                await pilot.pause()
                await pilot.pause()
                kept = kept_by(app)
                found.failures += [f"session {seed}: {gap}" for gap in gaps_in(app)]
    except Exception as error:
        last = ", ".join(person.last) if person else ""
        where = "; ".join(
            f"{frame.name} in {frame.filename}:{frame.lineno}" for frame in extract_tb(error.__traceback__)[-4:]
        )
        found.failures.append(f"session {seed}: {type(error).__name__}: {error}, after {last}, in {where}")
    found.events += EVENTS_OF_A_SESSION
    if person is not None:
        said = _everything_said(stage.db)
        found.messages = len(said)
        lost = sorted(person.app.written - set("".join(said)) - set(kept))
        found.written += len(person.app.written)
        found.failures += [f"session {seed}: lost {''.join(lost)}"] if lost else []


def _everything_said(db: Path) -> list[str]:
    """Return every message and every task in the database."""
    store = SqliteStore(db)
    try:
        conversations = store.conversations()
        texts = [
            stored.message.content
            for one in conversations
            for stored in store.messages(one.id, after=0, limit=MOST_MESSAGES)
        ]
        return [*texts, *(one.team_task or "" for one in conversations)]
    finally:
        store.close()


def _stage(folder: Path) -> Stage:
    chance = random.Random(1)
    stage = Stage(folder)
    stage.head('name = "Shop"\ntask = "Build the login."\n[limits]\nturns_per_message = 6\n')
    for name, cli in (("max", "claude"), ("sarah", "codex")):
        # The last one is played from then on, so it is a short one.
        stage.agent(name, *(chance.choice(SCRIPTS) for _ in range(200)), SCRIPTS[0], cli=cli)
    return stage


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bullpen-torture-") as name:
        folder = Path(name)
        places = {"BULLPEN_HOME": str(folder / "home"), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        with mock.patch.dict(os.environ, {**places, "XDG_STATE_HOME": str(folder / "state")}):
            yield folder


def run_with_fault(seed: int) -> Outcome:
    """Do it once with each fault; only if every one of them is caught, there are failures."""
    with _anchored_too_early():
        scrolled = _sessions(seed, range(1), SCROLLING_KEYS).failures
    with _typing_among_messages_is_dropped():
        # A person who happens not to type among messages does not notice; the next one may.
        sessions = (_sessions(seed, range(number, number + 1)).failures for number in range(SESSIONS_AT_ONCE))
        typed = next(filter(None, sessions), [])
    failures = (*scrolled, *typed) if scrolled and typed else ()
    return Outcome(tried=2 * EVENTS_OF_A_SESSION, unit="events", failures=failures)


@contextmanager
def _anchored_too_early() -> Iterator[None]:
    """Follow the conversation again in the middle of the animation that scrolled to its end."""

    def watch_scroll_y(self: Transcript, old: float, new: float) -> None:
        Widget.watch_scroll_y(self, old, new)
        if new > old and new >= self.max_scroll_y and self.is_mounted:
            self.anchor()

    with mock.patch.object(Transcript, "watch_scroll_y", watch_scroll_y):
        yield


@contextmanager
def _typing_among_messages_is_dropped() -> Iterator[None]:
    """Leave the focus where it is when somebody types."""
    with mock.patch.object(ChatScreen, "write"):
        yield


TORTURE = Torture(
    name="the full screen",
    does="A random person presses keys, types, pastes, clicks, scrolls and resizes while agents work, fail and hang.",
    promise="no exception, no gap among the messages on the screen, and every character typed is in a message or kept.",
    run=run,
    fault="the old crash on scrolling to the end, and what is typed among messages is dropped: both must be found.",
    seen_as="the screen ended",
    run_with_fault=run_with_fault,
    order=60,
)
