"""The specification's proposal of a prompt builder, sentence by sentence."""

import logging

import pytest
from msgspec.structs import replace

from bullpen.context import ContextManager, PromptContextMessage, PromptInput, PromptTooLarge, build_prompt
from bullpen.messages import MessageDraft, Speaker

MAX_BYTES = 768 * 1024
BUILDER_LOG = "bullpen.context"

EXAMPLE = PromptInput(
    agent_type="openai-codex",
    system_instruction_text="You are Sarah",
    instruction_file_text="Focus on security",
    context_messages=[
        PromptContextMessage(sender="kailai", to="max", content="Please design a feature"),
        PromptContextMessage(sender="max", to="sarah", content="I suggest microservices"),
    ],
    message="What do you think?",
)
SYSTEM = "[SYSTEM]\nYou are Sarah\n\nFocus on security"
CONTEXT = "[CONTEXT]\n- kailai -> max: Please design a feature\n- max -> sarah: I suggest microservices"
MESSAGE = "[MESSAGE]\nWhat do you think?"


def sent(source: PromptInput) -> tuple[str, str | None]:
    output = build_prompt(source)
    return output.prompt, output.system_flag


def size(*texts: str) -> int:
    return sum(len(text.encode()) for text in texts)


class TestSystemInstructionAlwaysArrives:
    @pytest.mark.parametrize(
        ("configured", "file_text", "system_flag"),
        [
            ("You are Max", "Always be helpful", "You are Max\n\nAlways be helpful"),
            ("You are Max", None, "You are Max"),
            ("You are Max", "", "You are Max"),
            (None, "Always be helpful", "Always be helpful"),
            ("  ", "Always be helpful", "Always be helpful"),
            (None, None, None),
        ],
    )
    def test_either_instruction_stands_in_for_a_missing_one(
        self, configured: str | None, file_text: str | None, system_flag: str | None
    ) -> None:
        source = PromptInput(
            agent_type="claude-code",
            system_instruction_text=configured,
            instruction_file_text=file_text,
            message="Hello",
        )

        assert sent(source) == ("[MESSAGE]\nHello", system_flag)

    def test_an_instruction_file_that_could_not_be_read_leaves_more_than_the_message(self) -> None:
        source = replace(EXAMPLE, instruction_file_text=None, context_messages=[])

        assert sent(source) == (f"[SYSTEM]\nYou are Sarah\n\n{MESSAGE}", None)


class TestAgentStrategies:
    def test_claude_takes_the_system_text_as_a_flag(self) -> None:
        source = replace(EXAMPLE, agent_type="claude-code")

        assert sent(source) == (f"{CONTEXT}\n\n{MESSAGE}", "You are Sarah\n\nFocus on security")

    def test_codex_takes_everything_inline(self) -> None:
        assert sent(EXAMPLE) == (f"{SYSTEM}\n\n{CONTEXT}\n\n{MESSAGE}", None)

    def test_gemini_takes_everything_inline(self) -> None:
        # This text gives Gemini the sections of Codex; the later text on the Gemini assembler gives it words.
        expected = """\
Instructions:
You are Sarah

Focus on security

Conversation so far:
- kailai: Please design a feature
- max: I suggest microservices

Your task:
What do you think?"""

        assert sent(replace(EXAMPLE, agent_type="google-gemini")) == (expected, None)

    def test_any_other_agent_takes_plain_text_inline(self) -> None:
        expected = """\
You are Sarah

Focus on security

kailai: Please design a feature
max: I suggest microservices

What do you think?"""

        assert sent(replace(EXAMPLE, agent_type="any other agent")) == (expected, None)

    def test_any_other_agent_is_warned_about(self, caplog: pytest.LogCaptureFixture) -> None:
        build_prompt(replace(EXAMPLE, agent_type="an agent to warn about"))

        type_and_normalized = '"an agent to warn about" (normalized: "an agent to warn about")'
        assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
            (logging.WARNING, f"[ContextManager] Unknown agentType {type_and_normalized}, using PlainTextAssembler")
        ]

    @pytest.mark.parametrize(
        ("short", "full"), [("claude", "claude-code"), ("codex", "openai-codex"), ("gemini", "google-gemini")]
    )
    def test_short_names_do_as_well(self, short: str, full: str) -> None:
        assert build_prompt(replace(EXAMPLE, agent_type=short)) == build_prompt(replace(EXAMPLE, agent_type=full))

    def test_the_team_task_stands_between_system_and_context(self) -> None:
        # This text knows no team task; the texts on the assemblers give it its place.
        source = replace(EXAMPLE, team_task="Build")

        assert sent(source) == (f"{SYSTEM}\n\n[TEAM_TASK]\nBuild\n\n{CONTEXT}\n\n{MESSAGE}", None)


