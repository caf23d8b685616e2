"""The specification's text on ContextManager, case by case."""

import json
import logging
import time
from typing import Any

import pytest
from msgspec.structs import replace

from bullpen.context import (
    AssemblerInput,
    ClaudeContextAssembler,
    CodexContextAssembler,
    ContextManager,
    ContextSnapshot,
    GeminiContextAssembler,
    PlainTextAssembler,
    PromptContextMessage,
    normalize_agent_type,
    strip_all_markers,
    truncate_to_bytes,
)
from bullpen.errors import InvalidSnapshot
from bullpen.messages import ConversationMessage, MessageDraft, Routing, Speaker

KAILAI = Speaker(role_id="kailai-1", role_name="kailai", type="human")
MAX = Speaker(role_id="max-1", role_name="max", type="ai")
SARAH = Speaker(role_id="sarah-1", role_name="sarah", type="ai")
NOON = 1_700_000_000_000


def draft(speaker: Speaker, content: str, to: tuple[str, ...] | None = None) -> MessageDraft:
    routing = None if to is None else Routing(resolved_addressees=to)
    return MessageDraft(content=content, speaker=speaker, routing=routing, timestamp=NOON)


def message(number: int, speaker: Speaker, content: str, to: tuple[str, ...] | None = None) -> ConversationMessage:
    routing = None if to is None else Routing(resolved_addressees=to)
    return ConversationMessage(id=f"msg-{number}", content=content, speaker=speaker, routing=routing, timestamp=NOON)


def manager_with(*drafts: MessageDraft, manager: ContextManager | None = None) -> ContextManager:
    manager = manager or ContextManager()
    for each in drafts:
        manager.add_message(each)
    return manager


def manager_with_numbered_messages(count: int) -> ContextManager:
    return manager_with(*(draft(KAILAI, f"message {number}") for number in range(1, count + 1)))


def contents(source: AssemblerInput) -> list[str]:
    return [each.content for each in source.context_messages]


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(record.levelno, record.getMessage()) for record in caplog.records]


