"""What every store must do, as a class of tests: subclass it in a test module and define how to open the store.

class TestSqliteStore(StoreContract):
    def open_store(self, folder: Path) -> Store:
        return SqliteStore(folder / "bullpen.db")
"""

# ruff: noqa: D102, S101, S106

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import msgspec
import pytest
from msgspec.structs import replace

from bullpen.approvals import Answer, ApprovalRecord, Scope, Verdict
from bullpen.check_results import CheckResult, CheckState
from bullpen.context.prompt import AssemblerOutput
from bullpen.context.report import PromptReport
from bullpen.errors import (
    ConversationExists,
    MessageDiffers,
    NotTheOwner,
    StoreConflict,
    TurnConflict,
    TurnNumberTaken,
    UnknownConversation,
    UnknownMessage,
    UnknownTurn,
)
from bullpen.file_changes import (
    MOST_PATCH_BYTES,
    ChangeKind,
    ChangeRecord,
    FileChange,
    FileState,
    FolderChanges,
    Totals,
)
from bullpen.memory import FileMark, Memory
from bullpen.messages import ConversationMessage, Routing, Speaker, SpeakerType
from bullpen.routing.queue import WaitingTurn
from bullpen.store.base import (
    Decision,
    EndState,
    Owner,
    StateChange,
    Store,
    StoredConversation,
    StoredMessage,
    Turn,
    TurnEnd,
    TurnRecord,
)
from bullpen.store.chain import first_link
from bullpen.store.packing import StreamPacker
from bullpen.turn_events import ApprovalAsked, Failed, Usage

KAI = Speaker(role_id="kai", role_name="Kai", type="human")
MAX = Speaker(role_id="max", role_name="Max", type="ai", role_title="Architect")
OWNER = Owner(token="first", pid=1, start_time=10, boot_id="boot")
OTHER = Owner(token="second", pid=2, start_time=20, boot_id="boot")
GIVEN = AssemblerOutput(
    prompt="[MESSAGE]\n你好, Max 👍",
    system_flag="You are Max.",
    report=PromptReport(
        agent_type="claude-code",
        max_bytes=1000,
        section_bytes={"system": 12, "message": 28},
        context_ids=["m1", "m2"],
        dropped_messages=1,
    ),
)
ENDS: tuple[EndState, ...] = ("failed", "cancelled", "interrupted")

MEMORY = Memory(
    session_id="session-0",
    began_at=1,
    since=1,
    seen_to=1,
    agent="claude-code",
    folder="/project",
    visibility="all",
    file=FileMark(size=1, digest=""),
)

FOLDER = "/project 你好"
CHECK = CheckResult(
    turn_id="m1-max",
    member="max",
    name="pytest",
    command=("pytest", "-q"),
    workspace=FOLDER,
    state="running",
    at=130,
    after_message=1,
)
RED = replace(CHECK, state="red", exit_code=1, seconds=2.1, output="1 failed ✗\n", left_out=7, note="A note.")
ASKED = ApprovalRecord(
    turn_id="m1-max",
    member="max",
    question="q1",
    at=125,
    asked=ApprovalAsked(
        id="q1",
        kind="command",
        tool="Bash",
        command="rm -rf build 你好\x00\x1b[31m",
        details={"z": [1, 2.5, None], "a": {"b": True}},
        folder=FOLDER,
        why="To build it again.",
        choices=("yes", "no"),
    ),
)
ANSWERED = ApprovalRecord(
    turn_id="m1-max",
    member="max",
    question="q1",
    at=126,
    answer=Answer(verdict="no", reason="Not that folder ✗"),
    by="kai",
    scope="conversation",
    because="A rule.",
)
"""A question of the turn that `start` starts, and the answer to it."""
CHANGES = ChangeRecord(
    kind="turn",
    turn_id="m1-max",
    member="max",
    at=120,
    after_message=1,
    changes=FolderChanges(
        folder=FOLDER,
        before="a" * 40,
        after="b" * 40,
        files=(
            FileChange(
                path="src/\x1b[31m<b>.py",
                kind="changed",
                old=FileState(blob="c" * 40),
                new=FileState(blob="d" * 40, mode="100755"),
                added=2,
                removed=1,
            ),
            FileChange(
                path="caf\ufffd",
                raw_path=b"caf\xe9",
                kind="renamed",
                renamed_from="cof\ufffd",
                raw_renamed_from=b"cof\xe9",
                is_binary=True,
            ),
        ),
        patch="diff --git a/x b/x\n+```\r\n+你好\n",
        patch_is_cut=True,
        note="One file could not be read.",
    ),
)
"""Changes of the turn that `start` starts."""


def said(message_id: str, content: str = "hello", speaker: Speaker = KAI, at: int = 100) -> ConversationMessage:
    """Return a message."""
    return ConversationMessage(id=message_id, content=content, speaker=speaker, timestamp=at)


def asked(message_id: str, member: str = "max", *, turn_id: str = "", intent: int = 2, step: int = 0) -> WaitingTurn:
    """Return the turn that a message asks for."""
    name = turn_id or f"{message_id}-{member}"
    return WaitingTurn(id=name, member=member, message_id=message_id, intent=intent, step=step)


def alive(_: Owner) -> bool:
    """Return that every owner is alive."""
    return True


def dead(_: Owner) -> bool:
    """Return that no owner is alive."""
    return False


def ids(turns: list[Turn]) -> list[str]:
    """Return the ids of turns."""
    return [turn.id for turn in turns]


def sequences(messages: list[StoredMessage]) -> list[int]:
    """Return the numbers of messages."""
    return [stored.sequence for stored in messages]


def start(store: Store) -> None:
    """Start a turn of max."""
    store.append("c", said("m1"), turns=[asked("m1", "max")], owner=OWNER)
    store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=110)


def _prompt(store: Store, turn_id: str) -> str:
    record = store.record("c", turn_id)
    return "" if record is None else record.prompt


def without_patch(record: ChangeRecord) -> ChangeRecord:
    """Return changes as they are read without patches."""
    return replace(record, changes=replace(record.changes, patch=""))


def numbers(records: list[ChangeRecord]) -> list[int]:
    """Return the numbers of changes."""
    return [record.number for record in records]


def read_stream(store: Store) -> bytes:
    """Return what that turn has written."""
    record = store.record("c", "m1-max")
    return b"" if record is None else record.stream


WRITES: dict[str, Callable[[Store, Owner | None], object]] = {
    "append": lambda store, owner: store.append("c", said("m2"), owner=owner),
    "extend": lambda store, owner: store.extend("c", [said("m2"), said("m3")], owner=owner),
    "reply": lambda store, owner: store.append(
        "c", said("m2"), finishes=TurnEnd(turn_id="m1-max", state="done", at=1), owner=owner
    ),
    "update": lambda store, owner: store.update("c", at=200, drops=["m1-sarah"], owner=owner),
    "end_turn": lambda store, owner: store.end_turn("c", TurnEnd(turn_id="m1-max", state="failed", at=1), owner=owner),
    "keep_output": lambda store, owner: store.keep_output("c", "m1-max", b"more", owner=owner),
    "requeue": lambda store, owner: store.requeue("c", "m1-carol", asked("m1", turn_id="again"), at=1, owner=owner),
    "reorder": lambda store, owner: store.reorder("c", ["m1-sarah"], owner=owner),
    "add_changes": lambda store, owner: store.add_changes("c", CHANGES, owner=owner),
    "finish_changes": lambda store, owner: store.finish_changes("c", 1, CHANGES, owner=owner),
    "copy_changes": lambda store, owner: store.copy_changes("c", [replace(CHANGES, number=7)], owner=owner),
    "add_check": lambda store, owner: store.add_check("c", CHECK, owner=owner),
    "finish_check": lambda store, owner: store.finish_check("c", replace(RED, number=1), owner=owner),
    "copy_checks": lambda store, owner: store.copy_checks("c", [replace(RED, number=7)], owner=owner),
    "note_approval": lambda store, owner: store.note_approval("c", ANSWERED, owner=owner),
    "copy_approvals": lambda store, owner: store.copy_approvals(
        "c", [replace(ASKED, number=2, turn_id="there", after_message=1)], owner=owner
    ),
    "recover": lambda store, owner: store.recover("c", at=1, owner=owner),
    "discard": lambda store, owner: store.discard("c", owner=owner),
    "delete": lambda store, owner: store.delete("c", at=1, owner=owner),
    "start_turn": lambda store, owner: store.start_turn("c", "m1-sarah", owner=owner or OWNER, given=GIVEN, at=1),
    "give_again": lambda store, owner: store.give_again(
        "c", "m1-max", owner=owner or OWNER, given=replace(GIVEN, prompt="Again")
    ),
    "adopt": lambda store, owner: store.adopt("c", ["m1-max"], owner=owner or OWNER),
    "repair": lambda store, owner: store.repair("c", owner=owner),
    "beat": lambda store, owner: store.beat("c", owner or OWNER, at=1),
}
"""Everything that only the owner of a conversation may do, after `test_who_lost…` has prepared it."""


