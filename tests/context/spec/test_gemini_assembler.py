"""The specification's text on the Gemini assembler, case by case."""

import pytest
from msgspec.structs import replace

from bullpen.context import (
    AssemblerInput,
    ClaudeContextAssembler,
    CodexContextAssembler,
    ContextAssembler,
    GeminiContextAssembler,
    PromptContextMessage,
    PromptTooLarge,
)

MAX_BYTES = 768 * 1024

# The text's complete example: what goes in and what comes out.
EXAMPLE = AssemblerInput(
    context_messages=[
        PromptContextMessage(sender="kailai", to="carol", content="Can you design the UI?"),
        PromptContextMessage(sender="max", to="carol", content="I suggest a clean interface"),
    ],
    current_message="What UI framework should we use?",
    team_task="Design the user dashboard",
    system_instruction="You are Carol, a UI/UX designer",
    instruction_file_text="Focus on accessibility and user experience",
    max_bytes=MAX_BYTES,
)
INSTRUCTIONS = "Instructions:\nYou are Carol, a UI/UX designer\n\nFocus on accessibility and user experience"
TEAM_TASK = "Team Task:\nDesign the user dashboard"
CONVERSATION = "Conversation so far:\n- kailai: Can you design the UI?\n- max: I suggest a clean interface"
NEWEST = "Conversation so far:\n- max: I suggest a clean interface"
YOUR_TASK = "Your task:\nWhat UI framework should we use?"
PROMPT = f"{INSTRUCTIONS}\n\n{TEAM_TASK}\n\n{CONVERSATION}\n\n{YOUR_TASK}"
PROMPT_WITHOUT_OLDEST = f"{INSTRUCTIONS}\n\n{TEAM_TASK}\n\n{NEWEST}\n\n{YOUR_TASK}"
PROMPT_WITHOUT_CONTEXT = f"{INSTRUCTIONS}\n\n{TEAM_TASK}\n\n{YOUR_TASK}"

NOTHING = AssemblerInput(context_messages=[], current_message="", team_task=None, max_bytes=MAX_BYTES)
HELLO = replace(NOTHING, current_message="Hello")


def sent(source: AssemblerInput) -> tuple[str, str | None]:
    output = GeminiContextAssembler().assemble(source)
    return output.prompt, output.system_flag


def with_instructions(system_instruction: str | None, instruction_file_text: str | None) -> tuple[str, str | None]:
    return sent(replace(HELLO, system_instruction=system_instruction, instruction_file_text=instruction_file_text))


def size(text: str) -> int:
    return len(text.encode())


def test_get_agent_type_returns_google_gemini() -> None:
    assert GeminiContextAssembler().get_agent_type() == "google-gemini"


class TestAssemble:
    def test_produces_correct_format_with_all_sections(self) -> None:
        expected = """\
Instructions:
You are Carol, a UI/UX designer

Focus on accessibility and user experience

Team Task:
Design the user dashboard

Conversation so far:
- kailai: Can you design the UI?
- max: I suggest a clean interface

Your task:
What UI framework should we use?"""

        assert sent(EXAMPLE) == (expected, None)

    def test_returns_none_system_flag(self) -> None:
        assert GeminiContextAssembler().assemble(EXAMPLE).system_flag is None

    def test_follows_correct_section_order(self) -> None:
        prompt, _ = sent(EXAMPLE)

        headers = [line for line in prompt.split("\n") if line.endswith(":")]

        assert headers == ["Instructions:", "Team Task:", "Conversation so far:", "Your task:"]

    def test_uses_natural_language_headers_no_brackets(self) -> None:
        prompt, _ = sent(EXAMPLE)

        assert [character for character in prompt if character in "[]"] == []

    def test_example_without_instructions(self) -> None:
        source = AssemblerInput(
            context_messages=[PromptContextMessage(sender="kailai", to="carol", content="Hello")],
            current_message="What do you suggest?",
            team_task=None,
            system_instruction=None,
            instruction_file_text=None,
            max_bytes=MAX_BYTES,
        )

        assert sent(source) == ("Conversation so far:\n- kailai: Hello\n\nYour task:\nWhat do you suggest?", None)

    def test_example_with_only_a_message(self) -> None:
        source = AssemblerInput(
            context_messages=[],
            current_message="Hello Gemini",
            team_task=None,
            system_instruction=None,
            max_bytes=MAX_BYTES,
        )

        assert sent(source) == ("Your task:\nHello Gemini", None)


