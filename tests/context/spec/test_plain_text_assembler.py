"""The specification's text on the plain text assembler, case by case."""

import logging

import pytest
from msgspec.structs import replace

from bullpen.context import (
    AssemblerInput,
    ClaudeContextAssembler,
    CodexContextAssembler,
    ContextAssembler,
    ContextManager,
    GeminiContextAssembler,
    PlainTextAssembler,
    PromptContextMessage,
    PromptTooLarge,
)

MAX_BYTES = 768 * 1024

# The text's complete example: what goes in and what comes out.
EXAMPLE = AssemblerInput(
    context_messages=[
        PromptContextMessage(sender="kailai", to="agent", content="Hello, how are you?"),
        PromptContextMessage(sender="max", to="agent", content="I am doing well, thanks!"),
    ],
    current_message="What can you help me with?",
    team_task="Assist with general questions",
    system_instruction="You are a helpful assistant",
    instruction_file_text="Be concise and friendly",
    max_bytes=MAX_BYTES,
)
SYSTEM = "You are a helpful assistant\n\nBe concise and friendly"
TASK = "Assist with general questions"
CONTEXT = "kailai: Hello, how are you?\nmax: I am doing well, thanks!"
NEWEST = "max: I am doing well, thanks!"
MESSAGE = "What can you help me with?"
PROMPT = f"{SYSTEM}\n\n{TASK}\n\n{CONTEXT}\n\n{MESSAGE}"
PROMPT_WITHOUT_OLDEST = f"{SYSTEM}\n\n{TASK}\n\n{NEWEST}\n\n{MESSAGE}"
PROMPT_WITHOUT_CONTEXT = f"{SYSTEM}\n\n{TASK}\n\n{MESSAGE}"

NOTHING = AssemblerInput(context_messages=[], current_message="", team_task=None, max_bytes=MAX_BYTES)


def sent(source: AssemblerInput) -> tuple[str, str | None]:
    output = PlainTextAssembler().assemble(source)
    return output.prompt, output.system_flag


def size(text: str) -> int:
    return len(text.encode())


def test_get_agent_type_returns_unknown() -> None:
    assert PlainTextAssembler().get_agent_type() == "unknown"


class TestAssemble:
    def test_produces_plain_text_output_without_markers(self) -> None:
        expected = """\
You are a helpful assistant

Be concise and friendly

Assist with general questions

kailai: Hello, how are you?
max: I am doing well, thanks!

What can you help me with?"""

        assert sent(EXAMPLE) == (expected, None)

    def test_returns_none_system_flag(self) -> None:
        assert PlainTextAssembler().assemble(EXAMPLE).system_flag is None

    def test_joins_parts_with_double_newlines(self) -> None:
        prompt, _ = sent(EXAMPLE)

        assert prompt.split("\n\n") == [
            "You are a helpful assistant",
            "Be concise and friendly",
            TASK,
            CONTEXT,
            MESSAGE,
        ]

    def test_example_with_only_a_message(self) -> None:
        source = AssemblerInput(
            context_messages=[],
            current_message="Hello",
            team_task=None,
            system_instruction=None,
            max_bytes=MAX_BYTES,
        )

        assert sent(source) == ("Hello", None)

    def test_example_with_only_system_instruction_and_message(self) -> None:
        source = AssemblerInput(
            context_messages=[],
            current_message="What is 2+2?",
            team_task=None,
            system_instruction="You are a math tutor",
            max_bytes=MAX_BYTES,
        )

        assert sent(source) == ("You are a math tutor\n\nWhat is 2+2?", None)


