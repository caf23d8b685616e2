"""Snapshots: ours, the TypeScript system's, and broken ones."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.context import ContextManager, ContextSnapshot
from bullpen.errors import InvalidSnapshot
from bullpen.messages import ConversationMessage, MessageDraft, Routing, Speaker

KAILAI = Speaker(role_id="kailai", role_name="kailai", type="human", role_title="Owner")


def message(number: int = 1, **fields: Any) -> dict[str, Any]:
    speaker = {"roleId": "kailai", "roleName": "kailai", "type": "human"}
    return {"id": f"msg-{number}", "content": "hi", "speaker": speaker, "timestamp": 1000, **fields}


def snapshot(*messages: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps({"messages": messages, "teamTask": None, "timestamp": 1, "version": 1, **fields}).encode()


def loaded(data: bytes) -> ContextManager:
    manager = ContextManager()
    manager.import_snapshot(ContextSnapshot.from_json(data))
    return manager


def test_a_snapshot_written_by_the_typescript_system_loads() -> None:
    data = snapshot(
        message(
            1,
            id="msg-1705312800000-k3j9x",
            timestamp="2024-01-15T10:00:00.000Z",
            speaker={"id": "human-1", "name": "human", "displayName": "User", "type": "human"},
            routing={
                "rawNextMarkers": ["[NEXT:claude]"],
                "resolvedAddressees": [{"identifier": "claude", "memberId": "ai-1", "memberName": "Claude"}],
                "parsedAddressees": [{"name": "claude", "intent": "P2"}],
                "intent": "P2_REPLY",
                "parentMessageId": None,
                "dropTargets": ["ALL"],
            },
        ),
        message(
            2,
            speaker={"roleId": "ai-1", "roleName": "Claude", "roleTitle": "Engineer", "type": "ai"},
            routing={"resolvedAddressees": [{"identifier": "nobody", "roleId": None, "roleName": None}, "human"]},
        ),
        teamTask="Test task",
    )

    manager = loaded(data)

    assert manager.get_team_task() == "Test task"
    assert manager.get_messages() == [
        ConversationMessage(
            id="msg-1705312800000-k3j9x",
            content="hi",
            speaker=Speaker(role_id="human-1", role_name="human", type="human", role_title="User"),
            timestamp=1705312800000,
            routing=Routing(
                resolved_addressees=("Claude",),
                raw_next_markers=("[NEXT:claude]",),
                drop_targets=("ALL",),
                intent="P2_REPLY",
            ),
            extra={
                "routing": {
                    "parsedAddressees": [{"name": "claude", "intent": "P2"}],
                    "resolvedAddressees": [{"identifier": "claude", "memberId": "ai-1", "memberName": "Claude"}],
                }
            },
        ),
        ConversationMessage(
            id="msg-2",
            content="hi",
            speaker=Speaker(role_id="ai-1", role_name="Claude", type="ai", role_title="Engineer"),
            timestamp=1000,
            routing=Routing(resolved_addressees=("nobody", "human")),
            extra={
                "routing": {"resolvedAddressees": [{"identifier": "nobody", "roleId": None, "roleName": None}, "human"]}
            },
        ),
    ]
    source = manager.get_context_for_agent("x", "claude", message_id="msg-1705312800000-k3j9x")
    assert source.current_message == "hi"


def test_fields_that_are_not_ours_come_back_where_they_were() -> None:
    foreign = message(
        1,
        metadata={"tags": ["a", 1, None]},
        extra="their own word",
        speaker={"roleId": "max", "roleName": "Max", "type": "ai", "avatar": "🤖"},
        routing={"resolvedAddressees": [{"memberName": "sarah", "memberId": 7}], "priority": 2},
    )
    data = snapshot(foreign, message(2), sessionId="s-1", summary={"words": 3})

    written = json.loads(loaded(data).export_snapshot().to_json())
    again = json.loads(loaded(json.dumps(written).encode()).export_snapshot().to_json())

    assert written["messages"][0] == foreign
    assert "metadata" not in written["messages"][1]
    assert (written["sessionId"], written["summary"]) == ("s-1", {"words": 3})
    assert {**again, "timestamp": 0} == {**written, "timestamp": 0}


def test_the_other_spelling_of_a_field_is_kept_beside_ours() -> None:
    speaker = {"roleId": "a", "roleName": "A", "type": "ai", "id": "x", "name": "X", "displayName": "Dr X"}

    written = json.loads(loaded(snapshot(message(1, speaker=speaker))).export_snapshot().to_json())

    assert written["messages"][0]["speaker"] == {
        "roleId": "a",
        "roleName": "A",
        "type": "ai",
        "roleTitle": "Dr X",
        "id": "x",
        "name": "X",
    }


def test_names_of_our_own_export_are_not_special_elsewhere() -> None:
    foreign = message(1, hash="abc", sequence=9)

    written = json.loads(loaded(snapshot(foreign, conversation={"a": 1}, turns=[1])).export_snapshot().to_json())

    assert (written["messages"][0]["hash"], written["messages"][0]["sequence"]) == ("abc", 9)
    assert (written["conversation"], written["turns"]) == ({"a": 1}, [1])


def test_fields_that_are_not_ours_can_be_added_to_a_message() -> None:
    manager = ContextManager()

    manager.add_message(MessageDraft(content="hi", speaker=KAILAI, extra={"mood": "good"}))

    assert json.loads(manager.export_snapshot().to_json())["messages"][0]["mood"] == "good"
    assert manager.get_messages()[0].extra == {"mood": "good"}


def test_half_an_emoji_that_javascript_left_behind_loads() -> None:
    data = (
        b'{"version":1,"timestamp":1,"teamTask":"cut \\ud83d","messages":[%s]}'
        % json.dumps(message(content="half \ud83d")).encode()
    )

    manager = loaded(data)

    assert manager.get_team_task() == "cut \ufffd"
    assert manager.get_messages()[0].content == "half \ufffd"


def test_ids_go_on_after_the_highest() -> None:
    manager = loaded(snapshot(message(7), message(3), message(1, id="other"), message(1, id="msg-" + "9" * 5000)))

    assert manager.add_message(MessageDraft(content="next", speaker=KAILAI)).id == "msg-8"
    assert manager.get_context_for_agent("x", "claude", message_id="msg-3").current_message == "hi"
    assert manager.get_context_for_agent("x", "claude", message_id="msg-8").current_message == "next"


def test_a_team_task_over_the_limit_is_cut_as_when_it_is_set(caplog: pytest.LogCaptureFixture) -> None:
    manager = loaded(snapshot(teamTask="x" * 6000))

    assert manager.get_team_task() == "x" * 5120
    assert "TeamTask exceeded 5KB limit (6000 bytes), truncated to 5120 bytes" in caplog.text


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SPEAKERS = st.builds(
    Speaker,
    role_id=TEXT.filter(bool),
    role_name=TEXT.filter(bool),
    type=st.sampled_from(["human", "ai", "system"]),
    role_title=st.none() | TEXT.filter(bool),
)
DRAFTS = st.builds(
    MessageDraft,
    content=TEXT,
    speaker=SPEAKERS,
    routing=st.none() | st.builds(Routing, resolved_addressees=st.lists(TEXT.filter(bool), max_size=3).map(tuple)),
    timestamp=st.none() | st.integers(0, 2**50),
)


@given(drafts=st.lists(DRAFTS, max_size=8), task=st.none() | TEXT)
def test_what_is_exported_comes_back(drafts: list[MessageDraft], task: str | None) -> None:
    manager = ContextManager()
    for draft in drafts:
        manager.add_message(draft)
    if task is not None:
        manager.set_team_task(task)
    exported = manager.export_snapshot()

    again = loaded(exported.to_json())

    assert again.get_messages() == manager.get_messages() == list(exported.messages)
    assert again.get_team_task() == manager.get_team_task()
    assert json.loads(exported.to_json()) == json.loads(again.export_snapshot().to_json()) | {
        "timestamp": exported.timestamp
    }


def test_a_snapshot_does_not_change_with_the_conversation() -> None:
    manager = ContextManager()
    manager.add_message(MessageDraft(content="one", speaker=KAILAI))
    exported = manager.export_snapshot()

    manager.add_message(MessageDraft(content="two", speaker=KAILAI))

    assert [message.content for message in exported.messages] == ["one"]
    assert b"two" not in exported.to_json()


def test_a_snapshot_made_by_hand_can_be_written() -> None:
    by_hand = ContextSnapshot(messages=[ConversationMessage(id="m", content="hi", speaker=KAILAI)], timestamp=5)

    assert ContextSnapshot.from_json(by_hand.to_json()) == by_hand


DEEP = 100_000
BROKEN = {
    "nothing": b"",
    "no JSON": b"not JSON",
    "half of it": snapshot(message())[:-20],
    "bad UTF-8": b'{"version":1,"messages":[],"teamTask":"\xff"}',
    "an array": b"[]",
    "null": b"null",
    "no version": b'{"messages":[]}',
    "another version": snapshot(version=2),
    "a version in words": snapshot(version="1"),
    "no messages": b'{"version":1}',
    "messages of the wrong type": snapshot().replace(b"[]", b"{}"),
    "a message without an id": snapshot({k: v for k, v in message().items() if k != "id"}),
    "an empty id": snapshot(message(id="")),
    "content of the wrong type": snapshot(message(content=7)),
    "no speaker": snapshot(message(speaker=None)),
    "a speaker without an id": snapshot(message(speaker={"type": "ai"})),
    "a speaker of no type": snapshot(message(speaker={"roleId": "x", "roleName": "x", "type": "dog"})),
    "a time that is none": snapshot(message(timestamp="yesterday")),
    "a time without end": snapshot(message()).replace(b"1000", b"1e999"),
    "duplicate ids": snapshot(message(1), message(1)),
    "a team task of the wrong type": snapshot(teamTask=7),
    "deep arrays": b"[" * DEEP,
    "deep unknown arrays": b'{"version":1,"messages":[],"x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep unknown objects": b'{"version":1,"messages":[],"x":' + b'{"a":' * DEEP + b"1" + b"}" * DEEP + b"}",
    "deep in bad Unicode": b'{"version":1,"messages":[],"y":"\\ud83d","x":' + b"[" * DEEP + b"]" * DEEP + b"}",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_snapshot_changes_nothing(data: bytes) -> None:
    manager = ContextManager()
    manager.add_message(MessageDraft(content="kept", speaker=KAILAI))
    manager.set_team_task("kept too")

    with pytest.raises(InvalidSnapshot, match=r"^Invalid snapshot format: .* was left as it was"):
        manager.import_snapshot(ContextSnapshot.from_json(data))

    assert [message.content for message in manager.get_messages()] == ["kept"]
    assert manager.get_team_task() == "kept too"
    assert manager.add_message(MessageDraft(content="next", speaker=KAILAI)).id == "msg-2"


@pytest.mark.parametrize(
    "bad",
    [
        None,
        {},
        b"{}",
        ContextSnapshot(messages=[], version=2),
        ContextSnapshot(messages=[], team_task=7),  # type: ignore[arg-type]
        ContextSnapshot(messages=None),  # type: ignore[arg-type]
        ContextSnapshot(messages=["hi"]),  # type: ignore[list-item]
        ContextSnapshot(messages=[MessageDraft(content="x", speaker=KAILAI)]),  # type: ignore[list-item]
        ContextSnapshot(messages=[ConversationMessage(id="m", content=7, speaker=KAILAI)]),  # type: ignore[arg-type]
    ],
)
def test_an_object_that_is_no_snapshot_changes_nothing(bad: ContextSnapshot) -> None:
    manager = ContextManager()
    manager.add_message(MessageDraft(content="kept", speaker=KAILAI))

    with pytest.raises(InvalidSnapshot, match=r"^Invalid snapshot format"):
        manager.import_snapshot(bad)

    assert [message.content for message in manager.get_messages()] == ["kept"]


@given(data=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_garbage_is_refused_with_a_sentence(data: bytes) -> None:
    with pytest.raises(InvalidSnapshot):
        ContextSnapshot.from_json(data)
