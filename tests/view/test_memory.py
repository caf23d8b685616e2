"""What a member remembers: the same for a stored conversation and for an open one, and in words."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.tui.stage import Stage
from tests.view.remembering import BEGINNING, FIRST, GONE, MINUTE, SECOND, write_remembering

from bullpen.app import open_team
from bullpen.conversation.conversation import Conversation
from bullpen.exchange.forking import fork_conversation
from bullpen.store.base import Store
from bullpen.store.sqlite import SqliteStore
from bullpen.text.numbers import local_time
from bullpen.view.memory import MemoryView
from bullpen.view.messages import ShownMessage, plain_messages, shown_messages
from bullpen.view.state import ConversationView, conversation_view, stored_view
from bullpen.view.status_lines import team_lines


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    stage = Stage(tmp_path)
    stage.agent("max", [{"say": "Done."}])
    stage.agent("ada", [{"say": "Done."}], cli="gemini")
    stage.agent("bob", [{"say": "Done."}], more='memory = "shared"')
    return stage


def memories(view: ConversationView) -> dict[str, MemoryView | None]:
    return {member.name: member.memory for member in view.members}


@pytest.mark.parametrize(("turns", "session_id", "held"), [(2, FIRST, 2), (3, SECOND, 1), (4, SECOND, 2)])
def test_a_stored_session_is_shown_with_its_age_and_size(
    tmp_path: Path, turns: int, session_id: str, held: int
) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        write_remembering(store, turns=turns)
        found = memories(stored_view(store, "warm-river-1"))

    since = BEGINNING + (2 if session_id == FIRST else 6) * MINUTE
    memory = MemoryView(kind="own", session_id=session_id, since=since, turns=held, tokens=12_000)
    shared = MemoryView(kind="shared", why="gemini does not continue a session exactly as it was")
    assert found == {"kim": None, "max": memory, "ada": shared}
    turned = "1 turn" if held == 1 else "2 turns"
    assert memory.sentence == f"remembers {turned} · 12k tokens since {local_time(since)}, session {session_id}"


async def _told(stage: Stage) -> list[tuple[ConversationView, ConversationView]]:
    """Return a conversation as its owner and as another process sees it: before a turn, after it, after forgetting."""
    async with open_team(stage.team, db=stage.db) as conversation:
        seen = [_both(conversation, stage)]
        await conversation.say("Go [NEXT: max]")
        await conversation.until_quiet()
        seen.append(_both(conversation, stage))
        await conversation.forget("max")
        seen.append(_both(conversation, stage))
    return seen


def _both(conversation: Conversation, stage: Stage) -> tuple[ConversationView, ConversationView]:
    with SqliteStore(stage.db) as other:
        return conversation_view(conversation), stored_view(other, conversation.id)


def test_an_open_conversation_shows_what_another_process_sees(stage: Stage) -> None:
    told = asyncio.run(_told(stage))

    assert [memories(own) == memories(other) for own, other in told] == [True] * 3
    before, after, forgotten = [memories(own) for own, _ in told]
    assert before["max"] == MemoryView(kind="own", why="it has not had a turn here")
    assert before["bob"] == MemoryView(
        kind="shared", why='the team file says memory = "shared" or prompts = "specification"'
    )
    assert before["kim"] is None
    assert after["max"] != before["max"]
    assert forgotten["max"] is not None
    assert after["max"] is not None
    assert forgotten["max"] == replace(after["max"], why="kim made it forget")


def test_who_is_in_the_team_comes_with_what_they_remember(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        write_remembering(store)
        lines = team_lines(stored_view(store, "warm-river-1"))

    since = local_time(BEGINNING + 6 * MINUTE)
    assert lines == [
        "kim: a person",
        "max: claude",
        f"  remembers 2 turns · 12k tokens since {since}, session {SECOND}",
        "ada: gemini",
        "  no memory of its own: gemini does not continue a session exactly as it was",
    ]


def test_what_will_be_forgotten_says_so() -> None:
    memory = MemoryView(kind="own", why="kim made it forget", session_id=FIRST, since=BEGINNING, turns=2, tokens=900)

    assert memory.sentence == (
        f"remembers 2 turns · 900 tokens since {local_time(BEGINNING)}, session {FIRST}; "
        "its next turn begins a new one: kim made it forget"
    )
    assert memory.short_id == FIRST[-8:]


def test_a_fork_shows_whose_copy_it_continues_and_does_not_promise_that_it_can(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        fork = fork_conversation(store, write_remembering(store), 2).id
        memory = memories(stored_view(store, fork))["max"]

    assert memory == MemoryView(kind="own", copy_of=FIRST)
    assert memory.short == "continues a copy"
    assert memory.sentence == (
        f"no session: its first turn continues a copy of {FIRST}, if that can still be continued"
    )
    forgotten = replace(memory, why="kim made it forget")
    assert (forgotten.short, forgotten.sentence) == ("no session yet", "no session: kim made it forget")


@pytest.mark.parametrize("read", [shown_messages, plain_messages])
def test_a_message_says_that_its_session_was_rebuilt(
    tmp_path: Path, read: Callable[[Store, str], list[ShownMessage]]
) -> None:
    with SqliteStore(tmp_path / "c.db") as store:
        shown = read(store, write_remembering(store))

    assert {one.sequence: one.rebuilt for one in shown if one.rebuilt} == {6: GONE}