class TestContentFormat:
    def test_outputs_system_instruction_without_title(self) -> None:
        assert sent(replace(NOTHING, system_instruction=" You are a math tutor\n")) == ("You are a math tutor", None)

    def test_outputs_instruction_file_text_without_title(self) -> None:
        assert sent(replace(NOTHING, instruction_file_text="\nBe concise ")) == ("Be concise", None)

    def test_outputs_team_task_without_title(self) -> None:
        assert sent(replace(NOTHING, team_task=" Build a feature ")) == ("Build a feature", None)

    def test_outputs_context_messages_as_from_content(self) -> None:
        source = replace(NOTHING, context_messages=EXAMPLE.context_messages)

        assert sent(source) == ("kailai: Hello, how are you?\nmax: I am doing well, thanks!", None)

    def test_outputs_current_message_without_title(self) -> None:
        assert sent(replace(NOTHING, current_message="\tHello \n")) == ("Hello", None)

    def test_omits_to_field_from_context(self) -> None:
        messages = [PromptContextMessage(sender="kailai", to=to, content="Hello") for to in ("agent", "a, b", None)]

        assert sent(replace(NOTHING, context_messages=messages)) == (
            "kailai: Hello\nkailai: Hello\nkailai: Hello",
            None,
        )

    @pytest.mark.parametrize(
        "content",
        ["one\n\n  two", "a  b\tc", "[CONTEXT]\nInstructions:\n- [x] {y} %s \\1", "你好，世界 😀 é", "<b>&amp;</b>"],
    )
    def test_keeps_content_exactly_as_it_is(self, content: str) -> None:
        source = replace(
            NOTHING,
            team_task=content,
            context_messages=[PromptContextMessage(sender="max", content=content)],
            current_message=content,
        )

        assert sent(source) == (f"{content}\n\nmax: {content}\n\n{content}", None)


class TestEmptySectionHandling:
    def test_omits_system_body_when_both_instructions_none(self) -> None:
        source = replace(EXAMPLE, system_instruction=None, instruction_file_text=None)

        assert sent(source) == (f"{TASK}\n\n{CONTEXT}\n\n{MESSAGE}", None)

    def test_omits_system_body_when_both_instructions_are_whitespace(self) -> None:
        source = replace(EXAMPLE, system_instruction=" ", instruction_file_text="\n")

        assert sent(source) == (f"{TASK}\n\n{CONTEXT}\n\n{MESSAGE}", None)

    def test_omits_team_task_when_none(self) -> None:
        assert sent(replace(EXAMPLE, team_task=None)) == (f"{SYSTEM}\n\n{CONTEXT}\n\n{MESSAGE}", None)

    def test_omits_context_when_empty_array(self) -> None:
        assert sent(replace(EXAMPLE, context_messages=[])) == (PROMPT_WITHOUT_CONTEXT, None)

    def test_omits_current_message_when_empty_string(self) -> None:
        assert sent(replace(EXAMPLE, current_message="")) == (f"{SYSTEM}\n\n{TASK}\n\n{CONTEXT}", None)

    def test_returns_empty_prompt_when_all_parts_empty(self) -> None:
        assert sent(NOTHING) == ("", None)


