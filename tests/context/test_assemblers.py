"""What every layout holds to: the budget, the order of cuts, the report, and headings nobody can forge."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bullpen.context import (
    AssemblerInput,
    AssemblerOutput,
    ClaudeContextAssembler,
    CodexContextAssembler,
    ContextAssembler,
    GeminiContextAssembler,
    PlainTextAssembler,
    PromptContextMessage,
    PromptLayout,
    PromptTooLarge,
)

ASSEMBLERS = [ClaudeContextAssembler(), CodexContextAssembler(), GeminiContextAssembler(), PlainTextAssembler()]
any_assembler = pytest.mark.parametrize("assembler", ASSEMBLERS, ids=lambda a: a.get_agent_type())


def history(*contents: str) -> list[PromptContextMessage]:
    return [PromptContextMessage(sender="max", to="sarah", content=content) for content in contents]


def sent_bytes(output: AssemblerOutput) -> int:
    return len(output.prompt.encode()) + len((output.system_flag or "").encode())


def fitting(source: AssemblerInput, max_bytes: int) -> AssemblerInput:
    return msgspec.structs.replace(source, max_bytes=max_bytes)


WHOLE = AssemblerInput(
    context_messages=history("eins", "zwei 二", "drei"),
    current_message="What now, 😀?",
    team_task="Build it",
    system_instruction="You are Max",
    instruction_file_text="Be brief",
)


@any_assembler
def test_everything_fits_into_exactly_its_size(assembler: ContextAssembler) -> None:
    size = sent_bytes(assembler.assemble(WHOLE))

    exact = assembler.assemble(fitting(WHOLE, size))
    one_short = assembler.assemble(fitting(WHOLE, size - 1))

    assert exact.report.cuts == ()
    assert one_short.report.dropped_ids == ("#1",)
    assert one_short.report.kept_ids == ("#2", "#3")


@any_assembler
def test_the_order_of_cuts(assembler: ContextAssembler) -> None:
    whole = assembler.assemble(WHOLE)
    states = []
    for max_bytes in range(sent_bytes(whole), 0, -1):
        try:
            output = assembler.assemble(fitting(WHOLE, max_bytes))
        except PromptTooLarge:
            states.append("refused")
            continue
        assert sent_bytes(output) <= max_bytes
        assert (output.report.dropped_messages == 3) or output.report.message_bytes_cut == 0
        states.append(
            f"dropped {output.report.dropped_messages}, {'cut' if output.report.message_bytes_cut else 'whole'}"
        )

    in_order = list(dict.fromkeys(states))
    assert in_order == [
        "dropped 0, whole",
        "dropped 1, whole",
        "dropped 2, whole",
        "dropped 3, whole",
        "dropped 3, cut",
        "refused",
    ]
    assert sorted(states, key=in_order.index) == states


@any_assembler
def test_system_text_and_task_are_never_cut(assembler: ContextAssembler) -> None:
    without_context = msgspec.structs.replace(WHOLE, context_messages=[])
    size = sent_bytes(assembler.assemble(without_context))

    output = assembler.assemble(fitting(WHOLE, size - 4))

    sent = (output.system_flag or "") + output.prompt
    assert "You are Max\n\nBe brief" in sent
    assert "Build it" in sent
    assert output.report.message_bytes_cut == 5


@any_assembler
def test_refusing_says_how_large_everything_is(assembler: ContextAssembler) -> None:
    with pytest.raises(
        PromptTooLarge, match=r"does not fit into 12 bytes \(system .*Shorten the instructions"
    ) as raised:
        assembler.assemble(fitting(WHOLE, 12))

    assert raised.value.agent_type == assembler.get_agent_type()
    assert raised.value.max_bytes == 12
    assert raised.value.section_bytes["system"] >= 21


@any_assembler
def test_overflow_error_refuses_to_cut_the_message(assembler: ContextAssembler) -> None:
    source = AssemblerInput(current_message="x" * 100, max_bytes=50)

    assert assembler.assemble(source).report.message_bytes_cut > 0
    with pytest.raises(PromptTooLarge, match="message 100"):
        assembler.assemble(source, overflow="error")


@any_assembler
def test_overflow_error_still_drops_old_context(assembler: ContextAssembler) -> None:
    source = AssemblerInput(context_messages=history("x" * 100), current_message="hi", max_bytes=50)

    assert assembler.assemble(source, overflow="error").report.dropped_messages == 1


TEXTS = st.text(st.characters(exclude_categories=[]), max_size=40)
MESSAGES = st.builds(PromptContextMessage, sender=TEXTS, to=st.none() | TEXTS, content=TEXTS)
SOURCES = st.builds(
    AssemblerInput,
    context_messages=st.lists(MESSAGES, max_size=8),
    current_message=TEXTS,
    team_task=st.none() | TEXTS,
    system_instruction=st.none() | TEXTS,
    instruction_file_text=st.none() | TEXTS,
    max_bytes=st.integers(0, 400),
    current_from=st.none() | TEXTS,
)


@any_assembler
@given(source=SOURCES)
def test_the_budget_holds_and_the_report_is_exact(assembler: ContextAssembler, source: AssemblerInput) -> None:
    try:
        output = assembler.assemble(source)
    except PromptTooLarge:
        return

    report = output.report
    assert report.total_bytes == sent_bytes(output) <= source.max_bytes
    assert report.kept_messages + report.dropped_messages == len(source.context_messages)
    assert "\0" not in output.prompt


@any_assembler
@given(source=SOURCES)
def test_no_more_is_dropped_than_must_be(assembler: ContextAssembler, source: AssemblerInput) -> None:
    try:
        output = assembler.assemble(source)
    except PromptTooLarge:
        return
    dropped = output.report.dropped_messages
    if not dropped:
        return

    with_one_more = msgspec.structs.replace(
        source, context_messages=source.context_messages[dropped - 1 :], max_bytes=10**6
    )
    assert sent_bytes(assembler.assemble(with_one_more)) > source.max_bytes


HOSTILE = st.lists(
    st.sampled_from(
        [*(h for a in ASSEMBLERS for h in a.layout.headings), "\n", "\r", "\u2028", " ", "x", "- a -> b: "]
    ),
    max_size=12,
).map("".join)


@any_assembler
@given(text=HOSTILE, name=HOSTILE, room=st.integers(0, 300))
def test_headings_cannot_be_forged(assembler: ContextAssembler, text: str, name: str, room: int) -> None:
    source = AssemblerInput(
        context_messages=[PromptContextMessage(sender=name, to=name, content=text)],
        current_message=text,
        team_task="Build it",
        system_instruction="You are Max",
        max_bytes=room,
        current_from=name or None,
    )
    try:
        output = assembler.assemble(source)
    except PromptTooLarge:
        return

    lines = [line.rstrip() for line in re.split("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", output.prompt)]
    for heading in assembler.layout.headings:
        assert lines.count(heading) <= 1


def test_only_the_layouts_own_headings_are_indented() -> None:
    source = AssemblerInput(current_message="Your task:\n[SYSTEM]\n [MESSAGE]\n[MESSAGE]x\n[MESSAGE]\nend")

    assert ClaudeContextAssembler().assemble(source).prompt == (
        "[MESSAGE]\nYour task:\n[SYSTEM]\n [MESSAGE]\n[MESSAGE]x\n  [MESSAGE]\nend"
    )
    assert CodexContextAssembler().assemble(source).prompt.splitlines()[2] == "  [SYSTEM]"
    assert GeminiContextAssembler().assemble(source).prompt.splitlines()[1] == "  Your task:"
    assert PlainTextAssembler().assemble(source).prompt == source.current_message


def test_the_flag_that_travels_beside_the_prompt_is_untouched() -> None:
    source = AssemblerInput(system_instruction="[MESSAGE]\nis a heading")

    assert ClaudeContextAssembler().assemble(source).system_flag == "[MESSAGE]\nis a heading"


def test_text_is_joined_never_formatted() -> None:
    tricky = "{sender} {0} %s $& \\1 {content}"
    source = AssemblerInput(
        context_messages=[PromptContextMessage(sender="{content}", to="{to}", content=tricky)], current_message=tricky
    )

    assert ClaudeContextAssembler().assemble(source).prompt == (
        f"[CONTEXT]\n- {{content}} -> {{to}}: {tricky}\n\n[MESSAGE]\n{tricky}"
    )


@pytest.mark.parametrize(
    ("assembler", "prompt"),
    [
        (ClaudeContextAssembler(), "[MESSAGE]\nkailai -> max: hi"),
        (CodexContextAssembler(), "[MESSAGE]\nkailai -> max: hi"),
        (GeminiContextAssembler(), "Your task:\nkailai: hi"),
        (PlainTextAssembler(), "kailai: hi"),
    ],
    ids=["claude", "codex", "gemini", "plain"],
)
def test_the_speaker_of_the_current_message(assembler: ContextAssembler, prompt: str) -> None:
    source = AssemblerInput(current_message="hi", current_from="kailai", current_to="max")

    assert assembler.assemble(source).prompt == prompt


def test_an_addressee_nobody_named_prints_all() -> None:
    message = PromptContextMessage(sender="max", content="hi")
    source = AssemblerInput(context_messages=[message], current_message="yes", current_from="kailai")

    assert (
        CodexContextAssembler().assemble(source).prompt
        == "[CONTEXT]\n- max -> all: hi\n\n[MESSAGE]\nkailai -> all: yes"
    )


def test_a_new_layout_is_five_strings() -> None:
    class Xml(ContextAssembler):
        agent_type = "xml"
        layout = PromptLayout(
            system_header="<system>",
            team_task_header="<task>",
            context_header="<history>",
            message_header="<message>",
            context_line="<m from={sender}>{content}</m>",
        )

    output = Xml().assemble(AssemblerInput(context_messages=history("a", "b"), current_message="c", max_bytes=50))

    assert output.prompt == "<history>\n<m from=max>b</m>\n\n<message>\nc"
    assert output.report.total_bytes == 40


def test_lines_are_remembered_and_still_right_when_the_cache_is_full() -> None:
    assembler = PlainTextAssembler()
    source = AssemblerInput(context_messages=history(*(str(n) * 1000 for n in range(3000))), max_bytes=1000)
    whole = AssemblerInput(context_messages=source.context_messages, max_bytes=100_000_000)

    assert assembler.assemble(source).prompt == ""
    first, second = assembler.assemble(whole), assembler.assemble(whole)

    assert first == second
    assert first.report.kept_messages == 3000


@any_assembler
def test_what_a_message_asks_to_be_shown_is_whole_or_not_there(assembler: ContextAssembler) -> None:
    """Half of a diff would be worse than none, and the agent is told."""
    source = AssemblerInput(current_message="Look.", shown=("x" * 300, "y" * 300), remark="Beware.", names=("max",))

    whole = assembler.assemble(fitting(source, 2_000)).prompt
    without = assembler.assemble(fitting(source, 500)).prompt

    assert re.search(
        r"Look\.\n\n\(bullpen: [^\n]*\)\nx{300}\n\n\(bullpen: [^\n]*\)\ny{300}\n\n\(bullpen: Beware\.\)", whole
    )
    assert "Look." in without
    assert "x" not in without.replace("max", "")
    assert "(bullpen: There is no room for what was asked to be shown.)\n\n(bullpen: Beware.)" in without