class TestContext:
    def test_says_from_whom_and_to_whom(self) -> None:
        source = PromptInput(
            agent_type="codex",
            context_messages=[
                PromptContextMessage(sender="kailai", to="max", content="Hi"),
                PromptContextMessage(sender="max", content="Hello, everyone"),
            ],
            message="Go",
        )

        assert sent(source) == ("[CONTEXT]\n- kailai -> max: Hi\n- max -> all: Hello, everyone\n\n[MESSAGE]\nGo", None)

    def test_holds_the_last_five_messages_by_default(self) -> None:
        manager = ContextManager()
        kailai = Speaker(role_id="kailai", role_name="kailai", type="human")
        for number in range(1, 8):
            manager.add_message(MessageDraft(content=str(number), speaker=kailai))
        prepared = manager.get_context_for_agent("max", "codex")

        source = PromptInput(
            agent_type="codex", context_messages=prepared.context_messages, message=prepared.current_message
        )

        lines = "\n".join(f"- kailai -> all: {number}" for number in range(2, 7))
        assert sent(source) == (f"[CONTEXT]\n{lines}\n\n[MESSAGE]\n7", None)


class TestLengthLimit:
    def test_is_768_kb_for_every_agent(self) -> None:
        assert EXAMPLE.max_bytes == 786_432

    @pytest.mark.parametrize("agent_type", ["claude", "codex", "gemini", "an agent with a limit"])
    def test_holds_for_what_is_sent_altogether(self, agent_type: str) -> None:
        # The text says less than 768 KB; the decision is at most.
        messages = [PromptContextMessage(sender="max", to="sarah", content="你好" * 10_000) for _ in range(20)]

        output = build_prompt(replace(EXAMPLE, agent_type=agent_type, context_messages=messages, window=None))

        assert size(output.prompt, output.system_flag or "") == output.report.total_bytes <= MAX_BYTES
        assert (output.report.kept_messages, output.report.dropped_messages) == (13, 7)

    def test_a_prompt_of_exactly_the_limit_is_sent_whole(self) -> None:
        whole = f"{SYSTEM}\n\n{CONTEXT}\n\n{MESSAGE}"

        assert sent(replace(EXAMPLE, max_bytes=size(whole), max_system_bytes=1000)) == (whole, None)

    def test_context_loses_whole_messages_from_the_oldest_on(self) -> None:
        whole = f"{SYSTEM}\n\n{CONTEXT}\n\n{MESSAGE}"
        trimmed = f"{SYSTEM}\n\n[CONTEXT]\n- max -> sarah: I suggest microservices\n\n{MESSAGE}"

        assert sent(replace(EXAMPLE, max_bytes=size(whole) - 1, max_system_bytes=1000)) == (trimmed, None)

    def test_the_message_is_cut_when_no_context_is_left(self) -> None:
        uncut = f"{SYSTEM}\n\n{MESSAGE}"
        source = replace(EXAMPLE, max_bytes=size(uncut) - 7, max_system_bytes=1000)

        assert sent(source) == (f"{SYSTEM}\n\n[MESSAGE]\nWhat do you", None)

    def test_an_error_and_no_silent_cut_when_the_least_does_not_fit(self) -> None:
        with pytest.raises(PromptTooLarge) as refusal:
            build_prompt(replace(EXAMPLE, max_bytes=30, max_system_bytes=1000))

        assert str(refusal.value) == (
            "The prompt for openai-codex does not fit into 30 bytes (system 41). "
            "Shorten the instructions or the team task, or raise max_bytes."
        )

    def test_an_error_when_the_message_may_not_be_cut(self) -> None:
        fitting = replace(EXAMPLE, max_bytes=size(f"{SYSTEM}\n\n{MESSAGE}"), max_system_bytes=1000)

        assert build_prompt(fitting, overflow="error").prompt == f"{SYSTEM}\n\n{MESSAGE}"
        with pytest.raises(PromptTooLarge) as refusal:
            build_prompt(replace(fitting, max_bytes=fitting.max_bytes - 1), overflow="error")

        assert str(refusal.value) == (
            "The prompt for openai-codex does not fit into 70 bytes (system 41, message 18). "
            "Shorten the message or the instructions, or raise max_bytes."
        )


