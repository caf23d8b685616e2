"""Every CLI's own stream, recorded: what each becomes, and that no cut of it breaks anything."""

import json
import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.agents.real_cli import install

from bullpen.agents.claude_requests import ClaudeRequests
from bullpen.agents.failures import classified
from bullpen.agents.registry import agent_spec
from bullpen.agents.runner import _ending
from bullpen.agents.spec import AgentSpec
from bullpen.agents.transcript import Transcript
from bullpen.turn_events import (
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    TodoItem,
    TodoList,
    ToolFinished,
    ToolStarted,
    Usage,
    UsageSoFar,
)

# `make newest` tries the recordings of the newest CLIs.
RECORDINGS = Path(os.environ.get("BULLPEN_NEWEST", Path(__file__).parent)) / "recordings"
# Handshakes are no turns.
TURNS = [path for path in RECORDINGS.glob("*/*.jsonl") if path.parent.name != "handshakes"]
CASES = sorted(path.relative_to(RECORDINGS).with_suffix("").as_posix() for path in TURNS)


def spec_of(case: str) -> AgentSpec:
    return agent_spec(case.split("/")[0])


def stream_of(case: str) -> bytes:
    return (RECORDINGS / f"{case}.jsonl").read_bytes()


def run_of(case: str) -> dict[str, object]:
    run: dict[str, object] = json.loads((RECORDINGS / f"{case}.run.json").read_text(encoding="utf-8"))
    return run


def played(case: str, chunks: list[bytes], exit_code: int | None = None) -> list[Event]:
    """Return every event of a turn that wrote these chunks, the last one included."""
    spec, run = spec_of(case), run_of(case)
    events: list[Event] = []
    transcript = Transcript(spec, events.append)
    for chunk in chunks:
        transcript.feed(chunk)
    transcript.feed_errors(str(run["stderr_tail"]).encode())
    transcript.finish()
    code = run["exit_code"] if exit_code is None else exit_code
    assert isinstance(code, int)
    ending = _ending(spec, transcript, code)
    # When it was is another time in each run.
    timeless = [replace(event, attempts=0, since=0) if isinstance(event, Notice) else event for event in events]
    return [*timeless, classified(spec, ending) if isinstance(ending, Failed) else ending]


ENDINGS: dict[str, tuple[str, str]] = {
    "claude/plain": ("finished", "FAKE-ANSWER"),
    "claude/partial": ("finished", "answer in parts"),
    "claude/thinking": ("finished", "answer"),
    "claude/tool_allowed": ("finished", "done"),
    "claude/tool_default": ("finished", "I will run it.\n\ndone"),
    "claude/tool_slow": ("finished", "done"),
    "claude/max_tokens": ("finished", "first half, second half"),
    "claude/err401": ("not_signed_in", "401"),
    "claude/err429": ("quota", "API Error: Request rejected (429) · scripted error"),
    "claude/maxturns": ("turn_limit", "It reached its limit of turns."),
    "codex/plain": ("finished", "FAKE-ANSWER"),
    "codex/thinking": ("finished", "answer"),
    "codex/tool_patch": ("finished", "done"),
    "codex/tool_workspace": ("finished", "done"),
    "codex/err401": ("not_signed_in", "401 Unauthorized"),
    "codex/err429": ("quota", "exceeded retry limit, last status: 429 Too Many Requests"),
    "codex/err_drop": ("finished", "recovered"),
    "gemini/plain": ("finished", "FAKE-ANSWER"),
    "gemini/tool_default": ("finished", "I will.\n\ndone"),
    "gemini/tool_yolo": ("finished", "done"),
    "gemini/err401": ("not_signed_in", "401"),
    "gemini/err429": ("quota", "scripted error"),
    "qwen/plain": ("finished", "FAKE-ANSWER"),
    "qwen/partial": ("finished", "answer in parts"),
    "qwen/thinking": ("finished", "answer"),
    "qwen/tool_allowed": ("finished", "I will.\n\ndone"),
    "qwen/tool_refused": ("finished", "I will.\n\ndone"),
    "qwen/tool_shell": ("finished", "done"),
    "qwen/todo": ("finished", "done"),
    "qwen/subagent": ("finished", "done"),
    "qwen/subagent_background": ("finished", "started\n\ndone"),
    "qwen/maxturns": ("turn_limit", "Reached max session turns"),
    "qwen/err401": ("not_signed_in", "[API Error: 401 scripted error]"),
    "qwen/err429": ("quota", "[API Error: 429 scripted error]"),
    "qwen/err500": ("overloaded", "[API Error: 500 scripted error]"),
    "qwen/err_drop": ("finished", "lost in the middle"),
}


