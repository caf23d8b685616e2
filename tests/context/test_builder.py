"""build_prompt: instructions that cannot erase each other, visible cuts, one record that explains."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.context import PromptContextMessage, PromptInput, PromptTooLarge, build_prompt

KIB = 1024


def prompt_input(**fields: object) -> PromptInput:
    return PromptInput(**{"agent_type": "codex", "message": "go", **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("configured", "from_file", "system"),
    [
        ("You are Max", "Be brief", "You are Max\n\nBe brief"),
        ("You are Max", None, "You are Max"),
        ("You are Max", "  \n", "You are Max"),
        (None, "Be brief", "Be brief"),
        ("", "Be brief", "Be brief"),
        (None, None, None),
    ],
)
def test_neither_instruction_erases_the_other(
    configured: str | None, from_file: str | None, system: str | None
) -> None:
    output = build_prompt(
        prompt_input(agent_type="claude", system_instruction_text=configured, instruction_file_text=from_file)
    )

    assert output.system_flag == system
    assert output.prompt == "[MESSAGE]\ngo"


def test_an_instruction_file_within_the_limit_is_untouched() -> None:
    file_text = "x" * (300 * KIB)

    output = build_prompt(prompt_input(agent_type="claude", instruction_file_text=file_text))

    assert output.system_flag == file_text
    assert output.report.instruction_bytes_cut == 0


def test_a_file_larger_than_the_whole_budget_is_shortened_in_the_middle() -> None:
    file_text = "开头" + "很" * (KIB * KIB) + "结尾"

    output = build_prompt(
        prompt_input(agent_type="claude", system_instruction_text="You are Max", instruction_file_text=file_text)
    )

    flag = output.system_flag or ""
    assert flag.startswith("You are Max\n\n开头很")
    assert flag.endswith("很结尾")
    assert f"[... {output.report.instruction_bytes_cut:,} bytes of the instruction file left out ...]" in flag
    assert 383 * KIB < len(flag.encode()) <= 384 * KIB
    assert output.report.cuts == (
        f"SYSTEM instruction file shortened by {output.report.instruction_bytes_cut:,} bytes",
    )


def test_a_configured_text_over_the_limit_is_untouched_and_leaves_the_file_a_share() -> None:
    configured = "c" * 600

    output = build_prompt(
        prompt_input(
            agent_type="claude",
            system_instruction_text=configured,
            instruction_file_text="HEAD" + "f" * 5000 + "TAIL",
            max_bytes=2000,
            max_system_bytes=800 - 300,
        )
    )

    assert (output.system_flag or "").startswith(f"{configured}\n\n")
    assert "left out ...]" in (output.system_flag or "")


def test_instructions_that_cannot_be_shortened_enough_are_refused() -> None:
    with pytest.raises(PromptTooLarge, match=r"openai-codex does not fit into 1,000 bytes \(system"):
        build_prompt(prompt_input(system_instruction_text="c" * 1001, instruction_file_text="f" * 1001, max_bytes=1000))


def test_overflow_error_is_passed_on() -> None:
    with pytest.raises(PromptTooLarge):
        build_prompt(prompt_input(message="x" * 1000, max_bytes=100), overflow="error")


@given(
    configured=st.none() | st.text(max_size=200),
    from_file=st.none() | st.text(max_size=2000),
    max_bytes=st.integers(0, 3000),
)
def test_the_budget_holds(configured: str | None, from_file: str | None, max_bytes: int) -> None:
    source = prompt_input(
        agent_type="claude",
        system_instruction_text=configured,
        instruction_file_text=from_file,
        max_bytes=max_bytes,
        message="hello",
    )
    try:
        output = build_prompt(source)
    except PromptTooLarge:
        return

    sent = len(output.prompt.encode()) + len((output.system_flag or "").encode())
    assert sent == output.report.total_bytes <= max_bytes
    if from_file and (stripped := from_file.strip()):
        assert output.report.instruction_bytes_cut or stripped.replace("\0", "␀") in (output.system_flag or "")


def test_one_debug_record_explains_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    history = [PromptContextMessage(sender="max", to="sarah", content=word * 30) for word in ("a", "b", "c")]

    output = build_prompt(
        prompt_input(context_messages=history, system_instruction_text="You are Sarah", max_bytes=150)
    )

    (record,) = caplog.records
    assert record.levelno == logging.DEBUG
    assert record.getMessage().startswith(
        "[Debug][Send] agent=openai-codex bytes=141 of 150 cuts=CONTEXT trimmed to 2 of 3"
    )
    assert output.prompt in record.getMessage()
    assert record.sent == {  # type: ignore[attr-defined]
        "agent_type": "openai-codex",
        "total_bytes": 141,
        "max_bytes": 150,
        "section_bytes": {"system": 22, "team_task": 0, "context": 103, "message": 12, "separators": 4},
        "kept_ids": ("#2", "#3"),
        "dropped_messages": 1,
        "message_bytes_cut": 0,
        "instruction_bytes_cut": 0,
        "prompt": output.prompt,
        "system_flag": None,
    }


def test_text_is_never_logged_above_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    build_prompt(prompt_input(agent_type="never-heard-of", message="a secret"))

    assert "a secret" not in caplog.text
    assert caplog.messages == [
        '[ContextManager] Unknown agentType "never-heard-of" (normalized: "never-heard-of"), using PlainTextAssembler'
    ]
