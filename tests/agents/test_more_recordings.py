"""The streams of other CLIs, recorded: what each becomes, and that nothing in them is unknown."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.agents.test_acp_recordings import FOLDER, NO, STOP, YES, Played

from bullpen.agents.failures import classified
from bullpen.agents.pi import PiParser
from bullpen.agents.registry import agent_spec
from bullpen.agents.runner import _ending
from bullpen.agents.transcript import Transcript
from bullpen.approvals import Answer
from bullpen.turn_events import (
    ApprovalAsked,
    Event,
    Failed,
    Finished,
    Notice,
    Started,
    TextDelta,
    Thinking,
    ToolFinished,
    ToolStarted,
    Usage,
    UsageSoFar,
)

RECORDINGS = Path(__file__).parent / "recordings" / "others"
CASES = sorted(path.relative_to(RECORDINGS).with_suffix("").as_posix() for path in RECORDINGS.glob("*/*.jsonl"))
ENDINGS: dict[str, tuple[str, str]] = {
    "copilot/plain": ("finished", "FAKE-ANSWER"),
    "copilot/tool_read": ("finished", "done"),
    "copilot/tool_refused": ("finished", "done"),
    "copilot/tool_edit": ("finished", "done"),
    "copilot/tool_full": ("finished", "I run it.\n\ndone"),
    "copilot/err401": ("not_signed_in", "Authentication failed with provider"),
    "pi/plain": ("finished", "FAKE-ANSWER"),
    "pi/tool_read": ("finished", "done"),
    "pi/tool_refused": ("finished", "done"),
    "pi/tool_edit": ("finished", "done"),
    "pi/tool_outside": ("finished", "done"),
    "pi/tool_full": ("finished", "I run it.\n\ndone"),
    "pi/err401": ("not_signed_in", "401 scripted error"),
    "pi/err429": ("quota", "429 scripted error"),
}


def stream_of(case: str) -> bytes:
    return (RECORDINGS / f"{case}.jsonl").read_bytes()


def played(case: str, chunks: list[bytes]) -> list[Event]:
    """Return every event of a turn that wrote these chunks, the last one included."""
    spec = agent_spec(case.split("/")[0])
    run = json.loads((RECORDINGS / f"{case}.run.json").read_text(encoding="utf-8"))
    events: list[Event] = []
    transcript = Transcript(spec, events.append)
    for chunk in chunks:
        transcript.feed(chunk)
    transcript.feed_errors(run["stderr_tail"].encode())
    transcript.finish()
    ending = _ending(spec, transcript, run["exit_code"])
    # When it was is another time in each run.
    timeless = [replace(event, attempts=0, since=0) if isinstance(event, Notice) else event for event in events]
    return [*timeless, classified(spec, ending) if isinstance(ending, Failed) else ending]


def test_every_recording_has_its_ending_here() -> None:
    assert sorted(ENDINGS) == CASES


@pytest.mark.parametrize("case", CASES)
def test_how_it_ends_and_what_it_took(case: str) -> None:
    first, *_, ending = events = played(case, [stream_of(case)])
    spec = agent_spec(case.split("/")[0])

    kind, text = ENDINGS[case]
    assert isinstance(first, Started)
    assert any(event.session_id for event in events if isinstance(event, Started))
    if kind == "finished":
        assert isinstance(ending, Finished)
        assert ending.text == text
    if kind == "finished" and spec.reports != "nothing":
        usage = [event for event in events if isinstance(event, Usage)][-1]
        assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) in [(111, 22, 11), (222, 44, 22)]
    if kind != "finished":
        assert isinstance(ending, Failed)
        assert (ending.kind, text in ending.message, bool(ending.hint)) == (kind, True, True)


@pytest.mark.parametrize("case", CASES)
def test_nothing_in_a_recording_is_unknown(case: str) -> None:
    notices = [event for event in played(case, [stream_of(case)]) if isinstance(event, Notice)]

    assert [notice for notice in notices if notice.kind in ("unknown", "noise")] == []


@pytest.mark.parametrize("case", CASES)
def test_chunks_of_every_size_give_the_same_events(case: str) -> None:
    stream = stream_of(case)
    whole = played(case, [stream])

    for size in (1, 7, 1000):
        assert played(case, [stream[at : at + size] for at in range(0, len(stream), size)]) == whole


@pytest.mark.parametrize("case", CASES)
def test_a_stream_that_ends_anywhere_is_an_answer_or_a_failure(case: str) -> None:
    lines = stream_of(case).splitlines(keepends=True)

    for count in range(len(lines)):
        assert isinstance(played(case, lines[:count])[-1], Finished | Failed)


@pytest.mark.parametrize("cli", sorted({case.split("/")[0] for case in CASES}))
@pytest.mark.parametrize(
    "line",
    [b'{"type":"brand_new_event","x":1}', b'{"no":"type"}', b'{"type":["a","list"]}', b"Warning: printed to stdout"],
)
def test_what_nobody_knows_is_shown_and_costs_nobody_the_answer(cli: str, line: bytes) -> None:
    events = played(f"{cli}/plain", [line + b"\n" + stream_of(f"{cli}/plain")])

    kinds = [event.kind for event in events if isinstance(event, Notice)]
    assert kinds == (["unknown", "warning"] if line.startswith(b"{") else ["noise"])
    *_, ending = events
    assert isinstance(ending, Finished)
    assert (ending.text, "does not understand" in ending.doubt) == ("FAKE-ANSWER", line.startswith(b"{"))


@pytest.mark.parametrize("case", ["copilot/plain", "pi/plain"])
def test_what_it_says_and_thinks_comes_in_pieces(case: str) -> None:
    events = played(case, [stream_of(case)])

    assert "".join(event.text for event in events if isinstance(event, Thinking)) == "deep thought"
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["FAKE", "-ANS", "WER"]


@pytest.mark.parametrize(
    ("case", "name", "output"),
    [
        ("copilot/tool_read", "view", "alpha\nbeta\n"),
        (
            "copilot/tool_refused",
            "create",
            "Permission to run this tool was denied due to the following rules: `write`",
        ),
        ("pi/tool_read", "read", "alpha\nbeta\n"),
        ("pi/tool_refused", "write", "Tool write not found"),
        ("pi/tool_outside", "write", "You may only change files in /home/dev/project."),
    ],
)
def test_tools(case: str, name: str, output: str) -> None:
    events = played(case, [stream_of(case)])

    started, finished = [event for event in events if isinstance(event, ToolStarted | ToolFinished)]
    assert isinstance(started, ToolStarted)
    assert started.name == name
    assert finished == ToolFinished(id=started.id, output=output, failed=not case.endswith("tool_read"))


def test_an_error_that_pi_tries_again_is_not_its_last_word() -> None:
    events = played("pi/err429", [stream_of("pi/err429")])

    assert [event.kind for event in events if isinstance(event, Notice)] == ["retry"]
    until_retry = stream_of("pi/err429").partition(b'{"type":"auto_retry_start"')
    ending = played("pi/err429", [until_retry[0], b'{"type":"auto_retry_start"' + until_retry[2].splitlines()[0]])[-1]
    assert isinstance(ending, Failed)
    assert ending.kind == "protocol_broken", "its verdict was taken back, and no other came"


def test_what_newer_releases_of_pi_tell_besides_is_no_remark() -> None:
    besides = (
        {"type": "agent_settled"},
        {"type": "thinking_level_changed", "level": "high"},
        {"type": "summarization_retry_finished"},
    )

    assert [event for record in besides for event in PiParser().parse(record)] == []


def test_a_price_of_pi_in_whole_dollars_counts() -> None:
    parser = PiParser()
    usages: list[Event] = []
    for total in (1, 0.5, None):
        ended = {"type": "message_end", "message": {"role": "assistant", "usage": {"cost": {"total": total}}}}
        usages += parser.parse(ended)
    usages += [event for event in parser.parse({"type": "agent_end"}) if isinstance(event, Usage)]

    assert usages == [*(UsageSoFar(Usage(cost_usd=cost)) for cost in (1.0, 1.5, 1.5)), Usage(cost_usd=1.5)]


def test_copilot_says_which_files_it_changed() -> None:
    events = played("copilot/tool_edit", [stream_of("copilot/tool_edit")])

    changed = [event.changed_files for event in events if isinstance(event, ToolFinished)]
    assert changed == [("/home/dev/project/made.txt",)]


@pytest.mark.parametrize(("case", "answer"), [("yes", YES), ("no", NO)])
def test_copilot_asks(case: str, answer: Answer) -> None:
    turn = Played("copilot", case, answer)

    (asked,) = turn.of(ApprovalAsked)
    assert (asked.kind, asked.command, asked.folder) == ("command", "touch made.txt", FOLDER)
    assert turn.chosen == ["allow_once" if case == "yes" else "reject_once"]
    said = "".join(piece.text for piece in turn.of(TextDelta))
    assert said == ("I run it.done" if case == "yes" else "I run it.then not")
    assert turn.events[-1] == Finished("done" if case == "yes" else "then not")
    # What it tells for the second prompt includes the first one.
    assert turn.of(Usage)[-1].output_tokens == 44


def test_a_no_that_stops_ends_copilots_turn() -> None:
    turn = Played("copilot", "stop", STOP)

    assert turn.methods[-1] == "session/cancel"
    ending = turn.events[-1]
    assert isinstance(ending, Failed)
    assert ending.kind == "permission_refused"


def test_an_error_in_copilots_mouth_is_a_failure() -> None:
    turn = Played("copilot", "err401")

    ending = turn.events[-1]
    assert isinstance(ending, Failed)
    assert ending.message.startswith("Authentication failed with provider at")