def test_every_recording_has_its_ending_here() -> None:
    assert sorted(ENDINGS) == CASES


@pytest.mark.parametrize("case", CASES)
def test_how_it_ends(case: str) -> None:
    *_, ending = played(case, [stream_of(case)])

    kind, text = ENDINGS[case]
    if kind == "finished":
        assert isinstance(ending, Finished)
        assert ending.text == text
    else:
        assert isinstance(ending, Failed)
        assert ending.kind == kind
        assert text in ending.message
        assert ending.hint


@pytest.mark.parametrize("case", CASES)
def test_it_starts_with_its_session_and_says_what_it_took(case: str) -> None:
    events = played(case, [stream_of(case)])

    assert isinstance(events[0], Started)
    assert events[0].session_id
    if ENDINGS[case][0] == "finished":
        usage = next(event for event in events if isinstance(event, Usage))
        # What one, two or four answers of the model take.
        assert (usage.output_tokens, usage.cached_tokens) in [(22, 11), (44, 22), (88, 44)]


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith(("claude/", "qwen/"))])
def test_it_was_recorded_with_the_version_that_is_installed_for_the_tests(case: str) -> None:
    started = played(case, [stream_of(case)])[0]

    assert isinstance(started, Started)
    assert started.cli_version == install.versions()[spec_of(case).program]


@pytest.mark.parametrize("case", CASES)
def test_nothing_in_a_recording_is_unknown(case: str) -> None:
    notices = [event for event in played(case, [stream_of(case)]) if isinstance(event, Notice)]

    assert [notice for notice in notices if notice.kind in ("unknown", "noise")] == []


@pytest.mark.parametrize("case", CASES)
def test_chunks_of_every_size_give_the_same_events(case: str) -> None:
    stream = stream_of(case)
    whole = played(case, [stream])

    for size in [*range(1, 70), 255, 256, 257, 1023, 4096]:
        chunks = [stream[start : start + size] for start in range(0, len(stream), size)]
        assert played(case, chunks) == whole


def cuts_of(stream: bytes) -> list[int]:
    """Return every place around the end of a line, and some in between; the torture cuts at each byte."""
    line_ends = [end for end, byte in enumerate(stream) if byte == ord("\n")]
    around = {end + step for end in line_ends for step in (-1, 0, 1) if end + step < len(stream)}
    return sorted(around | {*range(0, len(stream), 61)})


@pytest.mark.parametrize("case", CASES)
def test_a_stream_cut_anywhere_is_a_beginning_and_a_typed_ending(case: str) -> None:
    stream = stream_of(case)
    whole = [event for event in played(case, [stream]) if not isinstance(event, Notice)]

    for cut in cuts_of(stream):
        *events, ending = played(case, [stream[:cut]], exit_code=0)
        said = [event for event in events if not isinstance(event, Notice)]
        assert said == whole[: len(said)]
        assert isinstance(ending, Finished | Failed)


def test_claude_says_nothing_twice() -> None:
    events = played("claude/partial", [stream_of("claude/partial")])

    assert [event for event in events if isinstance(event, TextDelta | Thinking)] == [
        Thinking("deep"),
        TextDelta("answe"),
        TextDelta("r in "),
        TextDelta("parts"),
    ]
    used = Usage(
        input_tokens=122, output_tokens=22, cached_tokens=11, cost_usd=0.0008862000000000001, context_window=1_000_000
    )
    assert used in events


def test_claude_says_what_it_has_used_before_it_ends() -> None:
    events = played("claude/partial", [stream_of("claude/partial")])

    so_far = UsageSoFar(Usage(input_tokens=122, output_tokens=22, cached_tokens=11))
    assert [event for event in events if isinstance(event, UsageSoFar)] == [so_far]
    assert events.index(so_far) > events.index(TextDelta("parts"))


