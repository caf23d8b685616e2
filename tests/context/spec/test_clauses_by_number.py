"""What no other test holds of the specification. Each test has the number of its clause in clauses.json."""

import asyncio
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import msgspec
import pytest
from msgspec.structs import replace
from tests.context.spec.test_names import CODE, rows

from bullpen.agents import agent_spec, known_agents, run_turn
from bullpen.agents.claude_rules import OFFERED
from bullpen.agents.gemini import GeminiParser
from bullpen.context import (
    AssemblerInput,
    AssemblerOutput,
    ClaudeContextAssembler,
    CodexContextAssembler,
    ContextAssembler,
    ContextManager,
    GeminiContextAssembler,
    PlainTextAssembler,
    PromptContextMessage,
    PromptInput,
    PromptOutput,
    build_prompt,
    read_markers,
    strip_all_markers,
)
from bullpen.context.assemblers import Overflow
from bullpen.context.manager import MAX_TEAM_TASK_BYTES
from bullpen.context.prompt import DEFAULT_CONTEXT_WINDOW_SIZE, DEFAULT_MAX_BYTES
from bullpen.context.views import Window
from bullpen.messages import MessageDraft, Speaker
from bullpen.store.packing import packed_text, unpacked_text
from bullpen.team.team import SMALLEST_WINDOW, Member
from bullpen.turn_events import Event, Notice, TextDelta

ASSEMBLERS = (ClaudeContextAssembler, CodexContextAssembler, GeminiContextAssembler, PlainTextAssembler)
KAILAI = Speaker(role_id="kailai", role_name="kailai", type="human")


@pytest.mark.parametrize(
    ("specified", "here"),
    [
        pytest.param(
            "src/context/assemblers/ClaudeContextAssembler.ts", ["src/bullpen/context/assemblers.py"], id="005"
        ),
        pytest.param("buildSystemFlag", ["bullpen.context.assemblers.join_instructions"], id="028"),
        pytest.param("trimContextToFit", ["bullpen.context.budget.newest_that_fit"], id="031"),
        pytest.param("trimContextToFitPlainText", ["bullpen.context.budget.newest_that_fit"], id="072"),
        pytest.param("trimContextToFitGemini", ["bullpen.context.budget.newest_that_fit"], id="102"),
        pytest.param(
            "JsonlMessageFormatter",
            ["bullpen.agents.transcript.Transcript", "bullpen.agents.gemini.GeminiParser"],
            id="113",
        ),
        pytest.param("ContextManagerOptions", ["bullpen.context.ContextManager"], id="147"),
        pytest.param("IContextProvider", ["bullpen.context.ContextManager"], id="155"),
        pytest.param(
            "ConversationCoordinator",
            ["bullpen.conversation.conversation.Conversation", "src/bullpen/conversation/conversation.py"],
            id="214 coordinator",
        ),
        pytest.param("AgentManager", ["bullpen.agents.run_turn"], id="214 agents"),
        pytest.param("SessionUtils", ["bullpen.exchange.importing", "bullpen.exchange.as_json"], id="236 sessions"),
        pytest.param("MessageRouter", ["bullpen.routing.router.Router"], id="236 router"),
        pytest.param("prepareMessage", [], id="264"),
        pytest.param("ConversationStarter", ["bullpen.app.open_team"], id="265 starter"),
        pytest.param("Adapter", ["bullpen.agents.AgentSpec", "src/bullpen/agents"], id="265 adapter"),
    ],
)
def test_a_name_that_changed_leads_to_what_took_its_place(specified: str, here: list[str]) -> None:
    assert [CODE.findall(row.here) for row in rows() if specified in CODE.findall(row.specified)] == [here]


def test_006_every_assembler_is_a_context_assembler() -> None:
    assert [assembler.__mro__[1] for assembler in ASSEMBLERS] == [ContextAssembler] * 4


class Own(ContextAssembler):
    """An assembler that gives what the text asks for, and no more."""

    agent_type = "own"
    layout = PlainTextAssembler.layout

    def assemble(self, source: AssemblerInput, *, overflow: Overflow = "cut") -> AssemblerOutput:
        return AssemblerOutput(prompt=source.current_message, system_flag=source.system_instruction)


def test_014_an_output_needs_no_more_than_a_prompt() -> None:
    assert AssemblerOutput(prompt="Hello").system_flag is None

    output = build_prompt(
        PromptInput(agent_type="own", message="Hello", system_instruction_text="You are Max"), assembler=Own()
    )

    assert (output.prompt, output.system_flag) == ("Hello", "You are Max")