class TestInstructionsSection:
    def test_includes_system_instruction(self) -> None:
        assert with_instructions("You are Carol", None) == ("Instructions:\nYou are Carol\n\nYour task:\nHello", None)

    def test_includes_instruction_file_text(self) -> None:
        # The text's table drops the section without a system instruction; its code and its cases keep the file.
        assert with_instructions(None, "Be kind") == ("Instructions:\nBe kind\n\nYour task:\nHello", None)

    def test_joins_both_with_double_newline(self) -> None:
        assert with_instructions(" You are Carol\n", "\nBe kind ") == (
            "Instructions:\nYou are Carol\n\nBe kind\n\nYour task:\nHello",
            None,
        )

    def test_omits_when_both_none(self) -> None:
        assert with_instructions(None, None) == ("Your task:\nHello", None)

    def test_omits_when_both_whitespace(self) -> None:
        assert with_instructions("  ", "\n\t") == ("Your task:\nHello", None)

    def test_uses_instructions_header(self) -> None:
        prompt, _ = sent(replace(NOTHING, system_instruction="You are Carol"))

        assert prompt == "Instructions:\nYou are Carol"


class TestConversationSoFarSection:
    def test_formats_messages_as_from_content(self) -> None:
        source = replace(NOTHING, context_messages=EXAMPLE.context_messages[:1])

        assert sent(source) == ("Conversation so far:\n- kailai: Can you design the UI?", None)

    def test_ignores_to_field(self) -> None:
        messages = [PromptContextMessage(sender="kailai", to=to, content="Hello") for to in ("carol", "a, b", None)]

        assert sent(replace(NOTHING, context_messages=messages)) == (
            "Conversation so far:\n- kailai: Hello\n- kailai: Hello\n- kailai: Hello",
            None,
        )

    def test_uses_conversation_so_far_header(self) -> None:
        prompt, _ = sent(replace(NOTHING, context_messages=EXAMPLE.context_messages))

        assert prompt.split("\n")[0] == "Conversation so far:"

    def test_separates_messages_with_newlines(self) -> None:
        prompt, _ = sent(replace(NOTHING, context_messages=EXAMPLE.context_messages))

        assert prompt.split("\n")[1:] == ["- kailai: Can you design the UI?", "- max: I suggest a clean interface"]


