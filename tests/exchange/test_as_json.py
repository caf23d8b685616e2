"""JSON for programs, which is a snapshot too."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from bullpen.context.snapshot import ContextSnapshot
from bullpen.exchange import formatting
from bullpen.exchange.files import write_export
from bullpen.messages import ConversationMessage
from bullpen.store.base import Decision, StateChange, StoredMessage
from bullpen.store.chain import first_link
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, EXAMPLE_TEAM, KAI, write_example


def exported(store: SqliteStore, conversation_id: str = EXAMPLE_ID, *, prompts: bool = False) -> str:
    file = io.StringIO()
    write_export(store, conversation_id, file, "json", prompts=prompts)
    return file.getvalue()


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "a.db")
    write_example(store)
    return store


def test_all_messages_and_turns_are_there(store: SqliteStore) -> None:
    document = json.loads(exported(store))

    stored = store.messages(EXAMPLE_ID)
    assert document["conversation"] == {
        "id": "quiet-river-4f2a",
        "team": "Builders",
        "title": None,
        "startedAt": 1_740_992_400_000,
        "firstLink": first_link("quiet-river-4f2a", "Builders", EXAMPLE_TEAM, 1_740_992_400_000).hex(),
        "lastAt": 1_740_992_700_000,
        "messages": 6,
        "state": "queued",
        "task": "Build the login.",
        "waitsFor": None,
        "paused": None,
        "decisions": [],
        "changes": [],
        "checks": [],
        "approvals": [],
    }
    assert [message["hash"] for message in document["messages"]] == [one.hash.hex() for one in stored]
    assert [(turn["id"], turn["state"]) for turn in document["turns"]] == [
        ("1", "done"),
        ("2", "done"),
        ("3", "done"),
        ("4", "failed"),
        ("5", "queued"),
    ]
    assert document["turns"][0]["usage"] == {
        "inputTokens": 1200,
        "outputTokens": 85,
        "cachedTokens": 900,
        "costUsd": 0.0123,
        "isEstimate": False,
        "model": "",
        "contextWindow": 0,
        "agent": "",
        "quota": None,
    }
    assert document["turns"][3]["failure"]["partialText"] == "Test 1: "


def test_what_people_decided_is_there(store: SqliteStore) -> None:
    decision = Decision(at=7, person="kai", choice="allow", turns=("5",))
    store.update(EXAMPLE_ID, at=7, change=StateChange(decision=decision), owner=store.conversation(EXAMPLE_ID).owner)

    decided = json.loads(exported(store))["conversation"]["decisions"]

    assert decided == [{"at": 7, "person": "kai", "choice": "allow", "turns": ["5"]}]


def test_it_is_a_snapshot(store: SqliteStore) -> None:
    snapshot = ContextSnapshot.from_json(exported(store))

    assert list(snapshot.messages) == [stored.message for stored in store.messages(EXAMPLE_ID)]
    assert snapshot.team_task == "Build the login."


def test_prompts_streams_and_command_lines_only_on_demand(store: SqliteStore) -> None:
    def private(document: dict[str, Any]) -> list[str]:
        names = {name for turn in document["turns"] for name in turn}
        return sorted(names & {"prompt", "system", "command", "stream", "report", "streamIsCut"})

    assert private(json.loads(exported(store))) == []
    assert EXAMPLE_TEAM not in exported(store)

    document = json.loads(exported(store, prompts=True))
    assert private(document) == ["command", "prompt", "report", "stream", "streamIsCut", "system"]
    assert document["turns"][2]["prompt"].startswith("[SYSTEM]\nYou are Sarah.")
    assert document["turns"][2]["report"]["sectionBytes"]["team_task"] == 28
    assert document["turns"][2]["stream"] == '{"type": "result", "turn": "3"}\n\x1b[31m'
    assert document["conversation"]["teamFile"] == EXAMPLE_TEAM


def test_a_conversation_without_messages(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "b.db") as store:
        store.create("c", team="T", team_file="", started_at=1)

        assert json.loads(exported(store, "c"))["messages"] == []


def test_messages_are_read_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formatting, "PAGE_MESSAGES", 3)
    pages: list[int] = []
    with SqliteStore(tmp_path / "b.db") as store:
        store.create("c", team="T", team_file="", started_at=1)
        for number in range(1, 9):
            store.append("c", ConversationMessage(id=f"m{number}", content="x", speaker=KAI))
        read = store.messages

        def noted(*arguments: Any, **options: Any) -> list[StoredMessage]:
            page = read(*arguments, **options)
            pages.append(len(page))
            return page

        monkeypatch.setattr(store, "messages", noted)

        document = json.loads(exported(store, "c"))

    # Before the messages, and before the turns, it is asked how many there are.
    assert pages == [1, 3, 3, 2, 1]
    assert [message["sequence"] for message in document["messages"]] == list(range(1, 9))