def test_requests_add_up_and_each_counts_once() -> None:
    requests = ClaudeRequests()
    requests.note("m1", {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1})
    requests.note("m1", {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1})
    requests.note("m1", {"output_tokens": 30})
    requests.note("m2", {"input_tokens": 20, "cache_creation_input_tokens": 7, "output_tokens": 2})
    requests.note(None, {"input_tokens": 1_000})
    requests.note("m3", "nothing")
    assert requests.usage == Usage(input_tokens=42, output_tokens=32, cached_tokens=5)


def test_claude_tools() -> None:
    events = played("claude/tool_allowed", [stream_of("claude/tool_allowed")])

    started, finished = [event for event in events if isinstance(event, ToolStarted | ToolFinished)]
    assert started == ToolStarted(id=started.id, name="Bash", input={"command": "echo hi", "description": "x"})
    assert finished == ToolFinished(id=started.id, output="hi")


def test_claude_retries_are_noticed() -> None:
    events = played("claude/err429", [stream_of("claude/err429")])

    assert Notice(kind="retry", text="rate_limit (429), attempt 1 of 1") in events
    assert [event for event in events if isinstance(event, TextDelta)] == []


def test_codex_tools_and_changed_files() -> None:
    events = played("codex/tool_patch", [stream_of("codex/tool_patch")])

    assert ToolFinished(id="item_0", changed_files=("/home/dev/project/p.txt",)) in events


def test_an_error_in_a_codex_run_that_succeeds_is_a_notice() -> None:
    events = played("codex/err_drop", [stream_of("codex/err_drop")])

    (notice,) = [event for event in events if isinstance(event, Notice)]
    assert notice.kind == "retry"
    assert notice.text.startswith("Reconnecting... 1/1")


def test_geminis_echo_of_the_prompt_is_nobodys_word() -> None:
    events = played("gemini/plain", [stream_of("gemini/plain")])

    assert "PROMPT-MARK-1" not in str(events)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["FAKE", "-ANS", "WER"]


def test_what_gemini_said_before_its_tools_is_kept() -> None:
    events = played("gemini/tool_default", [stream_of("gemini/tool_default")])

    assert events[-1] == Finished("I will.\n\ndone", texts_at=(9,))
    assert [event.failed for event in events if isinstance(event, ToolFinished)] == [True]


def test_qwen_says_nothing_twice_in_pieces_or_whole() -> None:
    def said(case: str) -> list[Event]:
        return [event for event in played(case, [stream_of(case)]) if isinstance(event, TextDelta | Thinking)]

    assert said("qwen/partial") == [Thinking("deep"), TextDelta("answe"), TextDelta("r in "), TextDelta("parts")]
    assert said("qwen/thinking") == [Thinking("deep"), TextDelta("answer")]


def test_qwen_tools() -> None:
    events = played("qwen/tool_shell", [stream_of("qwen/tool_shell")])

    started, finished = [event for event in events if isinstance(event, ToolStarted | ToolFinished)]
    command = {"command": "echo hi; touch made.txt; ls", "description": "x", "is_background": False}
    assert started == ToolStarted(id=started.id, name="run_shell_command", input=command)
    assert finished == ToolFinished(id=started.id, output="hi\nmade.txt")


def test_a_tool_that_qwen_refuses_has_failed() -> None:
    events = played("qwen/tool_refused", [stream_of("qwen/tool_refused")])

    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.failed
    assert finished.output.startswith('Qwen Code requires permission to use "write_file"')


def test_qwens_list() -> None:
    events = played("qwen/todo", [stream_of("qwen/todo")])

    assert TodoList((TodoItem("one", done=True), TodoItem("two", done=False))) in events


def test_what_qwens_subagent_says_is_not_said_to_the_team() -> None:
    events = played("qwen/subagent", [stream_of("qwen/subagent")])

    assert [event.name for event in events if isinstance(event, ToolStarted)] == ["agent", "glob"]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["done"]


@pytest.mark.parametrize("case", ["qwen/err401", "qwen/err429", "qwen/err500"])
def test_an_error_in_qwens_mouth_is_nobodys_word(case: str) -> None:
    assert [event for event in played(case, [stream_of(case)]) if isinstance(event, TextDelta)] == []


def test_qwens_retries_are_noticed() -> None:
    def notices(case: str) -> list[Notice]:
        return [event for event in played(case, [stream_of(case)]) if isinstance(event, Notice)]

    limited = notices("qwen/err429")[0]
    assert limited.kind == "retry"
    assert re.fullmatch(r"attempt 1 of 1, in \d+ seconds", limited.text)
    assert notices("qwen/err_drop") == [Notice(kind="retry", text="the answer was cut off and continues")]


