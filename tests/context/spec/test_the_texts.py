"""whitespace="specification" and as_specified=True: all is as the texts' own code has it, with nothing of ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.context.spec import the_texts

from bullpen.context import (
    AssemblerInput,
    ContextManager,
    MessageDraft,
    PromptContextMessage,
    PromptTooLarge,
    Routing,
    Speaker,
    strip_all_markers,
)
from bullpen.context.agent_types import AssemblerSet

PIECES = st.sampled_from(
    [
        *("[FROM:", "[NEXT:", "[TEAM_TASK]", "[TEAM_TA\u017fK]", "[next: a]", "[FROM: x]", "[", "]", "\\[NEXT: a\\]"),
        *(
            "［NEXT：a］",
            "`",
            "```\n",
            "> ",
            "[DROP: a]",
            "[TEAM_TASK: b]",
            "x",
            "很好",
            "\u0131\u212a",
            "- kim -> all: ",
        ),
        *(
            "[MESSAGE]",
            "[CONTEXT]",
            "Your task:",
            "(bullpen: hm)",
            " ",
            "  ",
            "\t",
            "\n",
            "\n\n",
            "\ufeff",
            "\u0085",
            "\u3000",
        ),
    ]
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
NAMES = st.sampled_from(["kim", "max", "小明"])


@given(TEXTS)
def test_markers_are_removed_as_the_texts_remove_them(text: str) -> None:
    assert strip_all_markers(text, "specification") == the_texts.strip_all_markers(text)


@given(
    messages=st.lists(
        st.tuples(NAMES, st.sampled_from(["human", "ai"]), TEXTS, st.lists(NAMES, max_size=3)), min_size=1
    ),
    window=st.integers(0, 7),
)
def test_the_context_is_chosen_as_the_texts_choose_it(
    messages: list[tuple[str, str, str, list[str]]], window: int
) -> None:
    manager = ContextManager(whitespace="specification")
    specified = []
    for name, kind, content, to in messages:
        speaker = Speaker(role_id=name, role_name=name, type=kind)  # type: ignore[arg-type]
        draft = MessageDraft(speaker=speaker, content=content, routing=Routing(resolved_addressees=tuple(to)))
        message_id = manager.add_message(draft).id
        specified.append(the_texts.Message(message_id, content, the_texts.Speaker(name, kind), to))

    given_ = manager.get_context_for_agent("max", "codex", window_size_override=window)
    expected = the_texts.get_context_for_agent(specified, None, window, None, None, 1)

    assert given_.current_message == expected.current_message
    assert [(one.sender, one.to, one.content) for one in given_.context_messages] == [
        (one.from_, one.to, one.content) for one in expected.context_messages
    ]


@given(
    agent_type=st.sampled_from(["claude", "openai-codex", "Gemini", "aider"]),
    messages=st.lists(st.tuples(NAMES, TEXTS), max_size=5),
    current=TEXTS,
    task=st.none() | TEXTS,
    system=st.none() | TEXTS,
    file_text=st.none() | TEXTS,
    names=st.lists(NAMES),
    max_bytes=st.integers(0, 400),
)
def test_prompts_are_put_together_and_cut_as_the_texts_say(
    agent_type: str,
    messages: list[tuple[str, str]],
    current: str,
    task: str | None,
    system: str | None,
    file_text: str | None,
    names: list[str],
    max_bytes: int,
) -> None:
    source = AssemblerInput(
        context_messages=[PromptContextMessage(sender=name, to="all", content=text) for name, text in messages],
        current_message=current,
        team_task=task,
        system_instruction=system,
        instruction_file_text=file_text,
        max_bytes=max_bytes,
        names=names,
    )
    lines = [the_texts.ContextMessage(name, "all", text, "") for name, text in messages]
    specified = the_texts.AssemblerInput(lines, current, task, system, file_text, max_bytes)
    assembler = AssemblerSet(as_specified=True).for_agent(agent_type)
    try:
        expected = the_texts.assemble_prompt(agent_type, specified)
    except ValueError:
        with pytest.raises(PromptTooLarge):
            assembler.assemble(source)
        return

    output = assembler.assemble(source)
    assert (output.prompt, output.system_flag) == expected
