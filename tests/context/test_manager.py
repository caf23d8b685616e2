"""ContextManager beyond the specification: bad input, hooks that fail, windows that are looked at late."""

import logging
from datetime import UTC, datetime
from random import Random

import pytest
from msgspec.structs import replace

from bullpen.context import (
    AssemblerInput,
    AssemblerOutput,
    ClaudeContextAssembler,
    ContextManager,
    PromptContextMessage,
)
from bullpen.messages import ConversationMessage, MessageDraft, Routing, Speaker

KAILAI = Speaker(role_id="kailai", role_name="kailai", type="human")


def draft(content: str = "hi", **fields: object) -> MessageDraft:
    return MessageDraft(content=content, **{"speaker": KAILAI, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (None, "Message cannot be null or undefined"),
        ("hi", "Message must be a MessageDraft, not str"),
        (draft(content=7), "Message content must be a string"),  # type: ignore[arg-type]
        (draft(speaker=None), "Message speaker is required"),
        (draft(speaker="max"), "Message speaker must be a Speaker, not str"),
        (draft(speaker=Speaker(role_id="", role_name="x", type="ai")), r"Message speaker\.roleId is required"),
        (draft(speaker=Speaker(role_id="x", role_name=None, type="ai")), "must be strings"),  # type: ignore[arg-type]
        (
            draft(speaker=Speaker(role_id="x", role_name="x", type="dog")),  # type: ignore[arg-type]
            r"Message speaker\.type must be one of human, ai, system, not 'dog'",
        ),
        (draft(routing="max"), "Message routing must be a Routing, not str"),
        (draft(routing=Routing(resolved_addressees=(7,))), "resolvedAddressees must be a list of strings"),  # type: ignore[arg-type]
        (draft(routing=Routing(resolved_addressees="max")), "resolvedAddressees must be a list of strings"),  # type: ignore[arg-type]
        (draft(timestamp=[]), "Message timestamp must be milliseconds, not list"),
    ],
)
def test_a_bad_message_is_refused_and_nothing_changes(bad: MessageDraft, complaint: str) -> None:
    manager = ContextManager()
    manager.add_message(draft("first"))

    with pytest.raises(TypeError, match=complaint):
        manager.add_message(bad)

    assert [message.content for message in manager.get_messages()] == ["first"]
    assert manager.add_message(draft("second")).id == "msg-2"


@pytest.mark.parametrize("option", ["context_window_size", "max_bytes"])
@pytest.mark.parametrize("value", ["5", 5.0, None, True])
def test_an_option_of_the_wrong_type_is_refused(option: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"{option} must be a whole number, not {type(value).__name__}"):
        ContextManager(**{option: value})  # type: ignore[arg-type]