@pytest.mark.parametrize(
    ("assembler", "prompt"),
    [
        (ClaudeContextAssembler, "[CONTEXT]\n- max -> all:   two  spaces \n- max -> all: \n"),
        (CodexContextAssembler, "[CONTEXT]\n- max -> all:   two  spaces \n- max -> all: \n"),
        (GeminiContextAssembler, "Conversation so far:\n- max:   two  spaces \n- max: \n"),
        (PlainTextAssembler, "max:   two  spaces \nmax: \n"),
    ],
)
def test_020_the_content_of_a_context_message_is_not_trimmed(assembler: type[ContextAssembler], prompt: str) -> None:
    messages = [PromptContextMessage(sender="max", content=content) for content in ("  two  spaces ", "\n")]

    assert assembler().assemble(AssemblerInput(context_messages=messages)).prompt == prompt


class Run(NamedTuple):
    """What a CLI was given, and what became of what it wrote."""

    arguments: list[str]
    stdin: str
    reply: str


class StandIn:
    """Programs on the path that keep what they are given, and write a stream."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def run(self, agent: str, source: AssemblerInput, *stream: object) -> Run:
        spec = agent_spec(agent)
        read = "read" if spec.driver is None else "readline"
        program = self.folder / spec.program
        program.write_text(
            f"#!{sys.executable}\nimport json, sys\n"
            f"json.dump([sys.argv[1:], sys.stdin.{read}()], open('seen.json', 'w'))\n"
            f"for record in {stream!r}: print(json.dumps(record), flush=True)\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
        output = spec.assembler().assemble(source)
        reply = asyncio.run(run_turn(spec, output, emit=lambda _: None, cwd=self.folder))
        arguments, stdin = json.loads((self.folder / "seen.json").read_text(encoding="utf-8"))
        return Run(arguments, stdin, reply.text)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    return StandIn(tmp_path, monkeypatch)


HELLO = AssemblerInput(current_message="Hello")
INSTRUCTED = replace(HELLO, system_instruction="You are Max")
CLAUDE_ENDS = {"type": "result", "subtype": "success", "is_error": False, "result": "ok"}
CLAUDE_ARGUMENTS = [
    *("-p", "--input-format", "stream-json", "--output-format", "stream-json"),
    *("--verbose", "--include-partial-messages", "--permission-mode", "dontAsk"),
    *("--setting-sources", "user", *OFFERED, "--disallowedTools"),
    "Edit,Write,NotebookEdit,Agent(isolation:*)",
]


def test_040_claude_code_is_called_as_it_runs_today(stand_in: StandIn) -> None:
    run = stand_in.run("claude", INSTRUCTED, CLAUDE_ENDS)

    *arguments, system_file = run.arguments
    assert arguments == [*CLAUDE_ARGUMENTS, "--append-system-prompt-file"]
    assert system_file.endswith("/system.md")
    assert json.loads(run.stdin) == {"type": "user", "message": {"role": "user", "content": "[MESSAGE]\nHello"}}


def test_041_claude_code_gets_the_flag_only_if_there_is_system_text(stand_in: StandIn) -> None:
    run = stand_in.run("claude", HELLO, CLAUDE_ENDS)

    assert run.arguments == CLAUDE_ARGUMENTS


@pytest.mark.usefixtures("stand_in")
def test_042_the_input_of_claude_code_is_closed_after_its_last_word_and_not_before(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(
        f"#!{sys.executable}\nimport json, select, sys\n"
        "prompt = sys.stdin.readline()\n"
        "is_over, _, _ = select.select([sys.stdin], [], [], 0.3)\n"
        f"print(json.dumps({CLAUDE_ENDS!r} | {{'result': 'over' if is_over else 'open'}}), flush=True)\n"
        "open('rest', 'w').write(repr(sys.stdin.read()))\n",
        encoding="utf-8",
    )
    program.chmod(0o755)
    spec = replace(agent_spec("claude"), command=(str(program),))

    reply = asyncio.run(run_turn(spec, spec.assembler().assemble(HELLO), emit=lambda _: None, cwd=tmp_path))

    assert (reply.text, (tmp_path / "rest").read_text(encoding="utf-8")) == ("open", "''")


GEMINI_ARGUMENTS = ["--output-format", "stream-json", "--approval-mode", "default"]
# The example of the text, word for word.
GEMINI_STREAM = (
    {"type": "message", "role": "user", "content": "Instructions:\nYou are Carol..."},
    {"type": "message", "role": "assistant", "content": "我理解了任务需求...", "delta": True},
    {"type": "result", "success": True},
)


def test_108_gemini_is_called_as_it_runs_today_and_gets_its_prompt_on_stdin(stand_in: StandIn) -> None:
    run = stand_in.run("gemini", INSTRUCTED, *GEMINI_STREAM)

    assert run.arguments == GEMINI_ARGUMENTS
    assert run.stdin == "Instructions:\nYou are Max\n\nYour task:\nHello"


def test_132_the_example_of_geminis_stream_is_a_reply(stand_in: StandIn) -> None:
    assert stand_in.run("gemini", HELLO, *GEMINI_STREAM).reply == "我理解了任务需求..."


def test_112_escape_sequences_are_not_part_of_a_reply(stand_in: StandIn) -> None:
    coloured = {"type": "message", "role": "assistant", "content": "\x1b[31m我理解了\x1b[0m", "delta": True}

    assert stand_in.run("gemini", HELLO, coloured, {"type": "result", "success": True}).reply == "我理解了"


@pytest.mark.parametrize(
    ("record", "events"),
    [
        ({"type": "message", "role": "assistant", "content": "Hi"}, [TextDelta("Hi")]),
        ({"type": "message", "role": "user", "content": "Hi"}, []),
        (
            {"type": "message", "role": "assistant", "content": 7},
            [Notice(kind="unknown", text="{'type': 'message', 'role': 'assistant', 'content': 7}")],
        ),
        (
            {"type": "note", "role": "assistant", "content": "Hi"},
            [Notice(kind="unknown", text="{'type': 'note', 'role': 'assistant', 'content': 'Hi'}")],
        ),
    ],
)
def test_111_only_the_text_of_the_assistant_counts(record: dict[str, object], events: list[Event]) -> None:
    assert list(GeminiParser().parse(record)) == events


def test_260_codex_gets_one_inline_text_and_json_is_for_its_output(stand_in: StandIn) -> None:
    completed = {"type": "item.completed", "item": {"type": "agent_message", "text": "ok"}}

    run = stand_in.run("codex", INSTRUCTED, completed, {"type": "turn.completed"})

    assert run.arguments == [
        *("exec", "--json", "--skip-git-repo-check", "-c", 'shell_environment_policy.inherit="core"'),
        *("-c", "project_doc_max_bytes=0", "--sandbox", "read-only", "-"),
    ]
    assert run.stdin == "[SYSTEM]\nYou are Max\n\n[MESSAGE]\nHello"
    assert run.reply == "ok"


def test_259_an_agent_without_a_flag_for_the_system_text_gets_it_inline() -> None:
    specs = known_agents().values()

    inline = {spec.name for spec in specs if spec.assembler.layout.system_header is not None}

    assert inline == {spec.name for spec in specs if spec.system_file_flag is None}
    assert set(known_agents()) - inline == {"claude-code"}


@pytest.mark.parametrize("assembler", ASSEMBLERS)
def test_275_no_message_stays_if_a_newer_one_had_to_go(assembler: type[ContextAssembler]) -> None:
    messages = [PromptContextMessage(sender="max", content=content) for content in ("old", "x" * 500, "new")]
    with_the_newest = assembler().assemble(replace(HELLO, context_messages=messages[-1:]))

    output = assembler().assemble(replace(HELLO, context_messages=messages, max_bytes=300))

    assert output.prompt == with_the_newest.prompt
    assert output.report.dropped_ids == ("#1", "#2")


def manager_of(count: int) -> ContextManager:
    manager = ContextManager()
    for number in range(1, count + 1):
        manager.add_message(draft(number))
    return manager


def draft(number: int) -> MessageDraft:
    return MessageDraft(content=f"message {number}", speaker=KAILAI, timestamp=number)


def test_141_the_ids_of_the_context_messages_are_beside_them() -> None:
    window = manager_of(4).get_context_for_agent("max", "claude").context_messages

    assert isinstance(window, Window)
    assert list(window.ids) == ["msg-1", "msg-2", "msg-3"]
    assert window[0] == PromptContextMessage(sender="kailai", to="all", content="message 1")


def required_fields(kind: type[msgspec.Struct]) -> dict[str, bool]:
    return {field.name: field.required for field in msgspec.structs.fields(kind)}


def test_142_a_context_message_has_a_sender_and_a_content_and_may_have_an_addressee_and_a_time() -> None:
    assert required_fields(PromptContextMessage) == {"sender": True, "to": False, "content": True, "timestamp": False}


def test_152_the_constants_are_those_of_the_text() -> None:
    assert (DEFAULT_CONTEXT_WINDOW_SIZE, DEFAULT_MAX_BYTES, MAX_TEAM_TASK_BYTES) == (5, 768 * 1024, 5 * 1024)


def test_180_a_context_message_that_is_only_a_task_keeps_its_text() -> None:
    manager = ContextManager()
    for content in ("[TEAM_TASK] Build it", "[NEXT: max] Go", "Now"):
        manager.add_message(MessageDraft(content=content, speaker=KAILAI))

    assert manager.get_context_for_agent("max", "claude").context_messages == [
        PromptContextMessage(sender="kailai", to="all", content="Build it"),
        PromptContextMessage(sender="kailai", to="all", content="Go"),
    ]


def test_189_any_bracket_that_is_not_a_marker_is_part_of_the_task() -> None:
    text = "Hi [TEAM_TASK] see [Docs], a[0], [FROM here] and [NEXT]\n[NEXT: max] Go"

    assert read_markers(text).team_task == "see [Docs], a[0], [FROM here] and [NEXT]"
    assert strip_all_markers(text) == "Hi Go"


def test_211_an_agent_of_a_team_has_a_window_of_five_or_more() -> None:
    assert Member(name="max", type="ai").window is None
    assert SMALLEST_WINDOW == DEFAULT_CONTEXT_WINDOW_SIZE == 5


def test_227_there_is_no_upper_limit_of_messages() -> None:
    manager = manager_of(20_000)

    assert [message.id for message in manager.get_messages()] == [f"msg-{number}" for number in range(1, 20_001)]


def steps_of(work: Callable[[], object]) -> int:
    """Count the instructions of Python that something takes: how much work it is, whatever the clock says."""
    steps = 0

    def count(frame: FrameType, event: str, _argument: object) -> Callable[..., Any]:
        nonlocal steps
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        return count

    before = sys.gettrace()
    gc.disable()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return steps


def whole_context(manager: ContextManager) -> list[PromptContextMessage]:
    return list(manager.get_context_for_agent("max", "claude").context_messages)


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda manager: manager.add_message(draft(1)), id="228 add_message"),
        pytest.param(ContextManager.get_latest_message, id="230 get_latest_message"),
        pytest.param(whole_context, id="231 get_context_for_agent"),
        pytest.param(ContextManager.clear, id="232 clear"),
    ],
)
def test_what_is_constant_in_the_text_is_as_much_work_for_ten_thousand_messages_as_for_ten(
    work: Callable[[ContextManager], Any],
) -> None:
    # What is imported or compiled for the first time does not count, and Python 3.12 counts nothing the first time.
    steps_of(lambda: work(manager_of(10)))

    small, large = manager_of(10), manager_of(10_000)

    assert steps_of(lambda: work(large)) == steps_of(lambda: work(small))


def test_229_get_messages_takes_twice_the_work_for_twice_the_messages() -> None:
    steps = [steps_of(manager_of(count).get_messages) for count in (1_000, 2_000, 4_000)]

    assert steps[2] - steps[1] == 2 * (steps[1] - steps[0])


def test_234_a_long_text_is_stored_compressed() -> None:
    text = "All work and no play makes Jack a dull boy.\n" * 1_000

    stored = packed_text(text)

    assert unpacked_text(stored) == text
    assert len(stored) < len(text) / 50


def test_244_a_prompt_input_has_every_field_of_the_text() -> None:
    fields = ("agent_type", "system_instruction_text", "instruction_file_text", "context_messages", "message")

    assert {name: required_fields(PromptInput)[name] for name in fields} == {
        "agent_type": True,
        "system_instruction_text": False,
        "instruction_file_text": False,
        "context_messages": False,
        "message": True,
    }


def test_250_a_context_message_may_have_a_time_that_no_prompt_shows() -> None:
    message = PromptContextMessage(sender="kailai", to="max", content="Hi")
    source = PromptInput(agent_type="claude", message="Go", context_messages=[message])

    timed = replace(source, context_messages=[replace(message, timestamp=1_700_000_000_000)])

    assert build_prompt(timed) == build_prompt(source)


def test_251_the_two_names_of_an_output_are_one_type() -> None:
    assert PromptOutput is AssemblerOutput
    assert required_fields(PromptOutput) == {"prompt": True, "system_flag": False, "report": False}