def everything(store: Store) -> object:
    """Return all that a store says of the conversation."""
    record = store.record("c", "m1-max")
    seen = store.changes("c"), store.checks("c"), store.approvals("c"), store.open_approvals("c")
    return store.conversation("c"), store.messages("c"), store.turns("c"), store.queued("c"), record, seen


class StoreContract:
    """What every store must do."""

    def open_store(self, folder: Path) -> Store:
        """Open the store in this folder; it contains what an earlier one has written."""
        raise NotImplementedError

    @pytest.fixture
    def empty(self, tmp_path: Path) -> Iterator[Store]:
        """Return a new store."""
        store = self.open_store(tmp_path)
        yield store
        store.close()

    @pytest.fixture
    def store(self, empty: Store) -> Store:
        """Return a store with a conversation "c" that OWNER owns."""
        begin(empty, "c")
        assert empty.claim("c", OWNER, is_alive=alive)
        return empty

    # Conversations

    def test_a_new_conversation_is_there(self, empty: Store) -> None:
        empty.create(
            "c",
            team="Builders",
            team_file="lead = 'max'",
            team_path="/here/team.toml",
            started_at=5,
            team_task="Ship it",
        )

        expected = StoredConversation(
            id="c",
            team="Builders",
            team_file="lead = 'max'",
            team_path="/here/team.toml",
            started_at=5,
            last_at=5,
            messages=0,
            first_words="",
            queued=0,
            running=0,
            team_task="Ship it",
            waits_for=None,
            paused=None,
            progress={},
            owner=None,
        )
        assert empty.conversation("c") == expected
        assert empty.conversations() == [expected]
        assert expected.state == "idle"

    def test_several_things_are_read_together(self, store: Store) -> None:
        store.append("c", said("m1"), owner=OWNER)
        with store.reading_together():
            assert store.conversation("c").messages == store.message_count("c") == 1
            with pytest.raises(UnknownMessage):
                store.message("c", "m2")
            with store.reading_together():
                assert [one.message.id for one in store.messages("c")] == ["m1"]
            assert store.message("c", "m1").sequence == 1
        store.append("c", said("m2"), owner=OWNER)
        assert store.conversation("c").messages == store.message_count("c") == 2
        with pytest.raises(UnknownConversation):
            store.message_count("nothing")

    def test_the_latest_activity_comes_first(self, empty: Store) -> None:
        for number, conversation_id in enumerate("abc"):
            begin(empty, conversation_id, at=number)
        empty.append("b", said("m1", "First\n words", at=50), turns=[asked("m1")])

        listed = empty.conversations()

        assert [conversation.id for conversation in listed] == ["b", "c", "a"]
        assert (listed[0].messages, listed[0].last_at, listed[0].first_words) == (1, 50, "First words")
        assert (listed[0].queued, listed[0].state) == (1, "queued")

    def test_it_begins_with_what_a_person_says_first(self, store: Store) -> None:
        store.append("c", said("m1", "Ready.", speaker=MAX), owner=OWNER)
        assert store.conversation("c").first_words == "Ready."
        store.append("c", said("m2", "Fix the login"), owner=OWNER)

        assert store.conversation("c").first_words == "Fix the login"

    def test_a_conversation_can_be_renamed_and_archived(self, store: Store) -> None:
        store.append("c", said("m1", at=50), owner=OWNER)

        # By anybody.
        store.label("c", title="The login 登录", archived_at=70)
        renamed = store.conversation("c")
        store.label("c", archived_at=None)
        store.append("c", said("m2", at=60), owner=OWNER)
        back = store.conversation("c")

        assert (renamed.title, renamed.archived_at, renamed.last_at) == ("The login 登录", 70, 50)
        assert (back.title, back.archived_at, back.last_at) == ("The login 登录", None, 60)
        store.update("c", at=0, change=StateChange(title=None), owner=OWNER)
        assert store.conversation("c").title is None
        assert store.fsck() == []

    def test_an_id_is_never_used_again(self, store: Store) -> None:
        with pytest.raises(ConversationExists):
            begin(store, "c")
        store.delete("c", at=9, owner=OWNER)
        with pytest.raises(ConversationExists):
            begin(store, "c")

    def test_a_deleted_conversation_leaves_nothing_behind(self, store: Store) -> None:
        begin(store, "kept")
        store.append("kept", said("m1", "a secret kept"))
        store.append("c", said("m1", "a secret lost"), turns=[asked("m1")], owner=OWNER)
        store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=1)

        store.delete("c", at=9, owner=OWNER)

        assert [conversation.id for conversation in store.conversations()] == ["kept"]
        assert [found.conversation_id for found in store.search("secret")] == ["kept"]
        assert store.fsck() == []
        with pytest.raises(UnknownConversation):
            store.messages("c")

    def test_what_is_unknown_is_said_to_be(self, store: Store) -> None:
        with pytest.raises(UnknownConversation):
            store.append("nowhere", said("m1"))
        with pytest.raises(UnknownMessage):
            store.message("c", "m1")
        with pytest.raises(UnknownMessage):
            store.update("c", at=1, turns=[asked("m1")], owner=OWNER)
        with pytest.raises(UnknownTurn):
            store.turn("c", "t")
        with pytest.raises(UnknownTurn):
            store.start_turn("c", "t", owner=OWNER, given=GIVEN, at=1)

    def test_state_changes_only_where_it_is_told_to(self, store: Store) -> None:
        change = StateChange(
            team_task="Ship it", waits_for="kai", paused="20 turns", progress={"turns": 20, "usd": 0.5}
        )
        store.append("c", said("m1"), change=change, owner=OWNER)
        store.append("c", said("m2"), change=StateChange(paused=None), owner=OWNER)
        store.update("c", at=200, change=StateChange(waits_for="ana"), owner=OWNER)

        stored = store.conversation("c")
        assert (stored.team_task, stored.waits_for, stored.paused) == ("Ship it", "ana", None)
        assert (stored.progress, stored.last_at, stored.state) == ({"turns": 20, "usd": 0.5}, 200, "waiting")

    # Messages

    def test_a_message_comes_back_as_it_was(self, store: Store) -> None:
        routing = Routing(
            resolved_addressees=("Sarah", "Ana Lucía"),
            raw_next_markers=("sarah & ana!P1",),
            drop_targets=("ALL",),
            parent_message_id="m0",
            intent="P1",
        )
        for number, content in enumerate(
            ["", "x", "naïve 你好 👩‍💻\r\n\t", "long " * 5000, "[NEXT: Max]\n```\n"], start=1
        ):
            message = ConversationMessage(
                id=f"m{number}", content=content, speaker=MAX, timestamp=number, routing=routing if number % 2 else None
            )
            stored = store.append("c", message, owner=OWNER)

            assert (stored.sequence, stored.message, stored.already_stored) == (number, message, False)
            assert store.message("c", message.id) == stored
            assert store.messages("c", limit=1) == [stored]

    def test_windows_of_messages(self, store: Store) -> None:
        for number in range(1, 11):
            store.append("c", said(f"m{number}"), owner=OWNER)

        assert sequences(store.messages("c")) == list(range(1, 11))
        assert sequences(store.messages("c", limit=3)) == [8, 9, 10]
        assert sequences(store.messages("c", before=8, limit=3)) == [5, 6, 7]
        assert sequences(store.messages("c", after=0, limit=3)) == [1, 2, 3]
        assert sequences(store.messages("c", after=8)) == [9, 10]
        assert sequences(store.messages("c", after=2, before=5)) == [3, 4]
        assert store.messages("c", after=10) == store.messages("c", before=1) == store.messages("c", limit=0) == []

    def test_a_resend_changes_nothing(self, store: Store) -> None:
        first = store.append(
            "c", said("m1", at=100), turns=[asked("m1")], change=StateChange(waits_for=None), owner=OWNER
        )
        again = store.append(
            "c", said("m1", at=999), turns=[asked("m1")], change=StateChange(waits_for="kai"), owner=OWNER
        )

        assert (again.sequence, again.message, again.already_stored) == (1, first.message, True)
        assert len(store.messages("c")) == len(store.turns("c")) == 1
        assert store.conversation("c").waits_for is None

    def test_many_messages_at_once_are_as_one_after_the_other(self, store: Store) -> None:
        begin(store, "d")
        many = [said(f"m{number}", f"word{number}", at=number) for number in range(1, 151)]
        for message in many:
            store.append("c", message, owner=OWNER)
        store.extend("d", many[:70])
        store.extend("d", many[60:])
        store.extend("d", [])

        assert [one.message for one in store.messages("d")] == many
        assert sequences(store.messages("d")) == sequences(store.messages("c"))
        assert store.conversation("d").last_at == 150
        assert [one.conversation_id for one in store.search("word150")] == ["d", "c"]
        assert store.append("d", said("m151")).sequence == 151
        assert store.fsck() == []

    def test_many_messages_at_once_are_stored_all_or_none(self, store: Store) -> None:
        store.append("c", said("m1", "yes"), owner=OWNER)
        with pytest.raises(MessageDiffers):
            store.extend("c", [said("m2"), said("m1", "no")], owner=OWNER)
        with pytest.raises(TypeError):
            store.extend("c", [said("m2"), said(cast("str", 1))], owner=OWNER)

        assert sequences(store.messages("c")) == [1]
        assert store.append("c", said("m2"), owner=OWNER).sequence == 2
        assert store.fsck() == []

    def test_the_same_id_cannot_say_something_else(self, store: Store) -> None:
        store.append("c", said("m1", "yes"), owner=OWNER)
        with pytest.raises(MessageDiffers):
            store.append("c", said("m1", "no"), owner=OWNER)
        with pytest.raises(MessageDiffers):
            store.append("c", said("m1", "yes", speaker=MAX), owner=OWNER)

    def test_what_could_not_be_read_again_is_not_written(self, store: Store) -> None:
        unknown = Speaker(role_id="kai", role_name="Kai", type=cast("SpeakerType", "robot"))
        for message in (said("m1", speaker=unknown), said(cast("str", 1)), said("m1", at=cast("int", 1.5))):
            with pytest.raises(TypeError):
                store.append("c", message, owner=OWNER)
        with pytest.raises(ValueError, match="JSON"):
            store.update("c", at=1, change=StateChange(progress={"usd": float("nan")}), owner=OWNER)

        assert store.messages("c") == []

    def test_ids_belong_to_their_conversation(self, store: Store) -> None:
        begin(store, "d")
        store.append("c", said("m1", "here"), turns=[asked("m1")], owner=OWNER)
        store.append("d", said("m1", "there"), turns=[asked("m1")])

        assert store.message("d", "m1").message.content == "there"
        assert ids(store.queued("d")) == ["m1-max"]

    # Turns

    def test_a_message_its_turns_and_its_drops_are_one(self, store: Store) -> None:
        store.append("c", said("m1"), turns=[asked("m1", "max"), asked("m1", "sarah", step=1)], owner=OWNER)
        store.append("c", said("m2"), turns=[asked("m2", "carol", intent=1)], drops=["m1-sarah"], owner=OWNER)

        assert [turn.waiting for turn in store.queued("c")] == [asked("m1", "max"), asked("m2", "carol", intent=1)]
        assert [turn.state for turn in store.turns("c")] == ["queued", "dropped", "queued"]

    def test_what_cannot_be_done_whole_is_not_done(self, store: Store) -> None:
        store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
        before = (store.conversation("c"), store.messages("c"), store.turns("c"))
        taken, unknown = asked("m1"), asked("nothing", turn_id="t")

        with pytest.raises(UnknownTurn):
            store.append("c", said("m2", "lost word"), turns=[asked("m2")], drops=["m1-max", "m9-max"], owner=OWNER)
        with pytest.raises(TurnConflict):
            store.append(
                "c", said("m2", "lost word"), turns=[asked("m2"), taken], change=StateChange(paused="x"), owner=OWNER
            )
        with pytest.raises(UnknownMessage):
            store.append("c", said("m2", "lost word"), turns=[asked("m2"), unknown], owner=OWNER)
        with pytest.raises(TurnConflict):
            store.append(
                "c", said("m2", "lost word"), finishes=TurnEnd(turn_id="m1-max", state="done", at=1), owner=OWNER
            )
        with pytest.raises(ValueError, match="surrogates"):
            store.append("c", said("m2", "lost word \ud83d"), owner=OWNER)

        assert (store.conversation("c"), store.messages("c"), store.turns("c")) == before
        assert store.search("lost") == []

    def test_a_turn_that_ends_with_a_reply(self, store: Store) -> None:
        store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
        started = store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=110)
        assert (started.state, store.conversation("c").state) == ("running", "running")
        assert (ids(store.running("c")), store.queued("c")) == (["m1-max"], [])

        usage = Usage(input_tokens=10, output_tokens=5, cost_usd=0.25)
        end = TurnEnd(turn_id="m1-max", state="done", at=150, usage=usage)
        store.append("c", said("m2", speaker=MAX, at=151), finishes=end, owner=OWNER)

        assert store.running("c") == []
        assert store.turn("c", "m1-max") == Turn(
            id="m1-max",
            member="max",
            message_id="m1",
            state="done",
            queued_at=100,
            started_at=110,
            ended_at=150,
            reply_id="m2",
            usage=usage,
        )

    def test_the_session_that_a_member_had_at_a_message(self, store: Store) -> None:
        for number in (1, 3, 5):
            running(store, f"m{number}")
            memory = replace(MEMORY, session_id=f"session-{number}")
            end = TurnEnd(turn_id=f"m{number}-max", state="done", at=1, memory=memory)
            store.append("c", said(f"m{number + 1}", speaker=MAX), finishes=end, owner=OWNER)

        assert store.memory("c", "max", up_to=1) is None
        found = [store.memory("c", "max", up_to=up_to) for up_to in (2, 3, 4, 5, 6, None)]
        assert [one and one.memory.session_id[-1] for one in found] == ["1", "1", "3", "3", "5", "5"]
        assert [one and one.reply_id for one in found] == ["m2", "m2", "m4", "m4", "m6", "m6"]

    @pytest.mark.parametrize("state", ENDS)
    def test_a_turn_that_ends_without_a_reply(self, store: Store, state: EndState) -> None:
        failure = Failed(kind="crashed", message="It ended badly.", partial_text="I was 说")
        running(store, "m1")

        ended = store.end_turn(
            "c",
            TurnEnd(turn_id="m1-max", state=state, at=150, failure=failure),
            change=StateChange(paused="max failed"),
            owner=OWNER,
        )

        assert (ended.state, ended.failure, ended.reply_id, ended.ended_at) == (state, failure, None, 150)
        assert store.conversation("c").paused == "max failed"

    def test_a_turn_ends_once(self, store: Store) -> None:
        running(store, "m1")
        store.end_turn("c", TurnEnd(turn_id="m1-max", state="failed", at=150), owner=OWNER)

        for state in ENDS:
            with pytest.raises(TurnConflict):
                store.end_turn("c", TurnEnd(turn_id="m1-max", state=state, at=160), owner=OWNER)
        with pytest.raises(TurnConflict):
            store.append("c", said("m2"), finishes=TurnEnd(turn_id="m1-max", state="done", at=160), owner=OWNER)
        with pytest.raises(TurnConflict):
            store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=160)
        with pytest.raises(TurnConflict):
            store.update("c", at=160, drops=["m1-max"], owner=OWNER)
        assert [turn.state for turn in store.turns("c")] == ["failed"]

    def test_only_a_reply_makes_a_turn_done(self, store: Store) -> None:
        running(store, "m1")
        with pytest.raises(ValueError, match="reply"):
            store.end_turn("c", TurnEnd(turn_id="m1-max", state="done", at=150), owner=OWNER)
        with pytest.raises(ValueError, match="done"):
            store.append("c", said("m2"), finishes=TurnEnd(turn_id="m1-max", state="failed", at=150), owner=OWNER)

    def test_a_retry_is_a_new_turn_and_comes_first(self, store: Store) -> None:
        running(store, "m1")
        store.append("c", said("m2"), turns=[asked("m2", "sarah")], owner=OWNER)
        store.end_turn(
            "c",
            TurnEnd(turn_id="m1-max", state="cancelled", at=150),
            change=StateChange(paused="cancelled"),
            owner=OWNER,
        )

        again = store.requeue(
            "c", "m1-max", asked("m1", "carol", turn_id="again"), at=160, change=StateChange(paused=None), owner=OWNER
        )

        assert (again.retry_of, again.member, again.queued_at, again.state) == ("m1-max", "carol", 160, "queued")
        assert ids(store.queued("c")) == ["again", "m2-sarah"]
        assert store.turn("c", "m1-max").state == "cancelled"
        assert store.conversation("c").paused is None
        with pytest.raises(TurnConflict):
            store.requeue("c", "m1-max", asked("m1", turn_id="and again"), at=170, owner=OWNER)
        with pytest.raises(TurnConflict):
            store.requeue("c", "again", asked("m1", turn_id="and again"), at=170, owner=OWNER)

    def test_the_queue_can_be_put_into_another_order(self, store: Store) -> None:
        store.append("c", said("m1"), turns=[asked("m1", member) for member in "abcd"], owner=OWNER)

        store.reorder("c", ["m1-c", "m1-b"], owner=OWNER)
        store.append("c", said("m2"), turns=[asked("m2", "e")], owner=OWNER)

        assert [turn.member for turn in store.queued("c")] == ["c", "b", "a", "d", "e"]
        store.update("c", at=1, drops=["m1-c"], owner=OWNER)
        with pytest.raises(TurnConflict):
            store.reorder("c", ["m1-a", "m1-c"], owner=OWNER)
        assert [turn.member for turn in store.queued("c")] == ["b", "a", "d", "e"]

    def test_turns_can_be_asked_for_without_a_message(self, store: Store) -> None:
        store.append("c", said("m1"), turns=[asked("m1", "max")], owner=OWNER)

        store.update(
            "c", at=200, turns=[asked("m1", "sarah")], drops=["m1-max"], change=StateChange(waits_for=None), owner=OWNER
        )

        assert [(turn.member, turn.queued_at) for turn in store.queued("c")] == [("sarah", 200)]

    def test_what_an_agent_saw_and_wrote_is_kept(self, store: Store) -> None:
        store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
        assert store.record("c", "m1-max") is None
        store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=110)
        assert store.record("c", "m1-max") == record(command=(), stream=b"")

        packer = StreamPacker()
        packer.feed(b'{"event":"text"}\n' * 100)
        command = ("claude", "-p", "--model", "größte")
        store.end_turn(
            "c", TurnEnd(turn_id="m1-max", state="failed", at=150, command=command, stream=packer.finish()), owner=OWNER
        )

        assert store.record("c", "m1-max") == record(command=command, stream=b'{"event":"text"}\n' * 100)

    # Changes

    def test_changes_come_back_as_they_were(self, store: Store) -> None:
        start(store)
        stored = store.add_changes("c", CHANGES, owner=OWNER)

        assert stored == replace(CHANGES, number=1)
        assert store.changes("c") == store.changes("c", turn_ids=["m1-max"]) == [stored]
        assert store.changes("c", patches=False) == [without_patch(stored)]
        assert store.last_changes("c", FOLDER) == store.change("c", 1) == stored
        assert store.last_changes("c", "/elsewhere") is store.change("c", 2) is None
        assert store.changes("c", turn_ids=["m2-max"]) == store.changes("c", turn_ids=[]) == []
        assert store.begun_changes("c") == []
        assert store.fsck() == []

    def test_a_page_of_messages_has_the_changes_after_them(self, store: Store) -> None:
        start(store)
        for number in range(2, 7):
            store.append("c", said(f"m{number}"), owner=OWNER)
        for after in (0, 2, 2, 4, 6):
            kind: ChangeKind = "people" if after % 4 else "rewind"
            store.add_changes("c", replace(CHANGES, kind=kind, turn_id="", after_message=after), owner=OWNER)
        store.add_changes("c", replace(CHANGES, after_message=3), owner=OWNER)

        assert numbers(store.changes("c")) == [1, 2, 3, 6, 4, 5]
        assert numbers(store.changes("c", first=2, last=4)) == [2, 3, 6, 4]
        assert numbers(store.changes("c", first=5)) == numbers(store.changes("c", first=5, last=9)) == [5]
        assert numbers(store.changes("c", last=1, patches=False)) == [1]
        assert numbers(store.changes("c", turn_ids=["m1-max"], first=3, last=4)) == [6]
        assert store.changes("c", turn_ids=["m1-max"], first=4) == []

    @pytest.mark.parametrize("kind", ["turn", "undo", "redo", "rewind", "merge", "take"])
    def test_what_was_begun_is_finished_once(self, store: Store, kind: ChangeKind) -> None:
        start(store)
        done = replace(CHANGES, kind=kind)
        begun = replace(done, state="begun", changes=FolderChanges(folder=FOLDER, before="a" * 40))
        number = store.add_changes("c", begun, owner=OWNER).number

        assert store.begun_changes("c") == [replace(begun, number=number)]
        assert store.last_changes("c", FOLDER) is None
        store.append("c", said("m2"), owner=OWNER)
        finished = store.finish_changes("c", number, replace(done, after_message=2), owner=OWNER)

        assert finished == replace(done, number=number, after_message=2)
        assert store.changes("c", first=2) == [store.last_changes("c", FOLDER)] == [finished]
        assert store.begun_changes("c") == []
        for again in (done, begun):
            with pytest.raises(StoreConflict, match="are done already"):
                store.finish_changes("c", number, again, owner=OWNER)
        with pytest.raises(StoreConflict, match="were not begun"):
            store.finish_changes("c", number + 1, done, owner=OWNER)
        assert store.changes("c") == [finished]

    def test_what_may_hold_up_others_is_found_without_them(self, store: Store) -> None:
        start(store)
        for name in ("asks", "idle"):
            begin(store, name)
        number = store.add_changes("c", replace(CHANGES, state="begun"), owner=OWNER).number
        store.update("asks", at=1, change=StateChange(progress={"programs": {"1": {"member": "max"}}}))
        store.update("idle", at=1, change=StateChange(progress={"turns": 1}))

        assert store.unsettled() == ["c", "asks"]
        store.finish_changes("c", number, CHANGES, owner=OWNER)
        assert (store.unsettled(), store.unsettled(owned=True)) == (["asks"], ["c", "asks"])
        store.delete("asks", at=2)
        assert store.unsettled() == []

    def test_what_was_begun_is_not_finished_as_something_else(self, store: Store) -> None:
        start(store)
        begun = store.add_changes("c", replace(CHANGES, state="begun"), owner=OWNER)
        for other in (
            begun,
            replace(CHANGES, kind="undo"),
            replace(CHANGES, turn_id=""),
            replace(CHANGES, changes=replace(CHANGES.changes, folder="/elsewhere")),
        ):
            with pytest.raises(StoreConflict, match="can only be finished as what they began"):
                store.finish_changes("c", begun.number, other, owner=OWNER)

        assert store.begun_changes("c") == [begun]

    def test_the_last_changes_are_those_that_were_done_last(self, store: Store) -> None:
        start(store)
        first, second = (
            store.add_changes("c", replace(CHANGES, kind=kind, state="begun"), owner=OWNER).number
            for kind in ("turn", "merge")
        )
        store.finish_changes("c", second, replace(CHANGES, kind="merge"), owner=OWNER)
        last = store.finish_changes("c", first, CHANGES, owner=OWNER)

        assert store.last_changes("c", FOLDER) == last
        assert numbers(store.changes("c")) == [second, first]

    def test_the_changes_of_a_turn_come_after_its_end(self, store: Store) -> None:
        for number, member in ((1, "max"), (2, "sarah"), (3, "carol")):
            store.append("c", said(f"m{number}"), turns=[asked(f"m{number}", member)], owner=OWNER)
            store.start_turn("c", f"m{number}-{member}", owner=OWNER, given=GIVEN, at=110)
        begun = store.add_changes("c", replace(CHANGES, state="begun"), owner=OWNER)
        store.append("c", said("m4"), finishes=TurnEnd(turn_id="m1-max", state="done", at=1), owner=OWNER)
        store.append("c", said("m5"), owner=OWNER)
        store.end_turn("c", TurnEnd(turn_id="m2-sarah", state="failed", at=120), owner=OWNER)

        replied = store.finish_changes("c", begun.number, CHANGES, owner=OWNER)
        failed = store.add_changes("c", replace(CHANGES, turn_id="m2-sarah"), owner=OWNER)
        running = store.add_changes("c", replace(CHANGES, turn_id="m3-carol"), owner=OWNER)
        undone = store.add_changes("c", replace(CHANGES, kind="undo", after_message=3), owner=OWNER)

        assert [one.after_message for one in (begun, replied, failed, running, undone)] == [1, 4, 5, 1, 3]
        assert store.changes("c") == [running, undone, replied, failed]

    def test_a_decision_is_stored_with_the_changes_or_not_at_all(self, store: Store) -> None:
        start(store)
        undo = Decision(at=130, person="kai", choice="undo", turns=("m1-max",))
        record = replace(CHANGES, kind="undo", state="begun", person="kai")
        with pytest.raises(UnknownTurn):
            store.add_changes("c", replace(record, turn_id="nowhere"), decision=undo, owner=OWNER)
        assert (store.decisions("c"), store.changes("c")) == ([], [])

        store.add_changes("c", record, decision=undo, owner=OWNER)

        assert store.decisions("c") == [undo]
        assert store.conversation("c").last_at == 130

    def test_changes_that_cannot_be_are_not_stored(self, store: Store) -> None:
        start(store)
        for wrong, error in (
            (replace(CHANGES, turn_id="m9-max"), UnknownTurn),
            (replace(CHANGES, turn_id=""), UnknownTurn),
            (replace(CHANGES, after_message=2), ValueError),
            (replace(CHANGES, after_message=-1), ValueError),
            (replace(CHANGES, kind="people", turn_id="", state="begun"), ValueError),
            (replace(CHANGES, kind=cast("ChangeKind", "magic")), TypeError),
            (replace(CHANGES, member="\ud83d"), ValueError),
            (replace(CHANGES, changes=replace(CHANGES.changes, files=())), ValueError),
            (replace(CHANGES, changes=replace(CHANGES.changes, total=Totals(files=9, added=0, removed=0))), ValueError),
        ):
            with pytest.raises(error):
                store.add_changes("c", wrong, owner=OWNER)
        with pytest.raises(UnknownConversation):
            store.add_changes("nowhere", CHANGES)
        with pytest.raises(UnknownConversation):
            store.changes("nowhere")

        assert store.changes("c") == []
        assert store.fsck() == []

    def test_a_patch_that_is_too_large_loses_its_last_files(self, store: Store) -> None:
        start(store)
        one = "diff --git a/x b/x\n" + "+你\n" * (MOST_PATCH_BYTES // 20)
        large = replace(CHANGES.changes, patch=one * 5, patch_is_cut=False)
        stored = store.add_changes("c", replace(CHANGES, changes=large), owner=OWNER)

        assert (stored.changes.patch, stored.changes.patch_is_cut) == (one * 3, True)
        assert store.changes("c") == [stored]
        single = replace(CHANGES.changes, patch="diff --git a/x b/x\n" + "+" * MOST_PATCH_BYTES)
        assert store.add_changes("c", replace(CHANGES, changes=single), owner=OWNER).changes.patch == ""

    def test_copied_changes_keep_their_numbers_and_are_not_the_last(self, store: Store) -> None:
        store.append("c", said("m1"), owner=OWNER)
        copies = [replace(CHANGES, number=number, turn_id=f"there-{number}") for number in (5, 2)]
        store.copy_changes("c", copies, owner=OWNER)

        assert store.changes("c") == copies
        assert store.last_changes("c", FOLDER) is None
        for taken in (5, 6, 0):
            with pytest.raises(StoreConflict, match=f"number {taken}, which is not free"):
                store.copy_changes("c", [replace(CHANGES, number=number) for number in (6, taken)], owner=OWNER)
        with pytest.raises(ValueError, match="cannot be only begun"):
            store.copy_changes("c", [replace(CHANGES, number=6, state="begun")], owner=OWNER)
        assert store.changes("c") == copies
        # A person may take back what was done in the other conversation.
        undone = store.add_changes("c", replace(CHANGES, kind="undo", turn_id="there-5"), owner=OWNER)
        assert undone.number == 6
        assert store.last_changes("c", FOLDER) == undone
        assert numbers(store.changes("c", turn_ids=["there-5"])) == [5, 6]
        assert store.fsck() == []

    def test_changes_go_with_their_conversation(self, store: Store) -> None:
        begin(store, "discarded")
        store.add_changes("discarded", replace(CHANGES, kind="people", turn_id="", after_message=0))
        start(store)
        store.add_changes("c", CHANGES, owner=OWNER)

        store.discard("discarded")
        store.delete("c", at=9, owner=OWNER)

        begin(store, "discarded")
        assert store.changes("discarded") == []
        assert store.fsck() == []

    # Checks

    def test_a_check_is_stored_when_it_begins_and_when_it_has_ended(self, store: Store) -> None:
        start(store)
        begun = store.add_check("c", CHECK, owner=OWNER)

        assert begun == replace(CHECK, number=1)
        assert store.checks("c") == store.running_checks("c") == [begun]
        ended = store.finish_check("c", replace(RED, number=1), owner=OWNER)
        assert ended == replace(RED, number=1)
        assert store.checks("c") == store.checks("c", turn_ids=["m1-max"], first=1, last=1) == [ended]
        assert store.running_checks("c") == store.checks("c", turn_ids=["m2-max"]) == store.checks("c", first=2) == []
        assert store.fsck() == []

    def test_a_check_ends_once_and_as_what_it_began(self, store: Store) -> None:
        start(store)
        begun = store.add_check("c", CHECK, owner=OWNER)
        red = replace(RED, number=begun.number)
        for other in (begun, replace(red, name="lint"), replace(red, workspace="/elsewhere"), replace(red, command=())):
            with pytest.raises(StoreConflict, match="can only end as what it began"):
                store.finish_check("c", other, owner=OWNER)
        store.finish_check("c", red, owner=OWNER)

        with pytest.raises(StoreConflict, match="has ended already"):
            store.finish_check("c", red, owner=OWNER)
        with pytest.raises(StoreConflict, match="has not begun"):
            store.finish_check("c", replace(red, number=2), owner=OWNER)
        assert store.checks("c") == [red]

    def test_checks_come_after_the_reply_of_their_turn(self, store: Store) -> None:
        running(store, "m1")
        begun = store.add_check("c", CHECK, owner=OWNER)
        store.append("c", said("m2", speaker=MAX), finishes=TurnEnd(turn_id="m1-max", state="done", at=1), owner=OWNER)
        store.append("c", said("m3"), owner=OWNER)

        ended = store.finish_check("c", replace(RED, number=begun.number), owner=OWNER)
        assert ended.after_message == store.add_check("c", CHECK, owner=OWNER).after_message == 2
        assert [one.number for one in store.checks("c", first=2, last=2)] == [1, 2]

    def test_checks_that_cannot_be_are_not_stored(self, store: Store) -> None:
        start(store)
        with pytest.raises(UnknownTurn):
            store.add_check("c", replace(CHECK, turn_id="nowhere"), owner=OWNER)
        with pytest.raises(ValueError, match="after message 7"):
            store.add_check("c", replace(CHECK, after_message=7), owner=OWNER)
        with pytest.raises(TypeError, match="cannot be stored"):
            store.add_check("c", replace(CHECK, state=cast(CheckState, "blue")), owner=OWNER)
        with pytest.raises(ValueError, match="cannot be running"):
            store.copy_checks("c", [replace(RED, number=1), replace(CHECK, number=2)], owner=OWNER)
        with pytest.raises(UnknownConversation):
            store.checks("nowhere")
        assert store.checks("c") == []

    def test_copied_checks_keep_their_numbers(self, store: Store) -> None:
        start(store)
        copies = [replace(RED, number=number, turn_id="there") for number in (2, 5)]
        store.copy_checks("c", copies, owner=OWNER)

        assert store.checks("c") == store.checks("c", turn_ids=["there"]) == copies
        with pytest.raises(StoreConflict, match="which is not free"):
            store.copy_checks("c", [replace(RED, number=5)], owner=OWNER)
        assert store.add_check("c", CHECK, owner=OWNER).number == 6
        assert store.fsck() == []

    def test_checks_go_with_their_conversation(self, store: Store) -> None:
        start(store)
        store.add_check("c", CHECK, owner=OWNER)
        store.delete("c", at=1, owner=OWNER)

        assert store.fsck() == []
        with pytest.raises(UnknownConversation):
            store.checks("c")

    # Approvals

    def test_a_question_is_open_until_it_is_answered(self, store: Store, tmp_path: Path) -> None:
        start(store)
        question = store.note_approval("c", ASKED, owner=OWNER)

        assert question == replace(ASKED, number=1, after_message=1, hash=question.hash)
        assert store.approvals("c") == store.open_approvals("c") == [question]
        answer = store.note_approval("c", ANSWERED, owner=OWNER)
        assert answer == replace(ANSWERED, number=2, after_message=1, hash=answer.hash)
        with self.open_store(tmp_path) as elsewhere:
            assert elsewhere.approvals("c") == [question, answer]
            assert elsewhere.open_approvals("c") == []
        assert store.fsck() == []

    def test_approvals_are_found_by_their_turns_and_messages(self, store: Store) -> None:
        running(store, "m1")
        running(store, "m2")
        stored = [
            store.note_approval("c", record, owner=OWNER)
            for record in (ASKED, replace(ASKED, turn_id="m2-max"), replace(ASKED, question="q2"), ANSWERED)
        ]
        store.append("c", said("m3"), owner=OWNER)
        later = store.note_approval("c", replace(ANSWERED, turn_id="m2-max"), owner=OWNER)

        assert store.approvals("c") == store.approvals("c", turn_ids=["m1-max", "m2-max", "m3"]) == [*stored, later]
        assert store.approvals("c", turn_ids=["m2-max"]) == [stored[1], later]
        assert store.approvals("c", turn_ids=[]) == store.approvals("c", first=4) == store.approvals("c", last=1) == []
        assert store.approvals("c", last=2) == stored
        assert store.approvals("c", first=3, last=3) == store.approvals("c", turn_ids=["m2-max"], first=3) == [later]
        assert store.open_approvals("c") == [stored[2]]

    def test_a_question_of_a_turn_that_has_ended_is_not_open(self, store: Store) -> None:
        start(store)
        store.note_approval("c", ASKED, owner=OWNER)
        store.end_turn("c", TurnEnd(turn_id="m1-max", state="interrupted", at=200), owner=OWNER)

        assert store.open_approvals("c") == []
        # For the history, it can be answered all the same.
        store.note_approval("c", ANSWERED, owner=OWNER)
        assert len(store.approvals("c")) == 2
        assert store.fsck() == []

    def test_a_question_is_asked_once_and_its_first_answer_counts(self, store: Store) -> None:
        start(store)
        with pytest.raises(StoreConflict, match="was not asked, so it cannot be answered"):
            store.note_approval("c", ANSWERED, owner=OWNER)
        first = [store.note_approval("c", record, owner=OWNER) for record in (ASKED, ANSWERED)]

        with pytest.raises(StoreConflict, match="is stored already"):
            store.note_approval("c", replace(ASKED, at=999), owner=OWNER)
        with pytest.raises(StoreConflict, match="the first answer counts"):
            store.note_approval("c", replace(ANSWERED, by="eva"), owner=OWNER)
        assert store.approvals("c") == first

    def test_only_one_of_many_answers_counts(self, store: Store) -> None:
        start(store)
        store.note_approval("c", ASKED, owner=OWNER)

        def answer(name: str) -> str:
            try:
                return store.note_approval("c", replace(ANSWERED, by=name), owner=OWNER).by
            except StoreConflict:
                return ""

        with ThreadPoolExecutor(4) as pool:
            counted = [name for name in pool.map(answer, "abcdefgh") if name]
        assert [record.by for record in store.approvals("c")[1:]] == counted
        assert store.fsck() == []

    def test_approvals_that_cannot_be_are_not_stored(self, store: Store) -> None:
        start(store)
        with pytest.raises(UnknownTurn):
            store.note_approval("c", replace(ASKED, turn_id="nowhere"), owner=OWNER)
        for record in (replace(ASKED, answer=ANSWERED.answer), replace(ANSWERED, answer=None)):
            with pytest.raises(ValueError, match="either a question or an answer"):
                store.note_approval("c", record, owner=OWNER)
        unknown = replace(ANSWERED, answer=Answer(verdict=cast(Verdict, "perhaps")))
        nothing = replace(ASKED, asked=replace(cast(ApprovalAsked, ASKED.asked), details={"a": float("nan")}))
        store.note_approval("c", replace(ASKED, question="q1"), owner=OWNER)
        for record in (unknown, replace(nothing, question="q2")):
            with pytest.raises(TypeError, match="cannot be stored"):
                store.note_approval("c", record, owner=OWNER)
        with pytest.raises(UnknownConversation):
            store.approvals("nowhere")
        with pytest.raises(UnknownConversation):
            store.open_approvals("nowhere")
        assert len(store.approvals("c")) == 1
        assert store.fsck() == []

    def test_copied_approvals_are_in_the_chain_and_never_open(self, store: Store) -> None:
        start(store)
        asked, answered = (
            replace(record, number=number, turn_id="there", after_message=place)
            for number, (record, place) in enumerate([(ASKED, 0), (ANSWERED, 1)], start=1)
        )
        store.copy_approvals("c", [asked], owner=OWNER)
        assert store.open_approvals("c") == []
        for wrong in (asked, replace(ASKED, number=4, turn_id="there", question="q2", after_message=1)):
            with pytest.raises(StoreConflict, match="cannot be copied to number"):
                store.copy_approvals("c", [answered, wrong], owner=OWNER)
        with pytest.raises(ValueError, match="after message 2 of 1"):
            store.copy_approvals("c", [replace(answered, after_message=2)], owner=OWNER)
        store.copy_approvals("c", [answered], owner=OWNER)
        own = store.note_approval("c", ASKED, owner=OWNER)

        copies = store.approvals("c")[:2]
        assert copies == [
            replace(one, is_copy=True, hash=copy.hash) for one, copy in zip((asked, answered), copies, strict=True)
        ]
        assert (own.number, own.is_copy, store.open_approvals("c")) == (3, False, [own])
        assert store.fsck() == []

    def test_the_chain_of_approvals_can_be_computed_from_its_description(self, store: Store) -> None:
        start(store)
        store.note_approval("c", ASKED, owner=OWNER)
        running(store, "m2")
        # Not the same object as the default, but equal to it.
        store.note_approval("c", replace(ANSWERED, scope=cast(Scope, "".join(["on", "ce"]))), owner=OWNER)

        conversation = store.conversation("c")
        previous = first_link("c", conversation.team, conversation.team_file, conversation.started_at)
        hashes = [previous, *(message.hash for message in store.messages("c"))]
        for record in store.approvals("c"):
            facts = msgspec.to_builtins(record)
            del facts["hash"]
            line = json.dumps(facts, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
            previous = hashlib.sha256(previous + hashes[record.after_message] + line + b"\n").digest()
            assert record.hash == previous

    def test_approvals_go_with_their_conversation(self, store: Store) -> None:
        start(store)
        store.note_approval("c", ASKED, owner=OWNER)
        store.delete("c", at=1, owner=OWNER)
        begin(store, "discarded")
        store.copy_approvals("discarded", [replace(ASKED, number=1)])
        store.discard("discarded")

        begin(store, "discarded")
        assert store.approvals("discarded") == []
        assert store.fsck() == []
        with pytest.raises(UnknownConversation):
            store.approvals("c")

    # Ownership

    def test_one_process_owns_a_conversation(self, store: Store) -> None:
        assert not store.claim("c", OTHER, is_alive=alive)
        assert store.conversation("c").owner == OWNER
        assert store.claim("c", OWNER, is_alive=alive)

        assert store.claim("c", OTHER, is_alive=dead)
        assert store.conversation("c").owner == OTHER

    def test_only_the_owner_can_give_it_back(self, store: Store) -> None:
        store.release("c", OTHER)
        assert store.conversation("c").owner == OWNER

        store.release("c", OWNER)
        assert store.conversation("c").owner is None
        assert store.claim("c", OTHER, is_alive=alive)

    def test_only_the_owner_runs_turns(self, store: Store) -> None:
        store.append("c", said("m1"), turns=[asked("m1")], owner=OWNER)
        with pytest.raises(NotTheOwner) as refused:
            store.start_turn("c", "m1-max", owner=OTHER, given=GIVEN, at=1)
        assert refused.value.pid == OWNER.pid

        store.release("c", OWNER)
        with pytest.raises(NotTheOwner):
            store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=1)
        assert ids(store.queued("c")) == ["m1-max"]

    @pytest.mark.parametrize("write", WRITES)
    @pytest.mark.parametrize("loser", [OWNER, None])
    def test_who_lost_a_conversation_cannot_write(self, store: Store, write: str, loser: Owner | None) -> None:
        store.append("c", said("m1"), turns=[asked("m1", name) for name in ("max", "sarah", "carol")], owner=OWNER)
        store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=110)
        store.start_turn("c", "m1-carol", owner=OWNER, given=GIVEN, at=110)
        store.end_turn("c", TurnEnd(turn_id="m1-carol", state="failed", at=120), owner=OWNER)
        store.add_changes("c", replace(CHANGES, state="begun"), owner=OWNER)
        store.add_check("c", CHECK, owner=OWNER)
        store.note_approval("c", ASKED, owner=OWNER)
        # Stuck, so that there is something to repair.
        store.update("c", at=130, change=StateChange(progress={"undecided": ["unknown"]}), owner=OWNER)
        assert store.claim("c", OTHER, is_alive=dead)
        before = everything(store)

        with pytest.raises(NotTheOwner, match="is open in process 2, so nothing was changed here"):
            WRITES[write](store, loser)

        assert everything(store) == before
        WRITES[write](store, OTHER)
        if write == "delete":
            assert store.conversations() == []
        elif write not in ("discard", "adopt"):
            assert everything(store) != before

    def test_everything_that_takes_an_owner_is_tried_by_who_lost_a_conversation(self) -> None:
        methods = {name for name, method in vars(Store).items() if "owner" in getattr(method, "__annotations__", {})}

        assert methods - {"claim", "is_locked", "release"} <= WRITES.keys()

    def test_nobody_writes_as_an_owner_of_what_nobody_owns(self, store: Store) -> None:
        store.release("c", OWNER)
        with pytest.raises(NotTheOwner, match="is not open here any more"):
            store.append("c", said("m1"), owner=OWNER)
        store.append("c", said("m1"))

    def test_an_owner_is_seen_and_holds_its_lock_until_it_releases(self, store: Store, tmp_path: Path) -> None:
        with self.open_store(tmp_path) as elsewhere:
            assert store.is_locked(OWNER) is elsewhere.is_locked(OWNER) is True
            assert elsewhere.is_locked(OTHER) is None
            store.beat("c", OWNER, at=500)
            owner = elsewhere.conversation("c").owner
            assert owner == replace(OWNER, seen_at=500)
            store.append("c", said("m1"), owner=OWNER)
            store.release("c", OWNER)
            assert elsewhere.is_locked(OWNER) is None

    def test_an_owner_that_was_seen_meanwhile_is_alive(self, store: Store) -> None:
        def is_alive(_: Owner) -> bool:
            store.beat("c", OWNER, at=500)
            return False

        assert not store.claim("c", OTHER, is_alive=is_alive)
        assert store.is_locked(OTHER) is None
        store.append("c", said("m1"), owner=OWNER)

    def test_the_highest_number_of_a_turn(self, store: Store) -> None:
        begin(store, "d")
        assert store.highest_turn("c") == 0
        turns = [asked("m1", turn_id=turn_id) for turn_id in ("9", "10", "2", "own-11")]
        store.append("c", said("m1"), turns=turns, owner=OWNER)
        assert (store.highest_turn("c"), store.highest_turn("d")) == (10, 0)
        with pytest.raises(TurnNumberTaken):
            store.update("c", at=1, turns=[asked("m1", turn_id="2")], owner=OWNER)

    def test_many_prompts_that_repeat_each_other_are_read_exactly(self, store: Store, tmp_path: Path) -> None:
        lines: list[str] = []
        prompts: dict[str, str] = {}
        for number in range(1, 60):
            member = "max" if number % 3 else "sarah"
            lines.append(f"- Kai -> all: message {number} says something {'worth reading ' * (number % 7)}\u2028 👍")
            store.append("c", said(f"m{number}"), turns=[asked(f"m{number}", member, turn_id=str(number))], owner=OWNER)
            prompts[str(number)] = "\n".join([f"({number} not shown)", *lines[-30:], "[MESSAGE]", f"now {number}"])
            given = replace(GIVEN, prompt=prompts[str(number)])
            store.start_turn("c", str(number), owner=OWNER, given=given, at=number)
            store.end_turn("c", TurnEnd(turn_id=str(number), state="failed", at=number), owner=OWNER)
        assert {id_: _prompt(store, id_) for id_ in prompts} == prompts
        assert store.fsck() == []
        with self.open_store(tmp_path) as again:
            assert {id_: _prompt(again, id_) for id_ in prompts} == prompts

    def test_a_conversation_in_which_nothing_was_said_leaves_nothing(self, store: Store) -> None:
        store.discard("c", owner=OWNER)
        assert store.conversations() == []
        begin(store, "c")
        store.append("c", said("m1"))
        store.discard("c")
        assert [one.id for one in store.conversations()] == ["c"]
        assert store.fsck() == []

    def test_what_a_running_turn_has_written_is_read_before_it_ends_and_after_its_owner_is_dead(
        self, store: Store
    ) -> None:
        start(store)
        store.keep_output("c", "m1-max", b"first ", owner=OWNER)
        store.keep_output("c", "m1-max", b"second", owner=OWNER)
        assert read_stream(store) == b"first second"
        store.claim("c", OTHER, is_alive=dead)
        store.recover("c", at=140, owner=OTHER)
        assert read_stream(store) == b"first second"
        store.keep_output("c", "m1-max", b"too late", owner=OTHER)
        assert read_stream(store) == b"first second"
        assert store.fsck() == []

    def test_a_turn_that_ends_keeps_its_whole_stream_instead_of_its_parts(self, store: Store) -> None:
        start(store)
        store.keep_output("c", "m1-max", b"part", owner=OWNER)
        packer = StreamPacker()
        packer.feed(b"all of it")
        store.end_turn("c", TurnEnd(turn_id="m1-max", state="failed", at=130, stream=packer.finish()), owner=OWNER)
        assert read_stream(store) == b"all of it"
        assert store.fsck() == []

    def test_only_a_short_output_is_read_by_those_who_look_for_one(self, store: Store) -> None:
        start(store)
        packer = StreamPacker()
        packer.feed(b"ten bytes!" * 10)
        store.end_turn("c", TurnEnd(turn_id="m1-max", state="failed", at=130, stream=packer.finish()), owner=OWNER)
        short = store.short_record("c", "m1-max", most=100)
        assert short is not None
        assert (short.prompt, short.stream) == ("", b"ten bytes!" * 10)
        assert store.short_record("c", "m1-max", most=99) is None

    def test_turns_without_a_reply_are_found_by_their_place(self, store: Store) -> None:
        start(store)
        store.append("c", said("m2", at=1), owner=OWNER)
        store.end_turn("c", TurnEnd(turn_id="m1-max", state="cancelled", at=130), owner=OWNER)
        store.append("c", said("m3", at=0), owner=OWNER)
        assert [(turn.id, turn.after_message) for turn in store.unanswered("c", first=2, last=2)] == [("m1-max", 2)]
        assert store.unanswered("c", first=0, last=1) == store.unanswered("c", first=3, last=999) == []

    def test_what_is_adopted_runs_on_and_only_the_rest_is_interrupted(self, store: Store) -> None:
        start(store)
        store.update("c", at=110, turns=[asked("m1", "sarah", turn_id="other")], owner=OWNER)
        store.start_turn("c", "other", owner=OWNER, given=GIVEN, at=120)
        store.claim("c", OTHER, is_alive=dead)
        with pytest.raises(NotTheOwner):
            store.adopt("c", ["other"], owner=OWNER)
        store.adopt("c", ["m1-max", "unknown"], owner=OTHER)
        assert [turn.id for turn in store.recover("c", at=140, owner=OTHER)] == ["other"]
        assert [turn.id for turn in store.running("c")] == ["m1-max"]
        store.end_turn("c", TurnEnd(turn_id="m1-max", state="failed", at=150), owner=OTHER)
        assert store.fsck() == []

    def test_what_a_dead_owner_left_running_is_interrupted_once(self, store: Store) -> None:
        store.append(
            "c", said("m1"), turns=[asked("m1", "max"), asked("m1", "sarah"), asked("m1", "carol")], owner=OWNER
        )
        store.start_turn("c", "m1-max", owner=OWNER, given=GIVEN, at=110)
        assert store.recover("c", at=120, owner=OWNER) == []

        store.claim("c", OTHER, is_alive=dead)
        store.start_turn("c", "m1-sarah", owner=OTHER, given=GIVEN, at=130)
        interrupted = store.recover("c", at=140, owner=OTHER)

        assert [(turn.id, turn.state, turn.ended_at) for turn in interrupted] == [("m1-max", "interrupted", 140)]
        assert store.recover("c", at=150, owner=OTHER) == []
        assert (ids(store.running("c")), ids(store.queued("c"))) == (["m1-sarah"], ["m1-carol"])

    # Search and check

    def test_search_finds_the_newest_first(self, store: Store) -> None:
        begin(store, "d")
        store.append("c", said("m1", "The old budget was too small"), owner=OWNER)
        store.append("d", said("m1", "a new Budget, and 上下文窗口 needs more"))
        store.append("c", said("m2", "nothing of the kind", speaker=MAX, at=7), owner=OWNER)

        found = store.search("budget")
        assert [(one.conversation_id, one.message_id) for one in found] == [("d", "m1"), ("c", "m1")]
        assert found[1].snippet == "The old budget was too small"
        assert [one.conversation_id for one in store.search("budget", limit=1)] == ["d"]
        assert [one.conversation_id for one in store.search("budget", conversation_id="c")] == ["c"]
        (kind,) = store.search("kind")
        assert (kind.speaker, kind.timestamp, kind.sequence) == (MAX, 7, 2)
        assert [one.conversation_id for one in store.search("下文")] == ["d"]

    def test_all_that_is_written_is_found_sound(self, store: Store) -> None:
        running(store, "m1")
        store.append("c", said("m2", speaker=MAX), finishes=TurnEnd(turn_id="m1-max", state="done", at=1), owner=OWNER)
        store.append(
            "c", said("m3"), turns=[asked("m3", "a"), asked("m3", "b"), asked("m3", "c")], drops=[], owner=OWNER
        )
        store.start_turn("c", "m3-a", owner=OWNER, given=GIVEN, at=2)
        store.end_turn("c", TurnEnd(turn_id="m3-a", state="failed", at=3), owner=OWNER)
        store.requeue("c", "m3-a", asked("m3", "a", turn_id="m3-a-2"), at=4, owner=OWNER)
        store.update("c", at=5, drops=["m3-b"], owner=OWNER)

        assert store.fsck() == store.fsck("c") == []

    # The store itself

    def test_everything_is_there_when_it_is_opened_again(self, store: Store, tmp_path: Path) -> None:
        running(store, "m1")
        store.append(
            "c", said("m2", "你好"), turns=[asked("m2", "sarah")], change=StateChange(team_task="Ship it"), owner=OWNER
        )
        before = (store.conversations(), store.messages("c"), store.turns("c"), store.record("c", "m1-max"))
        store.close()

        reopened = self.open_store(tmp_path)
        after = (reopened.conversations(), reopened.messages("c"), reopened.turns("c"), reopened.record("c", "m1-max"))
        reopened.close()
        assert after == before

    def test_it_can_be_used_from_many_threads(self, store: Store) -> None:
        with ThreadPoolExecutor(4) as threads:
            stored = list(threads.map(lambda number: store.append("c", said(f"m{number}"), owner=OWNER), range(20)))

        assert sorted(one.sequence for one in stored) == list(range(1, 21))
        assert store.fsck() == []

    def test_closing_twice_is_harmless(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(ValueError, match="closed"):
            store.conversations()


def begin(store: Store, conversation_id: str, at: int = 0) -> None:
    """Create a conversation."""
    store.create(conversation_id, team="Builders", team_file="", started_at=at)


def running(store: Store, message_id: str) -> None:
    """Start a turn that a new message asks for."""
    store.append("c", said(message_id), turns=[asked(message_id)], owner=OWNER)
    store.start_turn("c", f"{message_id}-max", owner=OWNER, given=GIVEN, at=110)


def record(command: tuple[str, ...], stream: bytes) -> TurnRecord:
    """Return the record of a turn that was started with GIVEN."""
    return TurnRecord(
        prompt=GIVEN.prompt,
        system=GIVEN.system_flag,
        report=GIVEN.report,
        command=command,
        stream=stream,
        stream_is_cut=False,
    )
