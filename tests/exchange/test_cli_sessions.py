"""Sessions of the CLIs as the genuine ones wrote them: what was said, and who said it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.exchange.recorded_sessions import FIRST, FOLDER, HOMES, TYPED, copy_homes, session_files

from bullpen.exchange.cli_sessions.finding import CliSession, CliSessions
from bullpen.exchange.cli_sessions.parts import MOST_TOOLS_NAMED, SessionContent, messages_of, tool

every_cli = pytest.mark.parametrize("cli", HOMES)
HERE = Path(FOLDER)
ID = "99999999-2222-4333-8444-555555555501"

QUESTION = "Please read notes.txt.\n请用中文总结。😀"
ANSWER = "文件有两行：alpha 和 beta。\n\n```python\nprint('done')\n```"
STORY = ("person", "Now write a long story.")
TOOLS = {
    "claude": "Read notes.txt; Bash echo 你好 && ls",
    "codex": "exec_command cat notes.txt; exec_command echo 你好 && ls",
    "gemini": "read_file notes.txt; list_directory .",
    "qwen": "read_file notes.txt; list_directory . (failed)",
}
READ = {"claude": "Read", "codex": "exec_command cat", "gemini": "read_file", "qwen": "read_file"}
# What a CLI keeps of a turn that was interrupted differs.
INTERRUPTED = {
    "claude": [("agent", "Once upon a time…\n\n(interrupted)")],
    "codex": [("agent", "(interrupted)")],
    "gemini": [],
    "qwen": [("agent", "Once upon a time…")],
}


@pytest.fixture(autouse=True)
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    return copy_homes(tmp_path / "homes", monkeypatch)


def said(session: CliSession) -> list[tuple[str, str]]:
    return [("person" if message.by_person else "agent", message.text) for message in session.messages]


@every_cli
def test_what_was_said_is_read_with_the_tools_in_one_line(cli: str) -> None:
    session = CliSessions(cli).session(FIRST[cli], HERE)

    assert said(session) == [
        ("person", QUESTION),
        ("agent", f"I will read it.\n\n(used 2 tools: {TOOLS[cli]})\n\n{ANSWER}"),
        STORY,
        *INTERRUPTED[cli],
        ("person", "And again, short."),
        ("agent", f"(used 1 tool: {READ[cli]} /nowhere/x.txt (failed))\n\nThat file does not exist."),
    ]
    assert session.folder == FOLDER
    assert session.unreadable == 0


@every_cli
def test_each_message_has_its_time(cli: str) -> None:
    times = [message.at for message in CliSessions(cli).session(FIRST[cli], HERE).messages]

    # Gemini gives all messages another time when it resumes.
    assert times == sorted(set(times))
    assert 1_772_449_340_000 < times[0] < times[-1] < 1_772_449_470_000


BEGINNING = "Please read notes.txt. 请用中文总结。"
AFTER_THE_REWIND = [("person", "A better last question."), ("agent", "After the rewind.")]
TYPED_MESSAGES = {
    "claude": [
        ("person", BEGINNING),
        ("agent", f"I will read it.\n\n(used 2 tools: {TOOLS['claude']})\n\n文件有两行。"),
        STORY,
        *INTERRUPTED["claude"],
        ("person", "/hello world"),
        ("agent", "你好！"),
        ("person", "!echo shell"),
        ("agent", "你好！"),
        ("person", "Wait a little."),
        # What was typed meanwhile was taken back, and with it the answer; /cost and /compact are not for the agent.
        ("agent", "Waiting.\n\n(used 1 tool: Bash sleep 6)"),
        *AFTER_THE_REWIND,
        ("person", "What now?"),
        ("agent", "Still here."),
    ],
    "codex": [
        STORY,
        *INTERRUPTED["codex"],
        ("person", "And a short one."),
        ("agent", "你好！"),
        ("person", "Wait a little."),
        ("agent", "Waiting.\n\n(used 1 tool: exec_command sleep 6)"),
        ("person", "And do not forget the tests."),
        ("agent", "Waited."),
        # The rest is in another file, which says how much of the first one it follows.
        *AFTER_THE_REWIND,
    ],
    "gemini": [
        ("person", BEGINNING),
        ("agent", f"I will read it.\n\n(used 2 tools: {TOOLS['gemini']})\n\n文件有两行。"),
        ("person", "And a short one."),
        ("agent", "你好！"),
        ("person", "Wait a little."),
        ("agent", "Waiting.\n\n(used 1 tool: run_shell_command sleep 6)\n\nWaited."),
        ("person", "And do not forget the tests."),
        ("agent", "Waited."),
        *AFTER_THE_REWIND,
    ],
    "qwen": [
        ("person", BEGINNING),
        ("agent", f"I will read it.\n\n(used 2 tools: {TOOLS['qwen']})\n\n文件有两行。"),
        STORY,
        *INTERRUPTED["qwen"],
        ("person", "Now write a long story.And a short one."),
        ("agent", "你好！"),
        ("person", "Wait a little."),
        ("agent", "Waiting.\n\n(used 1 tool: run_shell_command sleep 6 (failed))\n\nWaited."),
        ("person", "And do not forget the tests."),
        ("agent", "Waited."),
        *[("person", "What now?"), ("agent", "Still here.")] * 2,
        *AFTER_THE_REWIND,
    ],
}


@every_cli
def test_what_was_typed_taken_back_and_summarized_is_read_as_the_cli_would_go_on_with_it(cli: str) -> None:
    assert said(CliSessions(cli).session(TYPED[cli], HERE)) == TYPED_MESSAGES[cli]


def test_a_fork_of_codex_begins_with_what_it_was_forked_from(homes: dict[str, Path]) -> None:
    fork = CliSessions("codex").session("01a1e40c", HERE)

    before = said(CliSessions("codex").session(FIRST["codex"], HERE))
    assert said(fork) == [*before, ("person", "In the fork."), ("agent", "Forked answer.")]
    assert fork.missing == ""

    for file in session_files(homes["codex"]):
        if FIRST["codex"] in file.name:
            file.unlink()
    alone = CliSessions("codex").session("01a1e40c", HERE)
    assert said(alone) == [("person", "In the fork."), ("agent", "Forked answer.")]
    assert alone.missing == FIRST["codex"]


def test_what_gemini_replaced_by_a_summary_is_still_there() -> None:
    session = CliSessions("gemini").session("0cb47c6d", HERE)

    questions = [("person", f"Question {number}.") for number in range(4)]
    answers = [("agent", f"Answer {number}.") for number in range(4)]
    exchanged = [message for pair in zip(questions, answers, strict=True) for message in pair]
    assert said(session) == [*exchanged, ("person", "What now"), ("agent", "Still here.")]


@every_cli
def test_the_files_of_a_cli_are_only_read(cli: str, homes: dict[str, Path]) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in session_files(homes[cli])}
    entries = sorted(homes[cli].rglob("*"))

    for session in CliSessions(cli).listed(HERE):
        CliSessions(cli).session(session.id, HERE)

    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in session_files(homes[cli])} == before
    assert sorted(homes[cli].rglob("*")) == entries


def written(home: Path, name: str, *records: dict[str, Any] | str) -> None:
    """Write a file of a session, a line for each record."""
    file = home / name
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [record if isinstance(record, str) else json.dumps(record, ensure_ascii=False) for record in records]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def claude_records(*contents: dict[str, Any]) -> list[dict[str, Any]]:
    """Return records, each following the one before it."""
    time = "2026-11-16T11:00:00.000Z"
    return [
        {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "timestamp": time, **content}
        for number, content in enumerate(contents)
    ]


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def assistant(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "model": "m", "content": list(blocks)}, **more}


def test_what_claude_writes_in_a_persons_place_is_left_out(homes: dict[str, Path]) -> None:
    notification = "<task-notification>done</task-notification>"
    contents = [
        user("<system-reminder>be kind</system-reminder>\nIs it a < b?<ide_selection>x\n</ide_selection>"),
        user("an agent's own question", isSidechain=True),
        user("what a command expands to", isMeta=True),
        assistant({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "It is."}),
        user("This session is being continued", isCompactSummary=True),
        user("<local-command-stdout>ok</local-command-stdout>"),
        user(notification),
        user("go on", origin={"kind": "task-notification"}),
        user([{"type": "text", "text": "And this?"}, {"type": "image", "source": {"data": "AAAA"}}]),
        {"type": "assistant", "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}},
        user("<command-name>/cost</command-name>\n<command-args></command-args>"),
    ]
    written(homes["claude"], f"projects/-x/{ID}.jsonl", *claude_records(*contents))

    assert said(CliSessions("claude").session(ID, HERE)) == [
        ("person", "Is it a < b?"),
        ("agent", "It is."),
        ("person", "And this?\n\n(a picture)"),
    ]


def test_what_is_typed_while_claude_works_is_a_message(homes: dict[str, Path]) -> None:
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": "Also the tests."}
    contents = [
        user("Work."),
        assistant({"type": "text", "text": "I begin."}),
        {"type": "attachment", "attachment": queued},
        assistant({"type": "text", "text": "With tests."}),
    ]
    written(homes["claude"], f"projects/-x/{ID}.jsonl", *claude_records(*contents))

    assert [text for _, text in said(CliSessions("claude").session(ID, HERE))] == [
        *("Work.", "I begin.", "Also the tests.", "With tests."),
    ]


def codex_item(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "response_item",
        "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text} for text in texts]},
    }


def test_a_session_of_an_earlier_codex(homes: dict[str, Path]) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n+x\n*** End Patch"
    written(
        homes["codex"],
        f"sessions/2025/11/01/rollout-2025-11-01T10-00-00-{ID}.jsonl",
        {"type": "session_meta", "payload": {"id": ID, "cwd": "/x", "source": "cli"}},
        codex_item("user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>…"),
        codex_item("user", "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
        codex_item("developer", "<permissions instructions>"),
        codex_item("user", "Fix it."),
        {"type": "response_item", "payload": {"type": "reasoning", "summary": []}},
        {"type": "response_item", "payload": {"type": "custom_tool_call", "name": "apply_patch", "input": patch}},
        {
            "type": "response_item",
            "payload": {"type": "function_call", "name": "shell", "call_id": "c", "arguments": '{"command":["ls"]}'},
        },
        {"type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "c", "exit_code": 2}},
        codex_item("assistant", "Fixed."),
        codex_item("user", "Nonsense."),
        codex_item("assistant", "Pardon?"),
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
        codex_item("user", "Thanks."),
    )

    assert said(CliSessions("codex").session(ID, HERE)) == [
        ("person", "Fix it."),
        ("agent", "(used 2 tools: apply_patch a.py, b.py; shell ls (failed))\n\nFixed."),
        ("person", "Thanks."),
    ]


def test_contents_of_files_that_a_person_named_are_left_out(homes: dict[str, Path]) -> None:
    texts = ["Look at @a.py.", "\n--- Content from referenced files ---", "\nContent from @a.py:\n", "SECRET"]
    record = {
        "uuid": "u",
        "parentUuid": None,
        "type": "user",
        "message": {"parts": [{"text": text} for text in texts]},
    }
    written(homes["qwen"], f"projects/-x/chats/{ID}.jsonl", record)

    assert said(CliSessions("qwen").session(ID, HERE)) == [("person", "Look at @a.py.")]


def test_what_was_taken_back_in_gemini_is_left_out_at_once(homes: dict[str, Path]) -> None:
    def message(name: str, text: str) -> dict[str, Any]:
        return {"id": name, "type": "user", "content": [{"text": text}]}

    written(
        homes["gemini"],
        f".gemini/tmp/project/chats/session-2026-03-02T12-00-{ID[:8]}.jsonl",
        {"sessionId": ID, "projectHash": "x", "kind": "main"},
        message("a", "one"),
        message("b", "two"),
        message("c", "three"),
        {"$rewindTo": "b"},
        message("d", "other"),
        {"$rewindTo": "unknown"},
        {"id": "e", "type": "info", "content": "Request cancelled."},
    )

    assert said(CliSessions("gemini").session(ID, HERE)) == [
        *[("person", "one"), ("person", "other"), ("agent", "(interrupted)")],
    ]


def test_what_qwen_writes_in_a_persons_place_is_left_out(homes: dict[str, Path]) -> None:
    def record(number: int, text: str, **more: Any) -> dict[str, Any]:
        about = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "type": "user"}
        return {**about, "message": {"parts": [{"text": text}]}, **more}

    written(
        homes["qwen"],
        f"projects/-x/chats/{ID}.jsonl",
        record(0, "Hello.", provenance="real_user"),
        record(1, "the goal again", provenance="goal_runtime"),
        record(2, "a task has ended", provenance="real_user", subtype="notification"),
        record(3, "with reminders", subtype="mid_turn_user_message", systemPayload={"displayText": "And the tests."}),
    )

    assert said(CliSessions("qwen").session(ID, HERE)) == [("person", "Hello."), ("person", "And the tests.")]


def test_many_tools_are_counted_and_long_ones_cut() -> None:
    calls = [tool(str(number), "Bash", {"command": f"echo {number} {'x' * 500}"}, at=1) for number in range(40)]

    (message,) = messages_of(SessionContent(parts=calls))

    assert message.text.startswith("(used 40 tools: Bash echo 0 xxx")
    assert message.text.endswith(f"…; and {40 - MOST_TOOLS_NAMED} more)")
    assert len(message.text) < 2_000
    assert "\n" not in message.text