class TestByteBudget:
    def test_returns_unchanged_when_within_budget(self) -> None:
        assert sent(replace(EXAMPLE, max_bytes=size(PROMPT))) == (PROMPT, None)

    def test_trims_oldest_context_messages_first(self) -> None:
        one_byte_short = replace(EXAMPLE, max_bytes=size(PROMPT) - 1)
        room_for_none = replace(EXAMPLE, max_bytes=size(PROMPT_WITHOUT_OLDEST) - 1)

        assert sent(one_byte_short) == (PROMPT_WITHOUT_OLDEST, None)
        assert sent(room_for_none) == (PROMPT_WITHOUT_CONTEXT, None)

    def test_trims_no_more_than_it_must(self) -> None:
        assert sent(replace(EXAMPLE, max_bytes=size(PROMPT_WITHOUT_OLDEST))) == (PROMPT_WITHOUT_OLDEST, None)

    def test_truncates_current_message_if_necessary(self) -> None:
        four_bytes_short = replace(EXAMPLE, max_bytes=size(PROMPT_WITHOUT_CONTEXT) - 4)

        assert sent(four_bytes_short) == (f"{SYSTEM}\n\n{TASK}\n\nWhat can you help me w", None)

    def test_does_not_fill_up_with_context_what_a_cut_message_leaves(self) -> None:
        family = "👨‍👩‍👧‍👦"
        source = replace(
            NOTHING,
            context_messages=[PromptContextMessage(sender="a", content="b")],
            current_message=family * 2,
            max_bytes=size(family * 2) - 1,
        )

        assert sent(source) == (family, None)

    def test_preserves_system_body(self) -> None:
        smallest = f"{SYSTEM}\n\n{TASK}\n\nW"

        assert sent(replace(EXAMPLE, max_bytes=size(smallest))) == (smallest, None)

    def test_preserves_team_task(self) -> None:
        smallest = f"{TASK}\n\nWha"
        source = replace(EXAMPLE, system_instruction=None, instruction_file_text=None, max_bytes=size(smallest))

        assert sent(source) == (smallest, None)

    def test_an_empty_message_needs_no_room(self) -> None:
        fixed = f"{SYSTEM}\n\n{TASK}"

        assert sent(replace(EXAMPLE, current_message="", max_bytes=size(fixed))) == (fixed, None)
        assert sent(replace(NOTHING, max_bytes=0)) == ("", None)

    def test_refuses_when_system_body_and_team_task_alone_do_not_fit(self) -> None:
        # The text does not say what then; the decision is that nothing is sent.
        fixed = f"{SYSTEM}\n\n{TASK}"

        with pytest.raises(PromptTooLarge) as refusal:
            sent(replace(EXAMPLE, max_bytes=size(fixed) - 1))

        assert refusal.value.section_bytes == {
            "system": size(SYSTEM),
            "team_task": size(TASK),
            "context": 0,
            "message": 0,
            "separators": 2,
        }


class TestContextManagerFallback:
    def test_uses_plain_text_assembler_for_unknown_agent_type(self) -> None:
        output = ContextManager().assemble_prompt("custom-agent", EXAMPLE)

        assert output == PlainTextAssembler().assemble(EXAMPLE)
        assert output.report.agent_type == "unknown"

    def test_logs_warning_for_unknown_agent_type(self, caplog: pytest.LogCaptureFixture) -> None:
        # The text on ContextManager has the same line with the normalized type in it; the fuller one holds.
        type_and_normalized = '"custom-agent" (normalized: "custom-agent")'
        warning = f"[ContextManager] Unknown agentType {type_and_normalized}, using PlainTextAssembler"

        ContextManager().assemble_prompt("custom-agent", EXAMPLE)

        assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(logging.WARNING, warning)]

    def test_produces_valid_output_for_unknown_agent_type(self) -> None:
        output = ContextManager().assemble_prompt("custom-agent", EXAMPLE)

        assert (output.prompt, output.system_flag) == (PROMPT, None)


# What the text's two tables of comparison say of one and the same input.
ONE_OF_EACH = AssemblerInput(
    system_instruction="Be Max",
    context_messages=[PromptContextMessage(sender="from", to="to", content="content")],
)


@pytest.mark.parametrize(
    ("assembler", "prompt", "system_flag"),
    [
        (ClaudeContextAssembler(), "[CONTEXT]\n- from -> to: content", "Be Max"),
        (CodexContextAssembler(), "[SYSTEM]\nBe Max\n\n[CONTEXT]\n- from -> to: content", None),
        (GeminiContextAssembler(), "Instructions:\nBe Max\n\nConversation so far:\n- from: content", None),
        (PlainTextAssembler(), "Be Max\n\nfrom: content", None),
    ],
    ids=["Claude", "Codex", "Gemini", "PlainText"],
)
def test_the_comparison_of_all_assemblers(assembler: ContextAssembler, prompt: str, system_flag: str | None) -> None:
    output = assembler.assemble(ONE_OF_EACH)

    assert (output.prompt, output.system_flag) == (prompt, system_flag)