@pytest.mark.parametrize("case", ["claude/plain", "codex/plain", "gemini/plain", "qwen/plain"])
def test_a_good_final_event_with_a_bad_exit_code_is_a_failure(case: str) -> None:
    *_, ending = played(case, [stream_of(case)], exit_code=3)

    assert isinstance(ending, Failed)
    assert (ending.kind, ending.exit_code) == ("crashed", 3)


def test_claude_success_with_is_error_is_a_failure() -> None:
    line = stream_of("claude/plain").splitlines()[-1].replace(b'"is_error":false', b'"is_error":true')

    *_, ending = played("claude/plain", [line], exit_code=0)

    assert isinstance(ending, Failed)


def claude_message(text: str, stop_reason: str) -> list[dict[str, object]]:
    """Return the records of a message that Claude Code streams."""
    events: list[dict[str, object]] = [
        {"type": "message_start", "message": {"id": text}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}},
    ]
    return [{"type": "stream_event", "event": event, "parent_tool_use_id": None} for event in events]


CONTINUE: dict[str, object] = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "text", "text": "Resume directly."}]},
    "isSynthetic": True,
}
TOOL_RESULT: dict[str, object] = {
    "type": "user",
    "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "hi"}]},
}


@pytest.mark.parametrize(
    ("before", "answer"),
    [
        # Until 2.1.197 it did not say that it told the model to continue.
        (claude_message("first, ", "max_tokens"), "first, last"),
        ([*claude_message("first, ", "max_tokens"), CONTINUE], "first, last"),
        ([*claude_message("first, ", "max_tokens"), CONTINUE] * 2, "first, first, last"),
        # What was said before a tool, or before a hook asked for more, is not the answer.
        ([*claude_message("first, ", "max_tokens"), TOOL_RESULT], "first,\n\nlast"),
        (
            [*claude_message("first, ", "max_tokens"), *claude_message("second", "end_turn"), CONTINUE],
            "first, second\n\nlast",
        ),
    ],
)
def test_a_claude_answer_that_ran_out_of_tokens_is_put_together(before: list[dict[str, object]], answer: str) -> None:
    result = {"type": "result", "subtype": "success", "is_error": False, "result": "last"}
    records = [*before, *claude_message("last", "end_turn"), result]
    stream = b"".join(json.dumps(record).encode() + b"\n" for record in records)

    ending = played("claude/plain", [stream])[-1]
    assert isinstance(ending, Finished)
    assert ending.text == answer


AGENTS = ["claude", "codex", "gemini", "qwen"]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "line",
    [b'{"type":"brand_new_event","x":1}', b'{"no":"type"}', b'{"type":["a","list"]}', b"Warning: printed to stdout"],
)
def test_what_nobody_knows_is_shown_and_costs_nobody_the_answer(agent: str, line: bytes) -> None:
    events = played(f"{agent}/plain", [line + b"\n" + stream_of(f"{agent}/plain")])

    kinds = [event.kind for event in events if isinstance(event, Notice)]
    assert kinds == (["unknown", "warning"] if line.startswith(b"{") else ["noise"])
    *_, ending = events
    assert isinstance(ending, Finished)
    assert (ending.text, "does not understand" in ending.doubt) == ("FAKE-ANSWER", line.startswith(b"{"))


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("count", [b'"many"', b"{}", b"null", b"[1]"])
def test_a_count_that_is_none_costs_nobody_the_answer(agent: str, count: bytes) -> None:
    stream = re.sub(
        rb'("(?:inputTokens|input_tokens|total_cost_usd)":)[0-9.]+', rb"\g<1>" + count, stream_of(f"{agent}/plain")
    )

    assert played(f"{agent}/plain", [stream])[-1] == Finished("FAKE-ANSWER")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_thousand_lines_of_noise_are_a_hundred_notices(agent: str) -> None:
    events = played(f"{agent}/plain", [b"noise\n" * 1000 + stream_of(f"{agent}/plain")])

    notices = [event for event in events if isinstance(event, Notice)]
    assert len(notices) == 101
    assert notices[-1].text == "900 more notices were dropped"
