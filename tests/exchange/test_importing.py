"""Conversations from elsewhere: all of it, or nothing."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from bullpen.errors import InvalidImport, StoreFull
from bullpen.exchange import new_conversations
from bullpen.exchange.files import Format, write_export
from bullpen.exchange.importing import UNFINISHED, copies_of, import_conversation, read_import
from bullpen.messages import ConversationMessage, Routing, Speaker
from bullpen.store.base import StateChange
from bullpen.store.sqlite import SqliteStore
from bullpen.testing.conversations import EXAMPLE_ID, write_example

# As the TypeScript system wrote it to ~/.agent-chatter/sessions/<team>/<time>-<session>.json.
SESSION: dict[str, Any] = {
    "schemaVersion": "1.0",
    "teamId": "builders",
    "sessionId": "0f4c2a52-3f0e-4b7e-9d53-58a1b7c1de01",
    "createdAt": "2025-11-27T10:30:00.000Z",
    "updatedAt": "2025-11-27T10:31:00.000Z",
    "context": {
        "messages": [
            {
                "id": "msg-1",
                "timestamp": "2025-11-27T10:30:01.000Z",
                "speaker": {"id": "kai", "name": "kai", "displayName": "Kai", "type": "human"},
                "content": "你好 [NEXT: max]",
                "routing": {
                    "rawNextMarkers": ["max"],
                    "resolvedAddressees": [{"identifier": "max", "memberId": "m-1", "memberName": "max"}],
                },
            },
            {
                "id": "msg-2",
                "timestamp": "2025-11-27T10:30:05.000Z",
                "speaker": {"id": "m-1", "name": "max", "displayName": "Max", "type": "ai"},
                "content": "Hello.",
            },
        ],
        "teamTask": "Build it.",
        "timestamp": 1764239461000,
        "version": 1,
    },
    "metadata": {"lastSpeakerId": "m-1", "messageCount": 2, "summary": '2 messages - "Hello."'},
}
MESSAGES = [
    ConversationMessage(
        id="msg-1",
        content="你好 [NEXT: max]",
        speaker=Speaker(role_id="kai", role_name="kai", type="human", role_title="Kai"),
        timestamp=1_764_239_401_000,
        routing=Routing(resolved_addressees=("max",), raw_next_markers=("max",)),
        extra={
            "routing": {"resolvedAddressees": [{"identifier": "max", "memberId": "m-1", "memberName": "max"}]},
        },
    ),
    ConversationMessage(
        id="msg-2",
        content="Hello.",
        speaker=Speaker(role_id="m-1", role_name="max", type="ai", role_title="Max"),
        timestamp=1_764_239_405_000,
    ),
]


def encoded(document: object) -> bytes:
    return json.dumps(document).encode()


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "a.db")


def test_a_session_of_the_typescript_system(store: SqliteStore) -> None:
    imported = read_import(b"\xef\xbb\xbf" + encoded(SESSION))

    conversation_id = import_conversation(store, imported)

    assert [stored.message for stored in store.messages(conversation_id)] == MESSAGES
    conversation = store.conversation(conversation_id)
    assert (conversation.team, conversation.team_task) == ("builders", "Build it.")
    assert (conversation.started_at, conversation.state) == (1_764_239_400_000, "idle")
    assert store.fsck() == []


def test_a_snapshot(store: SqliteStore) -> None:
    imported = read_import(encoded(SESSION["context"]))

    assert list(imported.messages) == MESSAGES
    assert (imported.team, imported.started_at) == ("", MESSAGES[0].timestamp)


def test_fields_that_are_not_ours_survive_import_and_export(store: SqliteStore) -> None:
    document = json.loads(encoded(SESSION["context"]))
    document["mood"] = "good"
    document["messages"][0]["metadata"] = {"b": 1, "a": [None]}
    document["messages"][1]["speaker"]["avatar"] = "🤖"

    conversation_id = import_conversation(store, read_import(encoded(document)))
    file = io.StringIO()
    write_export(store, conversation_id, file, "json")
    export = json.loads(file.getvalue())

    assert export["mood"] == "good"
    assert export["messages"][0]["metadata"] == {"b": 1, "a": [None]}
    assert export["messages"][0]["routing"] == document["messages"][0]["routing"]
    assert export["messages"][1]["speaker"]["avatar"] == "🤖"
    again = read_import(file.getvalue().encode())
    assert list(again.messages) == [stored.message for stored in store.messages(conversation_id)]
    assert again.extra == {"mood": "good"}
    assert store.fsck() == []
    changed = file.getvalue().replace('"avatar":"🤖"', '"avatar":"👻"')
    with pytest.raises(InvalidImport, match="message 2 was changed after the export"):
        read_import(changed.encode())


def test_fields_with_the_names_of_our_export_survive_it(store: SqliteStore) -> None:
    document = json.loads(encoded(SESSION["context"]))
    document |= {"conversation": {"a": 1}, "turns": [1], "format": "theirs", "foreign": 7}
    document["messages"][0] |= {"sequence": 9, "hash": "abc", "foreign": {"x": 1}}

    conversation_id = import_conversation(store, read_import(encoded(document)))
    file = io.StringIO()
    write_export(store, conversation_id, file, "json")
    again = read_import(file.getvalue().encode())

    assert list(again.messages) == [stored.message for stored in store.messages(conversation_id)]
    assert again.messages[0].extra is not None
    assert {**again.messages[0].extra, "routing": None} == {
        "sequence": 9,
        "hash": "abc",
        "foreign": {"x": 1},
        "routing": None,
    }
    assert again.extra == {"conversation": {"a": 1}, "turns": [1], "format": "theirs", "foreign": 7}


def test_the_title_goes_along(store: SqliteStore) -> None:
    write_example(store)
    store.update(EXAMPLE_ID, at=0, change=StateChange(title="The login *now*"))
    written = {"json": io.StringIO(), "md": io.StringIO(), "html": io.StringIO()}
    for file_format, file in written.items():
        write_export(store, EXAMPLE_ID, file, cast(Format, file_format))

    again = import_conversation(store, read_import(written["json"].getvalue().encode()))

    assert store.conversation(again).title == "The login *now*"
    assert written["md"].getvalue().startswith("# The login \\*now\\*\n")
    assert "<h1>The login *now*</h1>" in written["html"].getvalue()


def test_a_long_task_is_cut_in_a_snapshot_and_whole_beside_it(store: SqliteStore) -> None:
    store.create("c", team="T", team_file="", started_at=1, team_task="t" * 6000)
    store.append("c", MESSAGES[1])
    file = io.StringIO()
    write_export(store, "c", file, "json")

    assert json.loads(file.getvalue())["teamTask"] == "t" * 5120
    assert read_import(file.getvalue().encode()).team_task == "t" * 6000


def test_half_an_emoji_is_no_obstacle() -> None:
    data = encoded(SESSION).replace(b"Hello.", b"Hello \\ud83d")

    assert read_import(data).messages[1].content == "Hello \ufffd"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"Where do we start?", b"Where do we stArt?"),
        (b'"roleName":"Kai"', b'"roleName":"Kay"'),
        (b'"resolvedAddressees":["sarah"]', b'"resolvedAddressees":["Sarah"]'),
        (b'"timestamp":1740992520000', b'"timestamp":1740992520001'),
        (b'"hash"', b'"hush"'),
        (b'"messages":6', b'"messages":7'),
        (b"firstLink", b"firstlink"),
    ],
)
def test_an_export_that_was_changed_is_refused(store: SqliteStore, before: bytes, after: bytes) -> None:
    write_example(store)
    file = io.StringIO()
    write_export(store, EXAMPLE_ID, file, "json")
    export = file.getvalue().encode()
    assert [stored.message for stored in store.messages(EXAMPLE_ID)] == list(read_import(export).messages)

    assert before in export
    with pytest.raises(InvalidImport, match=r"was changed after the export|6 of 7 messages|hex"):
        read_import(export.replace(before, after, 1))


def test_an_export_without_hashes_is_a_snapshot(store: SqliteStore) -> None:
    write_example(store)
    file = io.StringIO()
    write_export(store, EXAMPLE_ID, file, "json")
    export = json.loads(file.getvalue())
    del export["format"]
    for message in export["messages"]:
        del message["hash"]

    assert len(read_import(encoded(export)).messages) == 6


def without(*path: str) -> object:
    document = json.loads(encoded(SESSION))
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return document


def changed(**fields: object) -> object:
    return {**SESSION, **fields}


def first_message(**fields: object) -> object:
    first, second = SESSION["context"]["messages"]
    return changed(context={**SESSION["context"], "messages": [{**first, **fields}, second]})


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ([], "not a JSON object"),
        ({}, "neither a snapshot"),
        (changed(schemaVersion="2.0"), "schemaVersion is '2.0'"),
        (without("context", "version"), "version"),
        (changed(context={"version": 1, "messages": []}), "no messages"),
        (first_message(id="msg-2"), "is used twice"),
        (first_message(content=7), "Expected `str`"),
        (first_message(speaker={"id": "x", "type": "robot"}), "robot"),
        (first_message(timestamp="soon"), "Invalid isoformat"),
        (first_message(timestamp=10**18), "is not a valid time"),
        (first_message(timestamp=-1), "is not a valid time"),
    ],
)
def test_what_cannot_be_read_is_refused(document: object, reason: str) -> None:
    with pytest.raises(InvalidImport, match=reason):
        read_import(encoded(document))


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"version": 1e999, "messages": []}'])
def test_what_is_no_json_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidImport):
        read_import(data)


def test_a_copy_is_noticed(store: SqliteStore) -> None:
    imported = read_import(encoded(SESSION))
    first = import_conversation(store, imported)

    assert copies_of(store, imported) == [first]
    assert import_conversation(store, imported) != first
    assert copies_of(store, read_import(encoded(SESSION["context"]))) == []


def test_an_import_that_fails_leaves_nothing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    extend = store.extend
    states: list[str | None] = []

    def full_after_one(conversation_id: str, messages: Sequence[ConversationMessage]) -> None:
        states.append(store.conversation(conversation_id).paused)
        if len(states) == 2:
            raise StoreFull("a.db")
        extend(conversation_id, messages)

    monkeypatch.setattr(new_conversations, "STORED_AT_ONCE", 1)
    monkeypatch.setattr(store, "extend", full_after_one)

    with pytest.raises(StoreFull):
        import_conversation(store, read_import(encoded(SESSION)))

    assert store.conversations() == []
    # Whoever looks while it is under way, or after a crash, sees that it is not all there.
    assert states == [UNFINISHED, UNFINISHED]
