"""A failing test prints the conversation, the events and the agents' output that matter.

Conversations of the test's own process are read from their events; those of other processes, from the databases in the
test's folder.
"""

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest

from bullpen.conversation.broadcast import Broadcast
from bullpen.conversation.events import ConversationEvent, Said, TurnEnded, TurnEvent
from bullpen.errors import BullpenError
from bullpen.store.sqlite import SqliteStore
from bullpen.turn_events import TextDelta

MOST_EVENTS = 60
MOST_CHARACTERS = 4_000
MOST_DATABASES = 3

_broadcasts: list[Broadcast] = []
"""Of the conversations that the running test has opened."""
_init = Broadcast.__init__


def _noted(self: Broadcast) -> None:
    _init(self)
    _broadcasts.append(self)


setattr(Broadcast, "__init__", _noted)  # noqa: B010


def pytest_runtest_setup() -> None:
    _broadcasts.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what was said and done to the report of a failure."""
    report = yield
    if report.failed and call.when == "call":
        report.sections += [(title, text[-MOST_CHARACTERS:]) for title, text in _sections(item) if text]
    return report


def _sections(item: pytest.Item) -> Iterator[tuple[str, str]]:
    for number, broadcast in enumerate(_broadcasts, start=1):
        events = [numbered.event for numbered in broadcast._recent]
        which = f" {number}" if len(_broadcasts) > 1 else ""
        yield f"conversation{which}", "\n".join(_said(events))
        yield f"events{which}", "\n".join(_shown(events))
        yield f"output of agents{which}", "\n".join(_output(events))
    folder = item.funcargs.get("tmp_path") if isinstance(item, pytest.Function) else None
    if isinstance(folder, Path) and not _broadcasts:
        for path in sorted(folder.rglob("*.db"))[:MOST_DATABASES]:
            yield f"conversations in {path}", "\n".join(_stored(path))


def _said(events: Iterable[ConversationEvent]) -> Iterator[str]:
    for event in events:
        if isinstance(event, Said):
            yield f"{event.sequence} {event.message.speaker.role_id}: {event.message.content[:500]}"


def _shown(events: Iterable[ConversationEvent]) -> list[str]:
    """Return the last events but for pieces of text, a line each."""
    lines = [
        f"{event.member} {event.turn_id}: {event.event!r}" if isinstance(event, TurnEvent) else repr(event)
        for event in events
        if not isinstance(event, Said) and not (isinstance(event, TurnEvent) and isinstance(event.event, TextDelta))
    ]
    return [line[:300] for line in lines[-MOST_EVENTS:]]


def _output(events: Iterable[ConversationEvent]) -> Iterator[str]:
    """Yield what each agent wrote in each turn, and how it failed."""
    texts: dict[str, str] = {}
    for event in events:
        if isinstance(event, TurnEvent) and isinstance(event.event, TextDelta):
            texts[event.turn_id] = texts.get(event.turn_id, "") + event.event.text
        elif isinstance(event, TurnEnded):
            why = f" {event.failure.message} {event.failure.stderr_tail}" if event.failure else ""
            yield f"turn {event.turn_id} of {event.member}, {event.state}:{why} {texts.pop(event.turn_id, '')[:1000]}"
    for turn, text in texts.items():
        yield f"turn {turn}, not ended: {text[:1000]}"


def _stored(path: Path) -> Iterator[str]:
    try:
        with SqliteStore(path) as store:
            for conversation in store.conversations():
                yield f"-- {conversation.id}"
                for one in store.messages(conversation.id, limit=30):
                    yield f"{one.sequence} {one.message.speaker.role_id}: {one.message.content[:500]}"
                for turn in store.turns(conversation.id):
                    yield f"turn {turn.id} of {turn.member}: {turn.state}"
    except (BullpenError, OSError, sqlite3.Error) as error:
        yield f"It cannot be read: {error}"
