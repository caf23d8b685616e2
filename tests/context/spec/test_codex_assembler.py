"""What the specification's tables of comparison say of the Codex assembler, which has no text of its own."""

import pytest
from msgspec.structs import replace

from bullpen.context import AssemblerInput, CodexContextAssembler, ContextManager, PromptContextMessage, PromptTooLarge

MAX_BYTES = 768 * 1024

# The complete example of the text on Claude, in the format the tables give Codex.
EXAMPLE = AssemblerInput(
    context_messages=[
        PromptContextMessage(sender="kailai", to="max", content="Hi, please help design a feature"),
        PromptContextMessage(sender="max", to="sarah", content="I suggest using a microservice architecture"),
    ],
    current_message="What do you think about this approach?",
    team_task="Design a user authentication system",
    system_instruction="You are Sarah, a backend engineer",
    instruction_file_text="Focus on security and scalability",
    max_bytes=MAX_BYTES,
)
SYSTEM = "[SYSTEM]\nYou are Sarah, a backend engineer\n\nFocus on security and scalability"
TASK = "[TEAM_TASK]\nDesign a user authentication system"
OLDEST_LINE = "- kailai -> max: Hi, please help design a feature"
NEWEST_LINE = "- max -> sarah: I suggest using a microservice architecture"
CONTEXT = f"[CONTEXT]\n{OLDEST_LINE}\n{NEWEST_LINE}"
MESSAGE = "[MESSAGE]\nWhat do you think about this approach?"
PROMPT = f"{SYSTEM}\n\n{TASK}\n\n{CONTEXT}\n\n{MESSAGE}"
PROMPT_WITHOUT_OLDEST = f"{SYSTEM}\n\n{TASK}\n\n[CONTEXT]\n{NEWEST_LINE}\n\n{MESSAGE}"
PROMPT_WITHOUT_CONTEXT = f"{SYSTEM}\n\n{TASK}\n\n{MESSAGE}"

NOTHING = AssemblerInput(context_messages=[], current_message="", team_task=None, max_bytes=MAX_BYTES)
HELLO = replace(NOTHING, current_message="Hello")


def sent(source: AssemblerInput) -> tuple[str, str | None]:
    output = CodexContextAssembler().assemble(source)
    return output.prompt, output.system_flag


def size(text: str) -> int:
    return len(text.encode())


def test_get_agent_type_returns_openai_codex() -> None:
    assert CodexContextAssembler().get_agent_type() == "openai-codex"


@pytest.mark.parametrize("agent_type", ["codex", "openai-codex", "Codex"])
def test_context_manager_uses_it_for_codex(agent_type: str) -> None:
    assert ContextManager().assemble_prompt(agent_type, EXAMPLE) == CodexContextAssembler().assemble(EXAMPLE)


class TestAssemble:
    def test_produces_correct_format_with_all_sections(self) -> None:
        expected = """\
[SYSTEM]
You are Sarah, a backend engineer

Focus on security and scalability

[TEAM_TASK]
Design a user authentication system

[CONTEXT]
- kailai -> max: Hi, please help design a feature
- max -> sarah: I suggest using a microservice architecture

[MESSAGE]
What do you think about this approach?"""

        assert sent(EXAMPLE) == (expected, None)

    def test_returns_none_system_flag(self) -> None:
        assert CodexContextAssembler().assemble(EXAMPLE).system_flag is None

    def test_uses_correct_section_markers_in_order(self) -> None:
        prompt, _ = sent(EXAMPLE)

        markers = [line for line in prompt.split("\n") if line.startswith("[")]

        assert markers == ["[SYSTEM]", "[TEAM_TASK]", "[CONTEXT]", "[MESSAGE]"]

    def test_uses_correct_context_message_format(self) -> None:
        source = replace(NOTHING, context_messages=[PromptContextMessage(sender="from", to="to", content="content")])

        assert sent(source) == ("[CONTEXT]\n- from -> to: content", None)

    def test_a_message_without_addressee_goes_to_all(self) -> None:
        # The texts leave a missing `to` open; the decision is that it prints as all.
        source = replace(NOTHING, context_messages=[PromptContextMessage(sender="max", content="Hi")])

        assert sent(source) == ("[CONTEXT]\n- max -> all: Hi", None)


@pytest.mark.parametrize(
    ("system_instruction", "instruction_file_text", "prompt"),
    [
        (None, None, "[MESSAGE]\nHello"),
        ("You are Max", None, "[SYSTEM]\nYou are Max\n\n[MESSAGE]\nHello"),
        (None, "Always be helpful", "[SYSTEM]\nAlways be helpful\n\n[MESSAGE]\nHello"),
        ("You are Max", "Always be helpful", "[SYSTEM]\nYou are Max\n\nAlways be helpful\n\n[MESSAGE]\nHello"),
        ("  ", "text", "[SYSTEM]\ntext\n\n[MESSAGE]\nHello"),
        (" ", "\n", "[MESSAGE]\nHello"),
    ],
)
def test_system_section(system_instruction: str | None, instruction_file_text: str | None, prompt: str) -> None:
    source = replace(HELLO, system_instruction=system_instruction, instruction_file_text=instruction_file_text)

    assert sent(source) == (prompt, None)


class TestEmptySectionHandling:
    def test_omits_system_when_no_instructions(self) -> None:
        source = replace(EXAMPLE, system_instruction=None, instruction_file_text=None)

        assert sent(source) == (f"{TASK}\n\n{CONTEXT}\n\n{MESSAGE}", None)

    def test_omits_team_task_when_team_task_is_none(self) -> None:
        assert sent(replace(EXAMPLE, team_task=None)) == (f"{SYSTEM}\n\n{CONTEXT}\n\n{MESSAGE}", None)

    def test_omits_context_when_context_messages_is_empty(self) -> None:
        assert sent(replace(EXAMPLE, context_messages=[])) == (PROMPT_WITHOUT_CONTEXT, None)

    def test_omits_message_when_current_message_is_empty(self) -> None:
        assert sent(replace(EXAMPLE, current_message="")) == (f"{SYSTEM}\n\n{TASK}\n\n{CONTEXT}", None)

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

    def test_truncates_message_as_last_resort(self) -> None:
        ten_bytes_short = replace(EXAMPLE, max_bytes=size(PROMPT_WITHOUT_CONTEXT) - 10)

        assert sent(ten_bytes_short) == (f"{SYSTEM}\n\n{TASK}\n\n[MESSAGE]\nWhat do you think about this", None)

    def test_preserves_system_and_team_task_sections(self) -> None:
        smallest = f"{SYSTEM}\n\n{TASK}\n\n[MESSAGE]\nW"

        assert sent(replace(EXAMPLE, max_bytes=size(smallest))) == (smallest, None)

    def test_an_empty_message_needs_no_room(self) -> None:
        fixed = f"{SYSTEM}\n\n{TASK}"

        assert sent(replace(EXAMPLE, current_message="", max_bytes=size(fixed))) == (fixed, None)
        assert sent(replace(NOTHING, max_bytes=0)) == ("", None)

    def test_refuses_when_system_and_team_task_alone_do_not_fit(self) -> None:
        # The texts do not say what then; the decision is that nothing is sent.
        with pytest.raises(PromptTooLarge) as refusal:
            sent(replace(EXAMPLE, max_bytes=size(f"{SYSTEM}\n\n{TASK}") - 1))

        assert refusal.value.section_bytes == {
            "system": size(SYSTEM),
            "team_task": size(TASK),
            "context": 0,
            "message": 0,
            "separators": 2,
        }