class TestLongInstructionFile:
    """The instruction file is shortened, head and tail kept and the place marked; the configured text is not."""

    LONG = replace(
        EXAMPLE,
        agent_type="claude",
        system_instruction_text="You are Max",
        instruction_file_text="h" * 100 + "m" * 100 + "t" * 100,
        context_messages=[],
    )

    def test_loses_its_middle(self) -> None:
        mark = "\n\n[... 256 bytes of the instruction file left out ...]\n\n"

        output = build_prompt(replace(self.LONG, max_system_bytes=113))

        assert output.system_flag == f"You are Max\n\n{'h' * 30}{mark}{'t' * 14}"
        assert output.prompt == MESSAGE
        assert (output.report.section_bytes["system"], output.report.instruction_bytes_cut) == (113, 256)

    def test_is_whole_when_the_system_text_has_exactly_its_limit(self) -> None:
        whole = f"You are Max\n\n{self.LONG.instruction_file_text}"

        assert sent(replace(self.LONG, max_system_bytes=size(whole))) == (MESSAGE, whole)

    def test_is_shortened_when_the_system_text_has_one_byte_too_many(self) -> None:
        head, tail = "h" * 100 + "m" * 62, "t" * 81
        mark = "\n\n[... 57 bytes of the instruction file left out ...]\n\n"

        assert sent(replace(self.LONG, max_system_bytes=312)) == (MESSAGE, f"You are Max\n\n{head}{mark}{tail}")

    def test_is_whole_when_it_is_alone_and_has_exactly_the_limit(self) -> None:
        source = replace(self.LONG, system_instruction_text=None, max_system_bytes=300)

        assert sent(source) == (MESSAGE, self.LONG.instruction_file_text)

    def test_the_configured_instruction_is_untouched_when_it_is_too_long_itself(self) -> None:
        configured = "Keep me. " * 20 + "All of me."

        output = build_prompt(replace(self.LONG, system_instruction_text=configured, max_system_bytes=100))

        short = f"{'h' * 22}\n\n[... 268 bytes of the instruction file left out ...]\n\n{'t' * 10}"
        assert (output.system_flag, output.report.instruction_bytes_cut) == (f"{configured}\n\n{short}", 268)

    def test_has_half_of_the_bytes_by_default(self) -> None:
        whole = f"You are Max\n\n{self.LONG.instruction_file_text}"

        assert sent(replace(self.LONG, max_bytes=2 * size(whole))) == (MESSAGE, whole)
        assert build_prompt(replace(self.LONG, max_bytes=2 * size(whole) - 2)).report.instruction_bytes_cut > 0


class TestDebugOutput:
    def test_shows_what_is_sent(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, logger=BUILDER_LOG)
        source = PromptInput(agent_type="claude", system_instruction_text="You are Max", message="Hello")

        build_prompt(source)

        text = (
            "[Debug][Send] agent=claude-code bytes=26 of 786432 cuts=none\n"
            "prompt:\n[MESSAGE]\nHello\nsystemFlag:\nYou are Max"
        )
        assert [(record.levelno, record.getMessage()) for record in caplog.records] == [(logging.DEBUG, text)]

    def test_shows_what_was_cut(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG, logger=BUILDER_LOG)
        uncut = "[SYSTEM]\n\n\n[MESSAGE]\nWhat do you think?"
        source = replace(
            EXAMPLE,
            system_instruction_text="You are Max",
            instruction_file_text="x" * 300,
            max_bytes=size(uncut) + 113 - 7,
            max_system_bytes=113,
        )

        output = build_prompt(source)

        mark = "[... 256 bytes of the instruction file left out ...]"
        prompt = f"[SYSTEM]\nYou are Max\n\n{'x' * 30}\n\n{mark}\n\n{'x' * 14}\n\n[MESSAGE]\nWhat do you"
        cuts = (
            "SYSTEM instruction file shortened by 256 bytes; CONTEXT trimmed to 0 of 2 messages; MESSAGE cut by 7 bytes"
        )
        assert output.prompt == prompt
        assert caplog.messages == [f"[Debug][Send] agent=openai-codex bytes=145 of 145 cuts={cuts}\nprompt:\n{prompt}"]

    def test_is_silent_otherwise(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, logger=BUILDER_LOG)

        build_prompt(EXAMPLE)

        assert caplog.messages == []
