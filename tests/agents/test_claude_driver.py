"""Claude Code's control protocol, as recorded, and as a program that misbehaves may write it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bullpen.agents import agent_spec, process_tree, run_turn
from bullpen.agents.claude import ClaudeParser
from bullpen.agents.claude_driver import PROBE, ClaudeDriver
from bullpen.agents.dialogue import Tell
from bullpen.agents.driver import Opening, stopped_by_a_person
from bullpen.agents.gate import went_past
from bullpen.agents.spec import AgentSpec
from bullpen.approvals import Answer
from bullpen.context import AssemblerInput
from bullpen.turn_events import ApprovalAsked, ApprovalOver, Event, Failed, Finished, Notice, Started, TextDelta

RECORDINGS = Path(__file__).parent / "recordings" / "asking" / "claude"
OPENING = Opening(prompt="one", folder="/home/dev/project", permissions="ask")
YES = Answer(verdict="yes")
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "fine"}


def driver() -> ClaudeDriver:
    return ClaudeDriver(OPENING, ClaudeParser())


def taken(speaker: ClaudeDriver) -> list[Any]:
    sent, speaker.outgoing[:] = list(speaker.outgoing), []
    return sent


def lines_of(case: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDINGS / f"{case}.jsonl").read_text(encoding="utf-8").splitlines()]


def played(case: str, *answers: Answer, words: str = "") -> tuple[list[Event], list[Any]]:
    """Return the events of a recorded turn, answered and told as it was then, and all that was sent."""
    speaker, events, left, ids = driver(), list[Event](), list(answers), ("", "")
    sent = taken(speaker)
    for recorded in lines_of(case)[1:]:
        line = json.loads(json.dumps(recorded).replace(*ids)) if ids[0] else recorded
        if line["from"] == "agent":
            events += (new := list(speaker.parse(line["msg"])))
            for asked in (event for event in new if isinstance(event, ApprovalAsked)):
                if left:
                    speaker.answer(asked.id, left.pop(0))
        elif line["msg"]["type"] == "user":
            assert speaker.tell(words)
            ids = (line["msg"]["uuid"], speaker.outgoing[-1]["uuid"])
        elif line["msg"]["type"] == "control_request":
            speaker.interrupt()
        sent += taken(speaker)
    assert not left
    return events, sent


def same(message: dict[str, Any]) -> str:
    """Return a message without ids that are made up, and in one order."""
    unlike = ("uuid", "request_id") if message["type"] != "control_response" else ()
    return json.dumps({name: value for name, value in message.items() if name not in unlike}, sort_keys=True)


ANSWERS: dict[str, tuple[Answer, ...]] = {
    "once": (YES,),
    "changed": (Answer(verdict="yes", command="touch b.txt"),),
    "no": (Answer(verdict="no", reason="not today"),),
    "stop": (Answer(verdict="stop", reason="not today"),),
    "write": (Answer(verdict="no", reason="not today"),),
    "questions": (Answer(verdict="yes", text="Blue"), Answer(verdict="yes", text="S, L")),
    "interrupted": (),
    "told": (YES,),
    "told_late": (),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_what_is_sent_is_what_the_cli_was_seen_to_understand(case: str) -> None:
    events, sent = played(case, *ANSWERS[case], words="Words")

    recorded = [line["msg"] for line in lines_of(case) if line["from"] == "client"]
    assert sorted(map(same, sent)) == sorted(map(same, recorded))
    assert not [event for event in events if isinstance(event, Notice)]
    assert len([event for event in events if isinstance(event, Started)]) == 1


def test_every_recording_is_played() -> None:
    assert {path.stem for path in RECORDINGS.glob("*.jsonl")} == set(ANSWERS)


@pytest.mark.parametrize(
    ("case", "ending"),
    [
        ("once", Finished("done")),
        ("no", Finished("done")),
        ("told", Finished("done")),
        ("told_late", Finished("A slow answer\n\nAnd that")),
        (
            "stop",
            Failed(
                kind="permission_refused",
                message="A person stopped the turn: not today",
                hint="Say what to do instead.",
            ),
        ),
    ],
)
def test_there_is_one_ending(case: str, ending: Event) -> None:
    events, _ = played(case, *ANSWERS[case], words="Words")

    assert [event for event in events if isinstance(event, Finished | Failed)] == [ending]


def test_a_command_is_shown_whole() -> None:
    events, _ = played("once", YES)

    (asked,) = [event for event in events if isinstance(event, ApprovalAsked)]
    assert asked == ApprovalAsked(
        id=asked.id,
        kind="command",
        tool="Bash",
        command="touch a.txt",
        folder="/home/dev/project",
        why="Make a file",
        can_change=True,
    )


def test_a_file_is_shown_as_a_diff() -> None:
    events, _ = played("write", Answer(verdict="no", reason="not today"))

    (asked,) = [event for event in events if isinstance(event, ApprovalAsked)]
    assert (asked.kind, asked.paths, asked.details) == ("edit", ("/srv/a.txt",), {})
    assert asked.diff == "--- /srv/a.txt\n+++ /srv/a.txt\n@@ @@\n+one\n+two\n"
    assert asked.why == "Path is outside allowed working directories"


def test_each_of_its_questions_is_one() -> None:
    events, _ = played("questions", *ANSWERS["questions"])

    asked = [event for event in events if isinstance(event, ApprovalAsked)]
    assert [(one.why, one.choices, one.kind) for one in asked] == [
        ("Which colour?", ("Red", "Blue"), "question"),
        ("Which sizes?", ("S", "L"), "question"),
    ]
    assert asked[0].details["options"][0] == {"label": "Red", "description": "warm"}


def wants(tool: str, given: Any, request_id: str = "r1", **more: Any) -> dict[str, Any]:
    request = {"subtype": "can_use_tool", "tool_name": tool, "input": given, **more}
    return {"type": "control_request", "request_id": request_id, "request": request}


def asked_for(tool: str, given: Any, **more: Any) -> ApprovalAsked:
    (asked,) = driver().parse(wants(tool, given, **more))
    assert isinstance(asked, ApprovalAsked)
    return asked


def test_what_else_a_command_is_given_is_shown() -> None:
    asked = asked_for("Bash", {"command": "x", "description": "y", "run_in_background": True}, blocked_path="/etc/x")

    assert asked.details == {"run_in_background": True}
    assert asked.paths == ("/etc/x",)


@pytest.mark.parametrize(
    ("tool", "given", "diff"),
    [
        ("Edit", {"file_path": "/a", "old_string": "x\ny", "new_string": "z"}, "@@ @@\n-x\n-y\n+z\n"),
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": ""}, "@@ @@\n-x\n"),
        (
            "MultiEdit",
            {
                "file_path": "/a",
                "edits": [{"old_string": "x", "new_string": "y"}, {"old_string": "1", "new_string": "2"}],
            },
            "@@ @@\n-x\n+y\n@@ @@\n-1\n+2\n",
        ),
        ("NotebookEdit", {"notebook_path": "/a", "new_source": "+++ /b", "cell_id": "c"}, "@@ @@\n++++ /b\n"),
    ],
)
def test_edits_are_shown_as_diffs(tool: str, given: Any, diff: str) -> None:
    asked = asked_for(tool, given)

    assert asked.kind == "edit"
    assert asked.diff == f"--- /a\n+++ /a\n{diff}"


def test_a_name_cannot_pretend_to_be_a_diff() -> None:
    asked = asked_for("Write", {"file_path": "/a\n+++ /b", "content": "x"})

    assert asked.diff.splitlines()[:2] == ["--- '/a\\n+++ /b'", "+++ '/a\\n+++ /b'"]


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Bash", {"command": ["rm"]}),
        ("Write", {"file_path": 1, "content": "x"}),
        ("MultiEdit", {"file_path": "/a", "edits": [1]}),
        ("AskUserQuestion", {"questions": []}),
        ("AskUserQuestion", {"questions": [{"question": "x", "options": [{"label": 1}]}]}),
        ("mcp__server__tool", {"x": 1}),
    ],
)
def test_what_is_not_known_is_shown_as_it_is(tool: str, given: Any) -> None:
    asked = asked_for(tool, given)

    assert (asked.kind, asked.tool, asked.details, asked.can_change) == ("tool", tool, given, False)


def test_a_question_is_asked_once_and_answered_once() -> None:
    speaker = driver()
    taken(speaker)

    assert len(list(speaker.parse(wants("Bash", {"command": "x"})))) == 1
    assert list(speaker.parse(wants("Bash", {"command": "other"}))) == []
    speaker.answer("r1", YES)
    speaker.answer("r1", YES)
    speaker.answer("other", YES)

    (sent,) = taken(speaker)
    assert sent["response"]["response"] == {"behavior": "allow", "updatedInput": {"command": "x"}}


def test_nothing_is_ever_allowed_for_longer() -> None:
    suggestions = [{"type": "setMode", "mode": "bypassPermissions", "destination": "session"}]
    speaker = driver()
    list(speaker.parse(wants("Bash", {"command": "x"}, permission_suggestions=suggestions)))
    speaker.answer("r1", YES)

    assert "updatedPermissions" not in json.dumps(taken(speaker))


def test_a_question_that_is_taken_back_cannot_be_answered() -> None:
    speaker = driver()
    list(speaker.parse(wants("Bash", {"command": "x"})))
    taken(speaker)

    over = list(speaker.parse({"type": "control_cancel_request", "request_id": "r1"}))
    again = list(speaker.parse({"type": "control_cancel_request", "request_id": "r1"}))
    speaker.answer("r1", YES)

    assert over == [ApprovalOver(id="r1", is_answered=False)]
    assert again == []
    assert taken(speaker) == []


QUESTIONS = {"questions": [{"question": text, "options": [{"label": "A"}]} for text in ("one?", "two?")]}


@pytest.mark.parametrize(
    ("answers", "decision"),
    [
        ((Answer(verdict="no", reason="later"), Answer(verdict="no")), {"behavior": "deny", "message": "later"}),
        ((Answer(verdict="no"), Answer(verdict="no")), {"behavior": "deny", "message": "A person said no."}),
        (
            (Answer(verdict="no", reason="later"), Answer(verdict="yes", text="A")),
            {"behavior": "allow", "updatedInput": {**QUESTIONS, "answers": {"one?": "later", "two?": "A"}}},
        ),
        ((YES, YES), {"behavior": "allow", "updatedInput": {**QUESTIONS, "answers": {}}}),
    ],
)
def test_several_questions_get_one_answer(answers: tuple[Answer, Answer], decision: dict[str, Any]) -> None:
    speaker = driver()
    asked = list(speaker.parse(wants("AskUserQuestion", QUESTIONS)))
    taken(speaker)

    for question, answer in zip(asked, answers, strict=True):
        assert isinstance(question, ApprovalAsked)
        assert taken(speaker) == []
        speaker.answer(question.id, answer)

    (sent,) = taken(speaker)
    assert sent["response"]["response"] == decision


def test_a_stop_answers_all_of_them() -> None:
    speaker = driver()
    list(speaker.parse(wants("AskUserQuestion", QUESTIONS)))
    taken(speaker)

    speaker.answer("r1/1", Answer(verdict="stop"))
    speaker.answer("r1/0", YES)

    (sent,) = taken(speaker)
    assert sent["response"]["response"] == {"behavior": "deny", "message": "A person said no.", "interrupt": True}


def test_an_answer_after_a_stop_is_not_a_reply() -> None:
    speaker = driver()
    (asked,) = (one for one in speaker.parse(wants("Bash", {"command": "make"})) if isinstance(one, ApprovalAsked))

    speaker.answer(asked.id, Answer(verdict="stop", reason="enough"))

    assert endings(speaker, RESULT) == [stopped_by_a_person("enough")]


def used(tool: str, given: dict[str, Any], call: str = "t1") -> dict[str, Any]:
    block = {"type": "tool_use", "id": call, "name": tool, "input": given}
    return {"type": "assistant", "message": {"id": "m", "content": [block]}}


def result(call: str = "t1", **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": call, **more}]}}


@pytest.mark.parametrize("answer", [None, Answer(verdict="no"), Answer(verdict="yes")])
def test_only_after_a_yes_may_it_do_what_it_has_asked_for(answer: Answer | None) -> None:
    speaker = driver()
    list(speaker.parse(used("Bash", {"command": "touch a"})))
    for event in speaker.parse(wants("Bash", {"command": "touch a"}, tool_use_id="t1")):
        if answer is not None and isinstance(event, ApprovalAsked):
            speaker.answer(event.id, answer)
    list(speaker.parse(result()))

    is_agreed = answer is not None and answer.verdict == "yes"
    assert endings(speaker, RESULT) == [Finished("fine") if is_agreed else went_past("touch a")]


def test_what_it_does_without_a_question_ends_its_turn() -> None:
    speaker = driver()
    taken(speaker)
    for record in (used("Bash", {"command": "touch a"}), result()):
        list(speaker.parse(record))

    assert [sent["request"]["subtype"] for sent in taken(speaker)] == ["interrupt"]
    assert endings(speaker, RESULT) == [went_past("touch a")]


@pytest.mark.parametrize(
    "records",
    [
        (used("Read", {"file_path": "/x"}), result()),
        (used("Bash", {"command": "touch a"}), result(is_error=True)),
        (used("Bash", {"command": "ls"}), wants("Bash", {"command": "ls"}, tool_use_id="t1"), result()),
    ],
)
def test_what_was_asked_or_did_not_happen_does_not(records: tuple[Any, ...]) -> None:
    speaker = driver()
    for record in records:
        list(speaker.parse(record))

    assert endings(speaker, RESULT) == [Finished("fine")]


def test_the_gate_answers_what_needs_no_person() -> None:
    speaker = driver()
    taken(speaker)
    edit = {"file_path": "/home/dev/project/a.py", "content": "x"}

    assert list(speaker.parse(wants("Bash", {"command": "cat a | head -3", "description": "y"}))) == []
    assert list(speaker.parse(wants("Write", edit, "r2"))) == []

    answers = [sent["response"]["response"] for sent in taken(speaker)]
    given = ({"command": "cat a | head -3", "description": "y"}, edit)
    assert answers == [{"behavior": "allow", "updatedInput": one} for one in given]


@pytest.mark.parametrize(
    "request_", [{"subtype": "hook_callback"}, {"subtype": "can_use_tool"}, {"subtype": ["x"]}, {}]
)
def test_a_request_that_is_not_known_gets_an_error(request_: dict[str, Any]) -> None:
    speaker = driver()
    taken(speaker)

    events = list(speaker.parse({"type": "control_request", "request_id": "r1", "request": request_}))

    assert [type(event) for event in events] == [Notice]
    (sent,) = taken(speaker)
    assert (sent["response"]["subtype"], sent["response"]["request_id"]) == ("error", "r1")


def lifecycle(words: str, state: str) -> dict[str, Any]:
    return {"type": "command_lifecycle", "command_uuid": words, "state": state}


def endings(speaker: ClaudeDriver, *records: dict[str, Any]) -> list[Event]:
    events = [event for record in records for event in speaker.parse(record)]
    return [event for event in events if isinstance(event, Finished | Failed)]


def told(speaker: ClaudeDriver) -> str:
    taken(speaker)
    assert speaker.tell("words")
    (message,) = taken(speaker)
    return str(message["uuid"])


def test_words_that_cross_the_result_are_waited_for() -> None:
    speaker = driver()
    words = told(speaker)

    assert endings(speaker, RESULT) == []
    (probe,) = taken(speaker)
    answered = {"type": "control_response", "response": {"subtype": "success", "request_id": probe["request_id"]}}
    assert endings(speaker, lifecycle(words, "queued"), answered, lifecycle(words, "started")) == []
    assert endings(speaker, RESULT, RESULT) == [Finished("fine\n\nfine")]
    assert not speaker.tell("too late")


def test_a_release_that_says_nothing_of_words_ends_its_turn() -> None:
    speaker = driver()
    told(speaker)
    answered = {"type": "control_response", "response": {"subtype": "error", "request_id": PROBE}}

    assert endings(speaker, answered, RESULT, answered, RESULT) == [Finished("fine")]


@pytest.mark.parametrize("state", ["cancelled", "discarded", "refused"])
def test_words_that_the_cli_does_not_take_are_not_waited_for(state: str) -> None:
    speaker = driver()
    words = told(speaker)

    assert endings(speaker, lifecycle(words, "queued"), RESULT) == []
    assert endings(speaker, lifecycle(words, state)) == [Finished("fine")]


def test_a_failure_ends_the_turn_with_words_on_their_way() -> None:
    speaker = driver()
    told(speaker)
    failure = {"type": "result", "subtype": "error_during_execution", "is_error": True, "errors": ["broken"]}

    assert endings(speaker, failure, RESULT) == [Failed(kind="crashed", message="broken")]


def test_after_its_end_it_asks_nobody_and_hears_nothing() -> None:
    speaker = driver()
    assert endings(speaker, RESULT) == [Finished("fine")]
    taken(speaker)

    assert list(speaker.parse(wants("Bash", {"command": "x"}))) == []
    assert not speaker.tell("words")
    assert taken(speaker) == []


def test_an_interrupt_leaves_no_question() -> None:
    speaker = driver()
    list(speaker.parse(wants("Bash", {"command": "x"})))
    taken(speaker)

    speaker.interrupt()
    speaker.answer("r1", YES)

    (sent,) = taken(speaker)
    assert (sent["type"], sent["request"]) == ("control_request", {"subtype": "interrupt"})
    assert not speaker.tell("words")


def test_text_that_ran_out_of_tokens_is_not_in_the_next_answer() -> None:
    speaker = driver()
    started = {"type": "message_start", "message": {"id": "m1"}}
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "first half, "}}
    cut = {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}
    for event in (started, delta, cut):
        list(speaker.parse({"type": "stream_event", "event": event, "parent_tool_use_id": None}))
    words = told(speaker)

    assert endings(speaker, RESULT, lifecycle(words, "queued"), lifecycle(words, "started")) == []
    assert endings(speaker, RESULT) == [Finished("first half, fine\n\nfine")]


PROGRAM = """
import json, sys
sys.stdin.readline()
for step in json.loads(sys.argv[1]):
    print(json.dumps(step), flush=True)