class TestMessageManagement:
    def test_add_message_stores_and_returns_message_with_generated_id(self) -> None:
        manager = ContextManager()

        first = manager.add_message(draft(KAILAI, "Hi [NEXT: max]", to=("max",)))
        second = manager.add_message(draft(MAX, "Hello!"))

        assert first == message(1, KAILAI, "Hi [NEXT: max]", to=("max",))
        assert second == message(2, MAX, "Hello!")
        assert manager.get_messages() == [first, second]

    def test_add_message_throws_on_none_message(self) -> None:
        manager = ContextManager()
        nothing: Any = None

        with pytest.raises(TypeError) as error:
            manager.add_message(nothing)

        assert str(error.value) == "Message cannot be null or undefined"
        assert manager.get_messages() == []

    def test_add_message_throws_on_non_string_content(self) -> None:
        manager = ContextManager()
        number: Any = 123

        with pytest.raises(TypeError) as error:
            manager.add_message(MessageDraft(content=number, speaker=MAX))

        assert str(error.value) == "Message content must be a string"
        assert manager.get_messages() == []

    def test_add_message_throws_on_missing_speaker(self) -> None:
        manager = ContextManager()
        nobody: Any = None

        with pytest.raises(TypeError) as error:
            manager.add_message(MessageDraft(content="Hi", speaker=nobody))

        assert str(error.value) == "Message speaker is required"
        assert manager.get_messages() == []

    @pytest.mark.parametrize("role_id", ["", None])
    def test_add_message_throws_on_missing_role_id(self, role_id: Any) -> None:
        manager = ContextManager()
        speaker = Speaker(role_id=role_id, role_name="max", type="ai")

        with pytest.raises(TypeError) as error:
            manager.add_message(MessageDraft(content="Hi", speaker=speaker))

        assert str(error.value) == "Message speaker.roleId is required"
        assert manager.get_messages() == []

    def test_add_message_checks_in_the_order_of_the_table(self) -> None:
        nothing: Any = None

        with pytest.raises(TypeError) as error:
            ContextManager().add_message(MessageDraft(content=nothing, speaker=nothing))

        assert str(error.value) == "Message content must be a string"

    def test_a_refused_message_takes_no_id(self) -> None:
        manager = ContextManager()
        number: Any = 123
        with pytest.raises(TypeError):
            manager.add_message(MessageDraft(content=number, speaker=MAX))

        assert manager.add_message(draft(MAX, "Hello!")).id == "msg-1"

    def test_add_message_accepts_empty_content(self) -> None:
        assert ContextManager().add_message(draft(MAX, "")) == message(1, MAX, "")

    def test_add_message_calls_on_message_added_hook(self) -> None:
        heard: list[ConversationMessage] = []
        manager = ContextManager(on_message_added=heard.append)

        manager.add_message(draft(KAILAI, "Hi"))
        manager.add_message(draft(MAX, "Hello!"))

        assert heard == [message(1, KAILAI, "Hi"), message(2, MAX, "Hello!")]

    def test_the_message_is_stored_when_the_hook_is_called(self) -> None:
        stored: list[list[ConversationMessage]] = []
        manager = ContextManager(on_message_added=lambda _: stored.append(manager.get_messages()))

        manager.add_message(draft(KAILAI, "Hi"))

        assert stored == [[message(1, KAILAI, "Hi")]]

    def test_get_messages_returns_shallow_copy(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"))

        manager.get_messages().clear()

        assert manager.get_messages() == [message(1, KAILAI, "Hi")]

    def test_get_messages_returns_empty_array_initially(self) -> None:
        assert ContextManager().get_messages() == []

    def test_get_latest_message_returns_none_when_empty(self) -> None:
        assert ContextManager().get_latest_message() is None

    def test_get_latest_message_returns_last_message(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello!"))

        assert manager.get_latest_message() == message(2, MAX, "Hello!")


class TestTeamTaskManagement:
    def test_set_team_task_stores_task(self) -> None:
        manager = ContextManager()

        manager.set_team_task("  Build a login page\n")

        assert manager.get_team_task() == "  Build a login page\n"

    def test_set_team_task_truncates_at_5kb(self) -> None:
        manager = ContextManager()

        manager.set_team_task("x" * 6000)

        assert manager.get_team_task() == "x" * 5120

    def test_set_team_task_truncates_at_a_whole_character(self) -> None:
        # The text's search may split an emoji in two halves; the decision is that no cut does.
        manager = ContextManager()

        manager.set_team_task("xx" + "😀" * 1280)

        assert manager.get_team_task() == "xx" + "😀" * 1279

    def test_set_team_task_keeps_exactly_5kb(self, caplog: pytest.LogCaptureFixture) -> None:
        manager = ContextManager()

        manager.set_team_task("任" * 1706 + "xx")

        assert manager.get_team_task() == "任" * 1706 + "xx"
        assert logged(caplog) == []

    def test_set_team_task_logs_warning_on_truncation(self, caplog: pytest.LogCaptureFixture) -> None:
        ContextManager().set_team_task("任" * 2000)

        assert logged(caplog) == [
            (logging.WARNING, "[ContextManager] TeamTask exceeded 5KB limit (6000 bytes), truncated to 5118 bytes")
        ]

    def test_set_team_task_calls_on_team_task_changed_hook(self) -> None:
        heard: list[str | None] = []
        manager = ContextManager(on_team_task_changed=heard.append)

        manager.set_team_task("Build")
        manager.set_team_task("x" * 6000)

        assert heard == ["Build", "x" * 5120]

    def test_get_team_task_returns_none_initially(self) -> None:
        assert ContextManager().get_team_task() is None

    @pytest.mark.parametrize(
        ("text", "max_bytes", "expected"),
        [("abc", 3, "abc"), ("abc", 2, "ab"), ("你好", 6, "你好"), ("你好", 5, "你"), ("你好", 2, ""), ("", 0, "")],
    )
    def test_truncate_to_bytes(self, text: str, max_bytes: int, expected: str) -> None:
        assert truncate_to_bytes(text, max_bytes) == expected


class TestGetContextForAgent:
    def test_returns_empty_context_when_no_messages(self) -> None:
        manager = ContextManager(max_bytes=1000)
        manager.set_team_task("Build")

        source = manager.get_context_for_agent(
            "max-1", "claude", system_instruction="You are Max", instruction_file_text="Be helpful"
        )

        assert source == AssemblerInput(
            context_messages=[],
            current_message="",
            team_task="Build",
            system_instruction="You are Max",
            instruction_file_text="Be helpful",
            max_bytes=1000,
        )

    def test_returns_every_part_of_the_input(self) -> None:
        manager = manager_with(
            draft(KAILAI, "Hi [NEXT: max]", to=("max",)),
            draft(MAX, "[NEXT: sarah]\nPlease review", to=("sarah",)),
            draft(SARAH, "Done [NEXT: kailai]", to=("kailai",)),
        )
        manager.set_team_task("Build")

        source = manager.get_context_for_agent(
            "max-1", "claude", system_instruction="You are Max", instruction_file_text="Be helpful"
        )

        assert source == AssemblerInput(
            context_messages=[
                PromptContextMessage(sender="kailai", to="max", content="Hi"),
                PromptContextMessage(sender="max", to="sarah", content="Please review"),
            ],
            current_message="Done",
            team_task="Build",
            system_instruction="You are Max",
            instruction_file_text="Be helpful",
            max_bytes=768 * 1024,
        )

    def test_leaves_the_context_empty_for_the_first_message(self) -> None:
        source = manager_with(draft(KAILAI, "Hi")).get_context_for_agent("max-1", "claude")

        assert source == AssemblerInput(context_messages=[], current_message="Hi", max_bytes=768 * 1024)

    def test_applies_context_window_size_limit(self) -> None:
        five_messages = [draft(KAILAI, f"message {number}") for number in range(1, 6)]
        manager = manager_with(*five_messages, manager=ContextManager(context_window_size=2))

        source = manager.get_context_for_agent("max-1", "claude")

        assert (contents(source), source.current_message) == (["message 3", "message 4"], "message 5")

    def test_the_window_holds_five_messages_by_default(self) -> None:
        source = manager_with_numbered_messages(8).get_context_for_agent("max-1", "claude")

        assert contents(source) == ["message 3", "message 4", "message 5", "message 6", "message 7"]
        assert source.current_message == "message 8"

    def test_respects_window_size_override(self) -> None:
        manager = manager_with_numbered_messages(8)

        smaller = manager.get_context_for_agent("max-1", "claude", window_size_override=1)
        larger = manager.get_context_for_agent("max-1", "claude", window_size_override=100)

        assert contents(smaller) == ["message 7"]
        assert contents(larger) == [f"message {number}" for number in range(1, 8)]

    def test_a_window_of_zero_holds_nothing(self) -> None:
        # In the text slice(-0) would be the whole history; the decision is that 0 means none.
        source = manager_with_numbered_messages(3).get_context_for_agent("max-1", "claude", window_size_override=0)

        assert (contents(source), source.current_message) == ([], "message 3")

    def test_strips_markers_from_context_messages(self) -> None:
        manager = manager_with(
            draft(KAILAI, "[FROM: kailai] Hi [NEXT: max] there"),
            draft(MAX, "On it. [next: sarah]"),
            draft(SARAH, "Noted.\n[TEAM_TASK] Build a login page"),
            draft(KAILAI, "Go on"),
        )

        assert contents(manager.get_context_for_agent("max-1", "claude")) == ["Hi there", "On it.", "Noted."]

    def test_strips_markers_from_current_message(self) -> None:
        manager = manager_with(draft(KAILAI, "[FROM: kailai] Hello [NEXT: max, sarah] world\n[TEAM_TASK] Build"))

        assert manager.get_context_for_agent("max-1", "claude").current_message == "Hello world"

    def test_keeps_the_stored_messages_as_they_were_said(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi [NEXT: max]"))

        manager.get_context_for_agent("max-1", "claude")

        assert manager.get_messages() == [message(1, KAILAI, "Hi [NEXT: max]")]

    def test_deduplicates_ai_to_ai_context(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello! [NEXT: sarah]"), draft(MAX, "Hello!"))

        source = manager.get_context_for_agent("sarah-1", "claude")

        assert (contents(source), source.current_message) == (["Hi"], "Hello!")

    def test_deduplicates_after_the_window_was_taken(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello!"), draft(MAX, "Hello!"))

        assert contents(manager.get_context_for_agent("sarah-1", "claude", window_size_override=1)) == []

    def test_deduplicates_the_last_context_message_only(self) -> None:
        manager = manager_with(draft(MAX, "Hello!"), draft(MAX, "Hello!"), draft(KAILAI, "Hi"), draft(MAX, "Hello!"))

        assert contents(manager.get_context_for_agent("sarah-1", "claude")) == ["Hello!", "Hello!", "Hi"]

    def test_does_not_deduplicate_human_messages(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"), draft(KAILAI, "Hi"))

        source = manager.get_context_for_agent("max-1", "claude")

        assert (contents(source), source.current_message) == (["Hi"], "Hi")

    def test_does_not_deduplicate_another_speaker_or_another_content(self) -> None:
        other_speaker = manager_with(draft(SARAH, "Hello!"), draft(MAX, "Hello!"))
        other_content = manager_with(draft(MAX, "Hello?"), draft(MAX, "Hello!"))

        assert contents(other_speaker.get_context_for_agent("sarah-1", "claude")) == ["Hello!"]
        assert contents(other_content.get_context_for_agent("sarah-1", "claude")) == ["Hello?"]

    def test_the_scenario_from_user_to_max_to_sarah(self) -> None:
        user = Speaker(role_id="user-1", role_name="User", type="human")
        max_speaker = Speaker(role_id="max-1", role_name="Max", type="ai")
        manager = manager_with(draft(user, "Hi"))

        for_max = manager.get_context_for_agent("max-1", "claude")
        manager.add_message(draft(max_speaker, "Hello!"))
        for_sarah = manager.get_context_for_agent("sarah-1", "claude")

        assert (contents(for_max), for_max.current_message) == ([], "Hi")
        assert list(for_sarah.context_messages) == [PromptContextMessage(sender="User", to="all", content="Hi")]
        assert for_sarah.current_message == "Hello!"

    def test_passes_system_instruction_and_instruction_file_text(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"))

        source = manager.get_context_for_agent(
            "max-1", "claude", system_instruction=" You are Max ", instruction_file_text="Be helpful\n"
        )

        assert (source.system_instruction, source.instruction_file_text) == (" You are Max ", "Be helpful\n")

    def test_passes_max_bytes_to_output(self) -> None:
        assert ContextManager(max_bytes=1234).get_context_for_agent("max-1", "claude").max_bytes == 1234
        assert ContextManager().get_context_for_agent("max-1", "claude").max_bytes == 786_432

    @pytest.mark.parametrize(
        ("addressees", "to"),
        [
            (None, "all"),
            ((), "all"),
            (("max",), "max"),
            (("max", "sarah"), "max, sarah"),
            (("max", "sarah", "carol"), "max, sarah, carol"),
        ],
    )
    def test_formats_addressees(self, addressees: tuple[str, ...] | None, to: str) -> None:
        manager = manager_with(draft(KAILAI, "Hi", to=addressees), draft(MAX, "Hello!"))

        source = manager.get_context_for_agent("max-1", "claude")

        assert list(source.context_messages) == [PromptContextMessage(sender="kailai", to=to, content="Hi")]

    def test_what_it_returned_does_not_change_with_the_conversation(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello!"))

        source = manager.get_context_for_agent("sarah-1", "claude")
        manager.add_message(draft(SARAH, "Good morning"))
        manager.clear()

        assert (contents(source), source.current_message) == (["Hi"], "Hello!")


class TestStripAllMarkers:
    @pytest.mark.parametrize(
        ("text", "stripped"),
        [
            ("Hello [NEXT: max] world", "Hello world"),
            ("[FROM: kailai] Hello", "Hello"),
            ("Hello [NEXT:]", "Hello"),
            ("Hello [FROM:]", "Hello [FROM:]"),
            ("[from: a][Next: b]Hello[NEXT:c]", "Hello"),
            ("Hello\n[TEAM_TASK] Build a page\nwith two buttons", "Hello"),
            ("[TEAM_TASK] Build a page [NEXT: max]", ""),
            ("  Hello  ", "Hello"),
            ("no marker [x] here", "no marker [x] here"),
            ("", ""),
        ],
    )
    def test_takes_out_from_next_and_team_task(self, text: str, stripped: str) -> None:
        assert strip_all_markers(text) == stripped
        assert strip_all_markers(text, "collapse") == stripped

    def test_keeps_indentation_and_blank_lines(self) -> None:
        # The text flattens both; the decision is that only what a marker caused goes.
        assert strip_all_markers("def f():\n    return  1\n\n\nend [NEXT: max]") == "def f():\n    return  1\n\n\nend"

    def test_collapse_cleans_up_whitespace_as_the_text_does(self) -> None:
        text = "  def f():\n    return  1 \t 2\n \n\nend [NEXT: max]  \n"

        assert strip_all_markers(text, "collapse") == "def f():\nreturn 1 2\nend"

    def test_collapse_leaves_one_space_where_a_marker_stood_between_tab_and_space(self) -> None:
        assert strip_all_markers("done\t[NEXT: max] thanks", "collapse") == "done thanks"

    def test_two_markers_in_a_row_do_not_glue_words_together(self) -> None:
        text = "done[NEXT: max] [NEXT: sarah]thanks"

        assert [strip_all_markers(text), strip_all_markers(text, "collapse")] == ["done thanks", "done thanks"]

    def test_a_team_task_does_not_end_at_any_bracket(self) -> None:
        # The text ends it at the next "["; the decision is that it ends at the next marker.
        assert strip_all_markers("Hi\n[TEAM_TASK] fix a[0] and b") == "Hi"


class TestLifecycle:
    def test_clear_removes_all_messages(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello!"))

        manager.clear()

        assert (manager.get_messages(), manager.get_latest_message()) == ([], None)

    def test_clear_resets_team_task(self) -> None:
        heard: list[str | None] = []
        manager = ContextManager(on_team_task_changed=heard.append)
        manager.set_team_task("Build")

        manager.clear()

        assert manager.get_team_task() is None
        assert heard == ["Build", None]

    def test_clear_resets_message_id_counter(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello!"))

        manager.clear()

        assert manager.add_message(draft(KAILAI, "Again")) == message(1, KAILAI, "Again")

    def test_export_snapshot_returns_serializable_object(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi [NEXT: max]", to=("max",)), draft(MAX, "你好"))
        manager.set_team_task("Build")

        before = time.time_ns() // 1_000_000
        snapshot = manager.export_snapshot()
        after = time.time_ns() // 1_000_000

        assert before <= snapshot.timestamp <= after
        assert json.loads(snapshot.to_json()) == {
            "messages": [
                {
                    "id": "msg-1",
                    "content": "Hi [NEXT: max]",
                    "speaker": {"roleId": "kailai-1", "roleName": "kailai", "type": "human"},
                    "routing": {"resolvedAddressees": ["max"]},
                    "timestamp": NOON,
                },
                {
                    "id": "msg-2",
                    "content": "你好",
                    "speaker": {"roleId": "max-1", "roleName": "max", "type": "ai"},
                    "timestamp": NOON,
                },
            ],
            "teamTask": "Build",
            "timestamp": snapshot.timestamp,
            "version": 1,
        }

    def test_export_snapshot_of_nothing(self) -> None:
        snapshot = ContextManager().export_snapshot()

        assert json.loads(replace(snapshot, timestamp=NOON).to_json()) == {
            "messages": [],
            "teamTask": None,
            "timestamp": NOON,
            "version": 1,
        }

    def test_export_snapshot_copies_the_messages(self) -> None:
        manager = manager_with(draft(KAILAI, "Hi"))

        snapshot = manager.export_snapshot()
        manager.add_message(draft(MAX, "Hello!"))

        assert list(snapshot.messages) == [message(1, KAILAI, "Hi")]
        assert ContextSnapshot.from_json(snapshot.to_json()).messages == [message(1, KAILAI, "Hi")]

    def test_import_snapshot_restores_messages(self) -> None:
        snapshot = manager_with(draft(KAILAI, "Hi", to=("max",)), draft(MAX, "你好")).export_snapshot()
        manager = manager_with(draft(SARAH, "to be replaced"))

        manager.import_snapshot(ContextSnapshot.from_json(snapshot.to_json()))

        assert manager.get_messages() == [message(1, KAILAI, "Hi", to=("max",)), message(2, MAX, "你好")]

    def test_import_snapshot_copies_the_messages(self) -> None:
        messages = [message(1, KAILAI, "Hi")]
        manager = ContextManager()

        manager.import_snapshot(ContextSnapshot(messages=messages))
        messages.clear()

        assert manager.get_messages() == [message(1, KAILAI, "Hi")]

    def test_import_snapshot_restores_team_task(self) -> None:
        heard: list[str | None] = []
        manager = ContextManager(on_team_task_changed=heard.append)

        manager.import_snapshot(ContextSnapshot(messages=[], team_task="Build"))
        manager.import_snapshot(ContextSnapshot(messages=[], team_task=None))

        assert heard == ["Build", None]
        assert manager.get_team_task() is None

    def test_import_snapshot_does_not_announce_messages(self) -> None:
        heard: list[ConversationMessage] = []
        manager = ContextManager(on_message_added=heard.append)

        manager.import_snapshot(ContextSnapshot(messages=[message(1, KAILAI, "Hi")]))

        assert heard == []

    @pytest.mark.parametrize(
        ("ids", "next_id"),
        [
            ([], "msg-1"),
            (["msg-1", "msg-2"], "msg-3"),
            (["msg-7", "msg-3"], "msg-8"),
            (["msg-2", "imported", "msg-x", "my-msg-9", "msg-9-b"], "msg-3"),
            (["imported"], "msg-1"),
        ],
    )
    def test_import_snapshot_counts_on_from_the_highest_id(self, ids: list[str], next_id: str) -> None:
        messages = [replace(message(1, KAILAI, "Hi"), id=each) for each in ids]
        manager = ContextManager()

        manager.import_snapshot(ContextSnapshot(messages=messages))

        assert manager.add_message(draft(MAX, "Hello!")).id == next_id

    @pytest.mark.parametrize(
        ("wrong", "reason"),
        [
            (None, "expected a ContextSnapshot, got NoneType"),
            ({}, "expected a ContextSnapshot, got dict"),
            (ContextSnapshot(messages=[], version=2), "version 2 is not 1"),
        ],
    )
    def test_import_snapshot_throws_on_invalid_format(self, wrong: Any, reason: str) -> None:
        heard: list[str | None] = []
        manager = ContextManager(on_team_task_changed=heard.append)
        manager.add_message(draft(KAILAI, "Hi"))
        manager.set_team_task("Build")

        with pytest.raises(InvalidSnapshot) as error:
            manager.import_snapshot(wrong)

        assert str(error.value) == f"Invalid snapshot format: {reason}. The conversation was left as it was."
        assert (manager.get_messages(), manager.get_team_task()) == ([message(1, KAILAI, "Hi")], "Build")
        assert heard == ["Build"]


# One input for all assemblers, so that each can be told by its format.
ONE_OF_EACH = AssemblerInput(
    system_instruction="Be Max",
    team_task="Build",
    context_messages=[PromptContextMessage(sender="kailai", to="max", content="Hi")],
    current_message="Go",
)


class TestAssemblePrompt:
    def test_uses_claude_context_assembler_for_claude_code(self) -> None:
        output = ContextManager().assemble_prompt("claude-code", ONE_OF_EACH)

        assert output == ClaudeContextAssembler().assemble(ONE_OF_EACH)
        assert output.prompt == "[TEAM_TASK]\nBuild\n\n[CONTEXT]\n- kailai -> max: Hi\n\n[MESSAGE]\nGo"
        assert output.system_flag == "Be Max"

    def test_uses_codex_context_assembler_for_openai_codex(self) -> None:
        output = ContextManager().assemble_prompt("openai-codex", ONE_OF_EACH)

        assert output == CodexContextAssembler().assemble(ONE_OF_EACH)
        assert output.prompt == (
            "[SYSTEM]\nBe Max\n\n[TEAM_TASK]\nBuild\n\n[CONTEXT]\n- kailai -> max: Hi\n\n[MESSAGE]\nGo"
        )
        assert output.system_flag is None

    def test_uses_gemini_context_assembler_for_google_gemini(self) -> None:
        output = ContextManager().assemble_prompt("google-gemini", ONE_OF_EACH)

        assert output == GeminiContextAssembler().assemble(ONE_OF_EACH)
        assert output.prompt == (
            "Instructions:\nBe Max\n\nTeam Task:\nBuild\n\nConversation so far:\n- kailai: Hi\n\nYour task:\nGo"
        )
        assert output.system_flag is None

    def test_falls_back_to_plain_text_assembler_for_unknown_type(self) -> None:
        output = ContextManager().assemble_prompt("custom-agent", ONE_OF_EACH)

        assert output == PlainTextAssembler().assemble(ONE_OF_EACH)
        assert (output.prompt, output.system_flag) == ("Be Max\n\nBuild\n\nkailai: Hi\n\nGo", None)

    def test_logs_warning_for_unknown_agent_type(self, caplog: pytest.LogCaptureFixture) -> None:
        # The text warns every time; the decision is to warn once per type.
        manager = ContextManager()
        warning = '[ContextManager] Unknown agentType "{0}" (normalized: "{0}"), using PlainTextAssembler'

        for agent_type in ("xxx", "xxx", "claude", "YYY"):
            manager.assemble_prompt(agent_type, ONE_OF_EACH)

        assert logged(caplog) == [
            (logging.WARNING, warning.format("xxx")),
            (logging.WARNING, warning.format("YYY")),
        ]

    @pytest.mark.parametrize(
        ("agent_type", "normalized"),
        [
            ("claude", "claude-code"),
            ("claude-code", "claude-code"),
            ("codex", "openai-codex"),
            ("openai-codex", "openai-codex"),
            ("gemini", "google-gemini"),
            ("google-gemini", "google-gemini"),
        ],
    )
    def test_normalizes_the_agent_type(self, agent_type: str, normalized: str) -> None:
        manager = ContextManager()

        assert normalize_agent_type(agent_type) == normalized
        assert normalize_agent_type(agent_type.upper()) == normalized
        assert manager.assemble_prompt(agent_type, ONE_OF_EACH) == manager.assemble_prompt(normalized, ONE_OF_EACH)
        assert manager.assemble_prompt(agent_type, ONE_OF_EACH).report.agent_type == normalized

    @pytest.mark.parametrize("agent_type", ["custom-agent", "Custom-Agent", "", "claude "])
    def test_returns_any_other_agent_type_as_it_is(self, agent_type: str) -> None:
        assert normalize_agent_type(agent_type) == agent_type


class TestLogs:
    def test_message_added(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, logger="bullpen")

        manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello!"))

        assert logged(caplog) == [
            (logging.DEBUG, "[ContextManager] Message added: msg-1"),
            (logging.DEBUG, "[ContextManager] Message added: msg-2"),
        ]

    def test_deduplicated(self, caplog: pytest.LogCaptureFixture) -> None:
        repeated = manager_with(draft(MAX, "Hello!"), draft(MAX, "Hello!"))
        not_repeated = manager_with(draft(KAILAI, "Hi"), draft(MAX, "Hello!"))
        caplog.set_level(logging.DEBUG, logger="bullpen")

        repeated.get_context_for_agent("sarah-1", "claude")
        not_repeated.get_context_for_agent("sarah-1", "claude")

        assert logged(caplog) == [(logging.DEBUG, "[ContextManager] Deduplicated context for AI→AI")]


def test_one_round_as_the_coordinator_runs_it() -> None:
    heard: list[str] = []
    manager = ContextManager(context_window_size=5, on_message_added=lambda added: heard.append(added.id))
    manager.set_team_task("Build a login page")

    manager.add_message(draft(KAILAI, "Please start [NEXT: max]", to=("max",)))
    first = manager.assemble_prompt(
        "claude", manager.get_context_for_agent("max-1", "claude", system_instruction="You are Max")
    )
    manager.add_message(draft(MAX, "Here is a draft.\n[NEXT: sarah]", to=("sarah",)))
    second = manager.assemble_prompt(
        "gemini", manager.get_context_for_agent("sarah-1", "gemini", instruction_file_text="Be strict")
    )

    assert (first.prompt, first.system_flag) == (
        "[TEAM_TASK]\nBuild a login page\n\n[MESSAGE]\nPlease start",
        "You are Max",
    )
    assert second.prompt == (
        "Instructions:\nBe strict\n\nTeam Task:\nBuild a login page\n\n"
        "Conversation so far:\n- kailai: Please start\n\nYour task:\nHere is a draft."
    )
    assert second.system_flag is None
    assert heard == ["msg-1", "msg-2"]