class TestEmptySectionHandling:
    def test_omits_instructions_when_no_instructions(self) -> None:
        source = replace(EXAMPLE, system_instruction=None, instruction_file_text=None)

        assert sent(source) == (f"{TEAM_TASK}\n\n{CONVERSATION}\n\n{YOUR_TASK}", None)

    def test_omits_team_task_when_team_task_is_none(self) -> None:
        assert sent(replace(EXAMPLE, team_task=None)) == (f"{INSTRUCTIONS}\n\n{CONVERSATION}\n\n{YOUR_TASK}", None)

    def test_omits_team_task_when_team_task_is_whitespace(self) -> None:
        assert sent(replace(EXAMPLE, team_task=" \n")) == (f"{INSTRUCTIONS}\n\n{CONVERSATION}\n\n{YOUR_TASK}", None)

    def test_omits_conversation_so_far_when_context_messages_is_empty(self) -> None:
        assert sent(replace(EXAMPLE, context_messages=[])) == (PROMPT_WITHOUT_CONTEXT, None)

    def test_omits_your_task_when_current_message_is_empty(self) -> None:
        assert sent(replace(EXAMPLE, current_message="")) == (
            f"{INSTRUCTIONS}\n\n{TEAM_TASK}\n\n{CONVERSATION}",
            None,
        )

    def test_returns_empty_prompt_when_all_sections_empty(self) -> None:
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

    def test_preserves_instructions_section(self) -> None:
        smallest = f"{INSTRUCTIONS}\n\n{TEAM_TASK}\n\nYour task:\nW"

        assert sent(replace(EXAMPLE, max_bytes=size(smallest))) == (smallest, None)

    def test_preserves_team_task_section(self) -> None:
        smallest = f"{TEAM_TASK}\n\nYour task:\nWh"
        source = replace(EXAMPLE, system_instruction=None, instruction_file_text=None, max_bytes=size(smallest))

        assert sent(source) == (smallest, None)

    def test_truncates_your_task_as_last_resort(self) -> None:
        whole = replace(EXAMPLE, max_bytes=size(PROMPT_WITHOUT_CONTEXT))
        ten_bytes_short = replace(EXAMPLE, max_bytes=size(PROMPT_WITHOUT_CONTEXT) - 10)

        assert sent(whole) == (PROMPT_WITHOUT_CONTEXT, None)
        assert sent(ten_bytes_short) == (
            f"{INSTRUCTIONS}\n\n{TEAM_TASK}\n\nYour task:\nWhat UI framework shou",
            None,
        )

    def test_an_empty_message_needs_no_room(self) -> None:
        fixed = f"{INSTRUCTIONS}\n\n{TEAM_TASK}"

        assert sent(replace(EXAMPLE, current_message="", max_bytes=size(fixed))) == (fixed, None)
        assert sent(replace(NOTHING, max_bytes=0)) == ("", None)

    def test_refuses_when_instructions_and_team_task_alone_do_not_fit(self) -> None:
        # The text does not say what then; the decision is that nothing is sent.
        fixed = f"{INSTRUCTIONS}\n\n{TEAM_TASK}"

        with pytest.raises(PromptTooLarge) as refusal:
            sent(replace(EXAMPLE, max_bytes=size(fixed) - 1))

        assert refusal.value.section_bytes == {
            "system": size(INSTRUCTIONS),
            "team_task": size(TEAM_TASK),
            "context": 0,
            "message": 0,
            "separators": 2,
        }


@pytest.mark.parametrize("content", ["one\ntwo", "note: a: b:", "你好，世界 😀 é", "a[0] [x] {y} %s", "  two  spaces"])
def test_special_characters_are_kept_as_they_are(content: str) -> None:
    source = replace(
        NOTHING,
        context_messages=[PromptContextMessage(sender="max", to="carol", content=content)],
        current_message=f"I say: {content}",
    )

    assert sent(source) == (f"Conversation so far:\n- max: {content}\n\nYour task:\nI say: {content}", None)


# What the text's two tables of comparison say of one and the same input.
ONE_OF_EACH = AssemblerInput(
    system_instruction="Be Carol",
    team_task="Build",
    context_messages=[PromptContextMessage(sender="from", to="to", content="content")],
    current_message="Go",
)


@pytest.mark.parametrize(
    ("assembler", "prompt", "system_flag"),
    [
        (
            ClaudeContextAssembler(),
            "[TEAM_TASK]\nBuild\n\n[CONTEXT]\n- from -> to: content\n\n[MESSAGE]\nGo",
            "Be Carol",
        ),
        (
            CodexContextAssembler(),
            "[SYSTEM]\nBe Carol\n\n[TEAM_TASK]\nBuild\n\n[CONTEXT]\n- from -> to: content\n\n[MESSAGE]\nGo",
            None,
        ),
        (
            GeminiContextAssembler(),
            "Instructions:\nBe Carol\n\nTeam Task:\nBuild\n\nConversation so far:\n- from: content\n\nYour task:\nGo",
            None,
        ),
    ],
    ids=["Claude", "Codex", "Gemini"],
)
def test_the_comparison_of_headers_and_context_lines(
    assembler: ContextAssembler, prompt: str, system_flag: str | None
) -> None:
    output = assembler.assemble(ONE_OF_EACH)

    assert (output.prompt, output.system_flag) == (prompt, system_flag)