sys.stdin.read()
"""


def misbehaving(*steps: dict[str, Any]) -> AgentSpec:
    """Return Claude Code, but it is a program that writes these records."""
    spec = agent_spec("claude").with_permissions("ask")
    spec = replace(
        spec, command=(sys.executable, "-c", PROGRAM, json.dumps(steps)), permissions={"ask": ()}, asking=None
    )
    return replace(spec, asking=spec)


@pytest.mark.parametrize(
    "steps",
    [
        [wants("Bash", {"command": "x"}), wants("Bash", {"command": "x"}), RESULT],
        [RESULT, wants("Bash", {"command": "x"}), RESULT],
        [*(wants("Bash", {"command": "x"}, f"r{number}") for number in range(300)), RESULT],
        [{"type": "control_cancel_request", "request_id": "never asked"}, lifecycle("never told", "started"), RESULT],
        [{"type": "control_request"}, {"type": "control_response"}, {"type": "command_lifecycle"}, RESULT],
        [{"type": ["control_request"]}, {"type": "control_request", "request_id": 1, "request": {}}, RESULT],
    ],
    ids=["twice", "after its end", "a flood", "out of turn", "broken", "more broken"],
)
def test_a_program_that_misbehaves_hangs_nobody(
    steps: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    spec = misbehaving(*steps)
    output = spec.assembler().assemble(AssemblerInput(current_message="x"))
    events: list[Event] = []

    reply = asyncio.run(run_turn(spec, output, emit=events.append, cwd=tmp_path, permissions="ask", idle_timeout=30))

    assert reply.text == "fine"
    asked = [event.id for event in events if isinstance(event, ApprovalAsked)]
    assert sorted(asked) == sorted(event.id for event in events if isinstance(event, ApprovalOver))
    assert not process_tree.running
    assert not [event for event in events if isinstance(event, TextDelta)]


@pytest.mark.parametrize("words", [["Hurry"], ["Hurry", "/clear"]])
def test_the_scripted_agent_hears_words(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    script = json.dumps([{"say": "Fine."}])
    command = (*("-m", "bullpen.testing.agent", "--as", "claude", "--input-format", "stream-json"), "--script", script)
    spec = replace(agent_spec("claude"), command=(sys.executable, *command))
    output = spec.assembler().assemble(AssemblerInput(current_message="x"))
    events: list[Event] = []
    tells: list[Tell] = []

    async def told() -> str:
        running = asyncio.ensure_future(
            run_turn(spec, output, emit=events.append, cwd=tmp_path, on_tell=tells.append, idle_timeout=30)
        )
        while not tells:
            await asyncio.sleep(0)
        # Not before it is connected.
        while not all(tells[0](word) for word in words[:1]):
            await asyncio.sleep(0.001)
        assert all(tells[0](word) for word in words[1:])
        return (await running).text

    assert asyncio.run(told()) == "\n\n".join(["Fine.", *(f"I heard: {word}" for word in words)])
    assert not [event for event in events if isinstance(event, Notice)]