def test_a_task_or_agent_type_of_the_wrong_type_is_refused() -> None:
    manager = ContextManager()
    manager.set_team_task("ship")

    with pytest.raises(TypeError, match="Team task must be a string, not NoneType"):
        manager.set_team_task(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Agent type must be a string, not NoneType"):
        manager.get_context_for_agent("max", None)  # type: ignore[arg-type]
    assert manager.get_team_task() == "ship"


def test_surrogates_and_nuls_are_replaced_on_entry() -> None:
    manager = ContextManager()

    message = manager.add_message(
        draft("half \ud83d and \0", speaker=Speaker(role_id="x", role_name="a\ud83d", type="ai"))
    )

    assert message.content == "half \ufffd and \u2400"
    assert message.speaker.role_name == "a\ufffd"
    assert manager.get_messages() == [message]
    assert manager.export_snapshot().to_json()


def test_text_comes_back_as_it_went_in() -> None:
    manager = ContextManager()
    texts = ["", "plain", 'quotes " \\ and \t tabs\r\n', "中文", "😀" * 1000, "\u2028\x7f\x1b[31m", "é" * 3]

    for text in texts:
        assert manager.add_message(draft(text)).content == text

    assert [message.content for message in manager.get_messages()] == texts


@pytest.mark.parametrize("timestamp", [1_700_000_000_000, datetime.fromtimestamp(1_700_000_000, UTC)])
def test_a_timestamp_is_kept_in_milliseconds(timestamp: object) -> None:
    assert ContextManager().add_message(draft(timestamp=timestamp)).timestamp == 1_700_000_000_000


def test_a_message_without_a_time_is_said_now() -> None:
    before = datetime.now(UTC).timestamp() * 1000 - 1

    assert before <= ContextManager().add_message(draft()).timestamp <= before + 60_000


def test_a_hook_that_fails_is_logged_and_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("the screen is gone")

    manager = ContextManager(on_message_added=fail, on_team_task_changed=fail)

    assert manager.add_message(draft("hi")).id == "msg-1"
    manager.set_team_task("ship")
    manager.import_snapshot(manager.export_snapshot())

    assert len(manager.get_messages()) == 1
    assert manager.get_team_task() == "ship"
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 3
    assert "the screen is gone" in caplog.text


def test_a_hook_may_add_messages_itself() -> None:
    def answer(message: ConversationMessage) -> None:
        if message.id == "msg-1":
            manager.add_message(draft("echo"))

    manager = ContextManager(on_message_added=answer)

    assert manager.add_message(draft("hi")).content == "hi"
    assert [message.content for message in manager.get_messages()] == ["hi", "echo"]


def test_a_window_looked_at_late_shows_what_was_there_when_it_was_made() -> None:
    manager = ContextManager()
    for word in ("one", "two"):
        manager.add_message(draft(word))
    source = manager.get_context_for_agent("max", "claude")

    manager.add_message(draft("three"))
    manager.clear()
    manager.add_message(draft("other"))

    assert source.context_messages == [PromptContextMessage(sender="kailai", to="all", content="one")]


def test_a_window_is_a_sequence() -> None:
    manager = ContextManager()
    for word in ("one", "two", "three"):
        manager.add_message(draft(word))
    one, two = (PromptContextMessage(sender="kailai", to="all", content=word) for word in ("one", "two"))

    window = manager.get_context_for_agent("max", "claude").context_messages

    assert window == [one, two]
    assert list(window) == [window[0], window[-1]]
    for other in ((one, two), [one], "ab", 7):
        assert (window == other) is (other == (one, two))
    assert window[:1] == [one]
    assert list(reversed(window)) == [two, one]
    assert two in window
    assert "content='two'" in repr(window)


def test_the_newest_messages_that_fit_are_chosen_from_a_long_history() -> None:
    manager = ContextManager(max_bytes=1000)
    for number in range(5000):
        manager.add_message(draft(f"message {number}"))

    source = manager.get_context_for_agent("max", "gemini", window_size_override=5000)
    report = manager.assemble_prompt("gemini", source).report

    assert report.total_bytes <= 1000
    assert report.kept_ids[-1] == "msg-4999"
    assert len(report.kept_ids) + len(report.dropped_ids) == 4999
    assert report.dropped_ids[0] == "msg-1"


def prompt_made_anew(source: AssemblerInput) -> AssemblerOutput:
    """Return the prompt of an assembler that remembers nothing, from a list that no history stands behind."""
    return ClaudeContextAssembler().assemble(replace(source, context_messages=list(source.context_messages)))


def test_lines_that_are_joined_in_runs_make_the_same_prompts() -> None:
    manager = ContextManager()
    random = Random(1)
    for number in range(300):
        words = random.choice(["word ", "字", "[CONTEXT]\n", "👍 ", "```\n"]) * random.randint(1, 40)
        manager.add_message(draft(f"{number}: {words}"))
        window = random.choice([0, 5, 64, 100, 1000])
        ids = [f"msg-{random.randint(1, number + 1)}" for _ in range(random.choice([0, 0, 3]))]
        source = manager.get_context_for_agent("max", "claude-code", window_size_override=window, hidden_ids=ids)
        source = replace(source, max_bytes=random.choice([2_000, 20_000, 200_000]))

        output, anew = manager.assemble_prompt("claude-code", source), prompt_made_anew(source)

        assert output.prompt == anew.prompt
        assert output.report.dropped_messages == anew.report.dropped_messages
        assert output.report.section_bytes == anew.report.section_bytes
        places = [int(change.id.removeprefix("#")) for change in anew.report.changed if change.id]
        changed = [output.report.context_ids[place - 1] for place in places]
        assert [change.id for change in output.report.changed if change.id] == changed


def test_lines_of_a_history_that_was_cleared_do_not_come_back() -> None:
    manager = ContextManager()
    for word in ("old", "new"):
        for number in range(100):
            manager.add_message(draft(f"{word} {number}"))
        source = manager.get_context_for_agent("max", "claude-code", window_size_override=100)

        prompt = manager.assemble_prompt("claude-code", source).prompt

        assert prompt.count(word) == 100
        manager.clear()


def test_collapsing_white_space_is_an_option() -> None:
    manager = ContextManager(whitespace="collapse")
    manager.add_message(draft("a\n\n    b"))

    assert manager.get_context_for_agent("max", "claude").current_message == "a\nb"


def test_a_member_is_addressed_by_any_name_it_has_spoken_under() -> None:
    manager = ContextManager()
    sarah = Speaker(role_id="ai-7", role_name="Sarah", type="ai")
    manager.add_message(draft("hello", speaker=sarah, routing=Routing(resolved_addressees=("kailai",))))
    manager.add_message(draft("for sarah", routing=Routing(resolved_addressees=("SARAH",))))
    manager.add_message(draft("for max", routing=Routing(resolved_addressees=("max",))))
    manager.add_message(draft("now"))

    source = manager.get_context_for_agent("ai-7", "claude", visibility="addressed")

    assert [message.content for message in source.context_messages] == ["hello", "for sarah"]


def test_addressees_may_be_written_as_a_list() -> None:
    routing = Routing(resolved_addressees=["max", "sarah"])  # type: ignore[arg-type]

    assert ContextManager().add_message(draft(routing=routing)).routing == Routing(resolved_addressees=("max", "sarah"))
