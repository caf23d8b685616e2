"""The stand-in agent: tells a turn as the real CLIs were recorded telling it, and misbehaves exactly as scripted."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from bullpen.agents import agent_spec
from bullpen.testing.agent import misbehaviour
from bullpen.testing.agent.renderer import pieces

RECORDINGS = Path(__file__).parents[1] / "agents" / "recordings"
CLIS = ("claude", "codex", "gemini", "text")
STREAMING_CLIS = ("claude", "codex", "gemini")
PATIENCE_SECONDS = 60
KIB = 1024

Record = dict[str, Any]
Script = list[Record]
Finished = subprocess.CompletedProcess[bytes]


def command(cli: str, script: Script | None = None, *arguments: str) -> list[str]:
    scripted = [] if script is None else ["--script", json.dumps(script)]
    return [sys.executable, "-m", "bullpen.testing.agent", "--as", cli, *scripted, *arguments]


def run(cli: str, script: Script | None = None, *arguments: str, prompt: bytes = b"hi", **settings: Any) -> Finished:
    argv = command(cli, script, *arguments)
    return subprocess.run(argv, input=prompt, capture_output=True, timeout=PATIENCE_SECONDS, check=False, **settings)


class Agent(subprocess.Popen[bytes]):
    """The agent, running in a group of its own and ended whatever happens."""

    stdin: IO[bytes]
    stdout: IO[bytes]
    stderr: IO[bytes]

    def __init__(self, cli: str, script: Script) -> None:
        pipe = subprocess.PIPE
        argv = command(cli, script)
        super().__init__(argv, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)

    def __exit__(self, *error: object) -> None:
        self.kill()
        super().__exit__(None, None, None)


@contextmanager
def hanging(cli: str, *script: Record) -> Iterator[Agent]:
    """Start the agent and wait until it has played the script and hangs."""
    with Agent(cli, [*script, {"stderr": "ready"}, {"hang": True}]) as agent:
        agent.stdin.close()
        assert agent.stderr.read(5) == b"ready"
        yield agent


def records(output: bytes) -> list[Record]:
    return [json.loads(line) for line in output.splitlines()]


def text_said(cli: str, output: bytes) -> str:
    match cli:
        case "claude":
            return str(records(output)[-1]["result"])
        case "codex":
            items = [record["item"] for record in records(output) if record["type"] == "item.completed"]
            return "".join(item["text"] for item in items if item["type"] == "agent_message")
        case "gemini":
            return "".join(record["content"] for record in records(output) if record.get("role") == "assistant")
        case _:
            return output.decode()


# Recordings

ONE_REQUEST: Record = {"usage": {"input": 111, "output": 22, "cached": 11}, "cost": 0.0008862000000000001}
TWO_REQUESTS: Record = {"usage": {"input": 222, "output": 44, "cached": 22}, "cost": 0.0017724000000000001}
GEMINI_SHELL: Record = {"command": "echo hi; touch made.txt; ls", "description": "x"}
REDIRECTION: Record = {"command": "echo hi > made.txt && cat made.txt", "description": "x"}
REDIRECTION_REFUSED = (
    "Output redirection to '/home/dev/project/made.txt' needs approval. The path is inside the working directories for "
    "this session ('/home/dev/project'), and Claude Code asks before a shell command creates, changes or removes files "
    "there."
)
NOT_REGISTERED = (
    'Tool "run_shell_command" not found. Did you mean one of: "update_topic", "grep_search", "invoke_agent"?'
)
CONNECTION_DROPPED = (
    "stream disconnected before completion: Transport error: network error: error decoding response body"
)

SCRIPT_OF_RECORDING: dict[str, Script] = {
    "claude/plain": [ONE_REQUEST, {"say": "FAKE-ANSWER"}],
    "claude/partial": [ONE_REQUEST, {"think": "deep"}, {"say": "answer in parts", "chunk": 5}],
    "claude/thinking": [ONE_REQUEST, {"think": "deep thoughts"}, {"say": "answer"}],
    "claude/tool_allowed": [
        ONE_REQUEST,
        {"tool": {"name": "Bash", "input": {"command": "echo hi", "description": "x"}, "output": "hi"}},
        {"say": "done"},
        TWO_REQUESTS,
    ],
    "claude/tool_default": [
        ONE_REQUEST,
        {"say": "I will run it."},
        {"tool": {"name": "Bash", "input": REDIRECTION, "output": REDIRECTION_REFUSED, "denied": True}},
        {"say": "done"},
        TWO_REQUESTS,
    ],
    "claude/maxturns": [
        ONE_REQUEST,
        {"tool": {"name": "Bash", "input": {"command": "echo hi", "description": "x"}, "output": "hi"}},
        {"max_turns": True},
    ],
    "claude/err401": [{"retry": 401, "of": 1}, {"error": 401, "message": "scripted error"}],
    "claude/err429": [{"retry": 429, "of": 1}, {"error": 429, "message": "scripted error"}],
    "codex/plain": [{"say": "FAKE-ANSWER"}, ONE_REQUEST],
    "codex/thinking": [
        {"think": "**Deep** thoughts"},
        {"say": "answer"},
        ONE_REQUEST,
    ],
    "codex/tool_patch": [
        {"tool": {"name": "Write", "input": {"file_path": "/home/dev/project/p.txt"}}},
        {"say": "done"},
        TWO_REQUESTS,
    ],
    "codex/tool_workspace": [
        {"tool": {"input": {"command": "echo hi && touch made.txt; ls"}, "output": "hi\nmade.txt\n"}},
        {"say": "done"},
        TWO_REQUESTS,
    ],
    "codex/err401": [{"retry": 401, "of": 1, "message": "scripted error"}, {"error": 401, "message": "scripted error"}],
    "codex/err429": [{"error": 429}],
    "codex/err_drop": [
        {"retry": CONNECTION_DROPPED, "of": 1},
        {"say": "recovered"},
        ONE_REQUEST,
    ],
    "gemini/plain": [{"say": "FAKE-ANSWER", "chunk": 4}, ONE_REQUEST],
    "gemini/tool_default": [
        {"say": "I will.", "chunk": 3},
        {"tool": {"name": "Bash", "input": GEMINI_SHELL, "output": NOT_REGISTERED, "denied": True}},
        {"say": "done", "chunk": 2},
        TWO_REQUESTS,
    ],
    "gemini/tool_yolo": [
        {"tool": {"name": "Bash", "input": GEMINI_SHELL, "output": "hi\nmade.txt"}},
        {"say": "done", "chunk": 2},
        TWO_REQUESTS,
    ],
    "gemini/err401": [{"error": 401, "message": "scripted error"}],
    "gemini/err429": [{"error": 429, "message": "scripted error"}],
}

NOT_PLAYED = {"claude/max_tokens", "claude/tool_slow"}
"""What is recorded for the parser alone."""

IDS = {"uuid", "session_id", "thread_id", "id", "tool_use_id", "tool_id", "api_message_id"}
TIMES = {"timestamp", "duration_ms", "duration_api_ms", "ttft_ms", "ttft_stream_ms", "time_to_request_ms"}
TIMES |= {"retry_delay_ms", "first_content_frame_ms", "thinking_duration_ms"}
# Which of the user's rules allowed a tool.
REASONS = {"reason_type"}


def comparable(stream: list[Record]) -> list[Record]:
    """Return the stream with ids numbered as they appear, times and reasons open, and of its opening the fields."""
    numbers: dict[str, str] = {}

    def same(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if value.get("subtype") == "init":
                return {field: type(content) for field, content in value.items()}
            return {field: same(value[field], field) for field in sorted(value)}
        if isinstance(value, list):
            return [same(content, key) for content in value]
        if key in IDS and not value.startswith("item_"):
            return numbers.setdefault(value, f"#{len(numbers)}")
        return "anything" if key in TIMES | REASONS else value

    return [same(record) for record in stream]


def without_progress(stream: list[Record]) -> list[Record]:
    """Return what Claude Code writes without --include-partial-messages, and without its running count of tokens."""
    progress = {("stream_event", None), ("system", "status"), ("system", "thinking_tokens")}
    return [record for record in stream if (record["type"], record.get("subtype")) not in progress]


def test_every_recording_of_a_cli_it_plays_has_a_script() -> None:
    recorded = {f"{cli}/{path.stem}" for cli in STREAMING_CLIS for path in RECORDINGS.glob(f"{cli}/*.jsonl")}

    assert recorded == {*SCRIPT_OF_RECORDING} | NOT_PLAYED


@pytest.mark.parametrize("case", SCRIPT_OF_RECORDING)
def test_the_stream_is_the_one_the_real_cli_was_recorded_with(case: str) -> None:
    cli = case.split("/")[0]
    recorded_text = (RECORDINGS / f"{case}.jsonl").read_text(encoding="utf-8")
    recorded = records(recorded_text.replace("http://127.0.0.1:9999", "https://api.openai.com").encode())
    real_run = json.loads((RECORDINGS / f"{case}.run.json").read_text(encoding="utf-8"))
    prompt = next((record["content"] for record in recorded if record.get("role") == "user"), "hi")

    finished = run(cli, SCRIPT_OF_RECORDING[case], *real_run["argv"][1:], prompt=prompt.encode())

    told = records(finished.stdout)
    if "--include-partial-messages" not in real_run["argv"]:
        told, recorded = without_progress(told), without_progress(recorded)
    assert comparable(told) == comparable(recorded)
    assert finished.returncode == real_run["exit_code"]


# The answer


@pytest.mark.parametrize(
    ("cli", "told"), [("claude", "{} (Claude Code)\n"), ("codex", "codex-cli {}\n"), ("gemini", "{}\n")]
)
def test_the_tested_version_is_told_without_reading_a_prompt(cli: str, told: str) -> None:
    (version,) = agent_spec(cli).tested_versions

    told_now = subprocess.run(command(cli, None, "--version"), capture_output=True, check=True).stdout

    assert told_now.decode() == told.format(version)


@pytest.mark.parametrize("cli", CLIS)
def test_without_a_script_it_answers_politely(cli: str) -> None:
    finished = run(cli, prompt="[MESSAGE]\nhello\nhow are you, 马克斯?\n".encode())

    assert text_said(cli, finished.stdout) == "Thank you. You said: how are you, 马克斯?"
    assert (finished.returncode, finished.stderr) == (0, b"")


def test_without_a_prompt_it_answers_too() -> None:
    assert run("text", prompt=b"").stdout == b"Hello! You said nothing."


@pytest.mark.parametrize("cli", CLIS)
def test_a_large_prompt_comes_back_unchanged(cli: str) -> None:
    prompt = '日本語 \u2028 🙂 "quoted" \\ \x07\r\n' * (16 * KIB)

    assert text_said(cli, run(cli, [{"echo": True}], prompt=prompt.encode()).stdout) == prompt


@pytest.mark.parametrize("cli", CLIS)
def test_the_prompt_is_measured_in_bytes(cli: str) -> None:
    assert text_said(cli, run(cli, [{"say_prompt_length": True}], prompt="日本".encode()).stdout) == "6"


def test_plain_text_is_all_there_is_in_plain_text() -> None:
    script: Script = [
        {"think": "hm"},
        {"tool": {"input": {"command": "ls"}}},
        {"todo": [{"text": "build"}]},
        {"say": "one ", "chunk": 1},
        {"say": "two"},
    ]

    assert run("text", script).stdout == b"one two"


def test_claudes_result_repeats_only_what_was_said_after_the_last_tool() -> None:
    finished = run("claude", [{"say": "I look."}, {"tool": {}}, {"say": "It "}, {"say": "works."}])

    assert records(finished.stdout)[-1]["result"] == "It works."


def test_codex_carries_its_plan_to_the_end_of_the_turn() -> None:
    before, after = [{"text": "build", "completed": False}], [{"text": "build", "completed": True}]

    told = records(run("codex", [{"todo": before}, {"todo": after}, {"say": "done"}]).stdout)

    plan = {"id": "item_0", "type": "todo_list"}
    assert told[2:-1] == [
        {"type": "item.started", "item": {**plan, "items": before}},
        {"type": "item.updated", "item": {**plan, "items": after}},
        {"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": "done"}},
        {"type": "item.completed", "item": {**plan, "items": after}},
    ]


def test_claude_and_gemini_make_their_plan_with_a_tool() -> None:
    script: Script = [{"todo": [{"text": "build", "completed": True}, {"text": "test"}]}]

    claude = [record for record in records(run("claude", script).stdout) if record["type"] == "assistant"]
    gemini = [record for record in records(run("gemini", script).stdout) if record["type"] == "tool_use"]

    [block] = claude[0]["message"]["content"]
    assert (block["name"], block["input"]) == (
        "TodoWrite",
        {
            "todos": [
                {"content": "build", "status": "completed", "activeForm": "build"},
                {"content": "test", "status": "pending", "activeForm": "test"},
            ]
        },
    )
    assert gemini[0]["parameters"] == {
        "todos": [{"description": "build", "status": "completed"}, {"description": "test", "status": "pending"}]
    }


def test_retries_are_counted() -> None:
    script: Script = [{"retry": 429}, {"retry": 529}]

    claude = [record for record in records(run("claude", script).stdout) if record.get("subtype") == "api_retry"]
    codex = [record["message"] for record in records(run("codex", script).stdout) if record["type"] == "error"]
    gemini = run("gemini", script)

    assert [(record["attempt"], record["max_retries"], record["error"]) for record in claude] == [
        (1, 10, "rate_limit"),
        (2, 10, "overloaded"),
    ]
    assert [message.split(":")[0] for message in codex] == [
        "Reconnecting... 1/5 (unexpected status 429 Too Many Requests",
        "Reconnecting... 2/5 (unexpected status 529 <unknown status code>",
    ]
    assert (gemini.returncode, gemini.stderr.count(b"Attempt")) == (0, 2)


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 529])
def test_http_errors_end_the_turn_in_each_clis_own_way(status: int) -> None:
    script: Script = [{"error": status, "message": "no"}, {"say": "never"}]

    claude, codex, gemini, text = (run(cli, script) for cli in CLIS)

    result = records(claude.stdout)[-1]
    assert (result["subtype"], result["is_error"], result["api_error_status"]) == ("success", True, status)
    assert [record["type"] for record in records(codex.stdout)[-2:]] == ["error", "turn.failed"]
    assert records(gemini.stdout)[-1]["status"] == "error"
    assert text.stderr == f"error {status}: no\n".encode()
    assert [end.returncode for end in (claude, codex, gemini, text)] == [1, 1, status % 256, 1]


def test_the_turn_limit_ends_the_turn() -> None:
    assert [run(cli, [{"max_turns": True}]).returncode for cli in CLIS] == [1, 1, 53, 1]


@pytest.mark.parametrize("cli", STREAMING_CLIS)
def test_an_unknown_event_goes_out_as_it_is(cli: str) -> None:
    event = {"type": "rumour", "self": {"text": "\ud800"}}

    assert event in records(run(cli, [{"unknown_event": event}]).stdout)


@pytest.mark.parametrize("cli", CLIS)
def test_something_is_said_in_slow_pieces(cli: str) -> None:
    finished = run(cli, [{"say": "abcdef", "chunk": 2, "delay": 0.001}])

    assert text_said(cli, finished.stdout) == "abcdef"


def test_pieces_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)

    assert list(pieces("abcde", 2, 0.1)) == ["ab", "cd", "e"]
    assert slept == [0.1] * 3


# The script


def test_the_argument_comes_before_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('[\n  {"say": "from the file, grüezi"}\n]\n', encoding="utf-8")
    environment = {**os.environ, "BULLPEN_TEST_SCRIPT": '[{"say": "from the environment"}]'}

    assert run("text", None, "--script", str(path), env=environment).stdout.decode() == "from the file, grüezi"
    assert run("text", None, f"--script={path}", env=environment).stdout.decode() == "from the file, grüezi"
    assert run("text", None, env=environment).stdout == b"from the environment"


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("no/such/file", "The script no/such/file cannot be read: No such file or directory.\n"),
        ('[{"say": "hi"}', "The script is not JSON: Expecting ',' delimiter: line 1 column 15 (char 14).\n"),
        ("[oops]", "The script is not JSON: Expecting value: line 1 column 2 (char 1).\n"),
        ("[{}] [{}]", "The script is not JSON: Extra data: line 1 column 6 (char 5).\n"),
        ('{"say": "hi"}', "The script is not a list of objects.\n"),
        ('[{"say": "hi"}, {"sya": "hi"}]', "There is no such step: {'sya': 'hi'}.\n"),
    ],
)
def test_a_script_that_cannot_be_played_is_refused_before_anything_is_said(source: str, sentence: str) -> None:
    finished = run("claude", None, "--script", source)

    assert (finished.returncode, finished.stdout, finished.stderr.decode()) == (2, b"", sentence)


def test_an_unknown_cli_is_refused() -> None:
    assert run("cursor").returncode == 2


def test_a_step_that_is_false_is_left_out() -> None:
    assert run("text", [{"hang": False}, {"say": "hi"}]).stdout == b"hi"


def test_it_starts_without_the_slow_half_of_the_standard_library() -> None:
    program = (
        "import sys; from bullpen.testing.agent.__main__ import main; main(['--as', 'claude']); print(*sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", program], check=True, stdin=subprocess.DEVNULL, capture_output=True)

    loaded = set(printed.stdout.decode().splitlines()[-1].split())

    assert loaded & {"argparse", "dataclasses", "enum", "json", "msgspec", "pathlib", "re", "signal", "typing"} == set()


# Signals


@pytest.mark.parametrize(("cli", "status"), [("claude", 0), ("codex", 1), ("gemini", 0), ("text", 130)])
def test_an_interrupt_ends_the_turn_as_the_real_cli_ends_it(cli: str, status: int) -> None:
    with hanging(cli, {"say": "wait"}) as agent:
        agent.send_signal(signal.SIGINT)
        output = agent.stdout.read()

        assert agent.wait(PATIENCE_SECONDS) == status
        assert agent.stderr.read() == b""

    if cli == "claude":
        result = records(output)[-1]
        assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_streaming")
    else:
        assert b"result" not in output
        assert b"turn.completed" not in output


@pytest.mark.parametrize(("cli", "status"), [("claude", 143), ("codex", -15), ("gemini", 0), ("text", -15)])
def test_a_termination_ends_the_turn_without_a_word(cli: str, status: int) -> None:
    with hanging(cli, {"say": "wait"}) as agent:
        agent.send_signal(signal.SIGTERM)

        assert agent.wait(PATIENCE_SECONDS) == status
        assert b"result" not in agent.stdout.read()


def test_an_interrupt_does_not_cut_a_line() -> None:
    """A reader that is slow while we are interrupted still gets every line whole."""
    with Agent("claude", [{"echo": True}, {"hang": True}]) as agent:
        agent.stdin.write(b"x" * (1000 * KIB))
        agent.stdin.close()
        first = agent.stdout.read(1)
        # When the pipe is full, a line far longer than it is under way.
        while unread_bytes(agent) < 15 * 4 * KIB:
            time.sleep(0.002)
        agent.send_signal(signal.SIGINT)
        told = records(first + agent.stdout.read())

    assert told[-1]["subtype"] == "error_during_execution"


def unread_bytes(agent: Agent) -> int:
    (count,) = struct.unpack("i", fcntl.ioctl(agent.stdout, termios.FIONREAD, bytes(4)))
    return int(count)


def test_a_step_waits_until_a_file_is_there(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with Agent("text", [{"say": "before "}, {"wait_for": str(go)}, {"say": "after"}]) as agent:
        agent.stdin.close()
        assert agent.stdout.read(7) == b"before "
        go.touch()

        assert agent.stdout.read() == b"after"


def test_ignored_signals_are_ignored(tmp_path: Path) -> None:
    go = tmp_path / "go"
    deaf: Script = [
        {"ignore": ["SIGINT", "SIGTERM"]},
        {"stderr": "ready"},
        {"wait_for": str(go)},
        {"say": "still here"},
    ]
    with Agent("text", deaf) as agent:
        agent.stdin.close()
        assert agent.stderr.read(5) == b"ready"
        agent.send_signal(signal.SIGINT)
        agent.send_signal(signal.SIGTERM)
        go.touch()

        assert agent.stdout.read() == b"still here"
        assert agent.wait(PATIENCE_SECONDS) == 0


def test_it_takes_an_interrupt_even_if_its_parent_ignores_interrupts() -> None:
    script: Script = [{"stderr": "ready"}, {"hang": True}]
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command("gemini", script)]
    with subprocess.Popen(shell, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as agent:
        assert agent.stderr is not None
        agent.stderr.read(5)
        agent.send_signal(signal.SIGINT)

        assert agent.wait(PATIENCE_SECONDS) == 0


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGINT", "SIGPIPE"])
def test_it_dies_of_a_signal(name: str) -> None:
    assert run("codex", [{"say": "hi"}, {"kill_self": name}]).returncode == -signal.Signals[name]


# Streams


@pytest.mark.parametrize("line", [1, 80, 1000, 100_000])
@pytest.mark.parametrize("size", [1, 65_536, 200_001])
def test_a_flood_has_exactly_the_bytes_it_was_told(size: int, line: int) -> None:
    finished = run("codex", [{"flood": size, "line": line}, {"no_result": True}])

    assert len(finished.stdout) == size
    assert finished.stdout.endswith(b"\n")
    assert {len(row) for row in finished.stdout.splitlines(keepends=True)[:-1]} <= {line}


def test_a_flood_can_go_to_stderr_beside_an_answer() -> None:
    finished = run("text", [{"flood": 300_000, "to": "stderr"}, {"say": "hi"}])

    assert (finished.stdout, len(finished.stderr)) == (b"hi", 300_000)


def test_bytes_are_written_as_they_are() -> None:
    script: Script = [
        {"raw": "a\r\n"},
        {"raw_base64": "//4K"},
        {"stderr": "warning"},
        {"half_line": '{"type":'},
        {"no_result": True},
    ]

    finished = run("claude", script)

    assert (finished.stdout, finished.stderr) == (b'a\r\n\xff\xfe\n{"type":', b"warning")


def test_half_a_line_can_be_completed() -> None:
    finished = run("codex", [{"start": True}, {"half_line": '{"type":'}, {"raw": '"error"}\n'}])

    assert [record["type"] for record in records(finished.stdout)] == [
        "thread.started",
        "turn.started",
        "error",
        "turn.completed",
    ]


def test_a_slow_write_takes_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float | bytes] = []
    monkeypatch.setattr("time.sleep", done.append)
    monkeypatch.setattr(misbehaviour, "write", done.append)

    misbehaviour.slow_write(5, chunk=2, delay=0.05)

    assert done == [0.05, b"xx", 0.05, b"xx", 0.05, b"\n"]


def test_a_closed_stdin_breaks_the_writers_pipe() -> None:
    with Agent("claude", [{"read": False}, {"close_stdin": True}, {"stderr": "ready"}, {"hang": True}]) as agent:
        assert agent.stderr.read(5) == b"ready"
        with pytest.raises(BrokenPipeError):
            agent.stdin.write(b"x" * KIB)


def test_an_unread_prompt_can_be_read_later() -> None:
    prompt = b"x" * (300 * KIB)
    script: Script = [{"read": False}, {"stderr": "not yet"}, {"read": True}, {"say_prompt_length": True}]

    assert run("text", script, prompt=prompt).stdout == str(len(prompt)).encode()


def test_an_unread_prompt_may_never_be_read() -> None:
    finished = run("gemini", [{"read": False}, {"say": "done"}], prompt=b"x" * (300 * KIB))

    assert records(finished.stdout)[1]["content"] == ""
    assert text_said("gemini", finished.stdout) == "done"


def test_stdout_can_end_before_the_process(tmp_path: Path) -> None:
    path = tmp_path / "later"
    with hanging(
        "codex",
        {"say": "hi"},
        {"close_stdout": True},
        {"say": "lost"},
        {"write_file": {"path": str(path), "text": "x"}},
    ) as agent:
        output = agent.stdout.read()

        assert text_said("codex", output) == "hi"
        assert agent.poll() is None
        assert path.read_text() == "x"


def test_it_ends_quietly_when_nobody_reads() -> None:
    with Agent("claude", [{"flood": 1_000_000}]) as agent:
        agent.stdout.close()
        agent.stdin.close()

        assert agent.wait(PATIENCE_SECONDS) == 1
        assert agent.stderr.read() == b""


# Ends


@pytest.mark.parametrize("cli", STREAMING_CLIS)
def test_a_turn_can_end_without_its_final_event(cli: str) -> None:
    whole = records(run(cli, [{"say": "hi"}]).stdout)
    final = records(run(cli, [{"say": "hi"}, {"finish": True}, {"no_result": True}]).stdout)
    cut = run(cli, [{"say": "hi"}, {"no_result": True}])

    assert len(final) == len(whole)
    assert cut.returncode == 0
    assert {record["type"] for record in whole} - {record["type"] for record in records(cut.stdout)} in (
        {"result"},
        {"turn.completed"},
    )


def test_it_ends_with_the_exit_status_it_was_told() -> None:
    finished = run("gemini", [{"stderr": "Invalid auth method selected.\n"}, {"exit": 41}])

    assert (finished.returncode, finished.stdout, finished.stderr) == (41, b"", b"Invalid auth method selected.\n")


def test_it_can_linger_after_the_final_event() -> None:
    with hanging("codex", {"say": "hi"}, {"finish": True}) as agent:
        told = agent.stdout.read(64 * KIB)

        assert records(told)[-1]["type"] == "turn.completed"
        assert agent.poll() is None


# Processes


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def left_behind(pid_file: Path) -> Iterator[int]:
    """Give the process that was left behind, and end it."""
    pid = int(pid_file.read_text())
    try:
        yield pid
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_a_child_sleeps_in_the_agents_group(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with hanging("claude", {"child": 60, "pid_file": str(pid_file)}) as agent, left_behind(pid_file) as pid:
        assert os.getpgid(pid) == agent.pid


def test_an_orphan_outlives_the_agent_in_a_session_of_its_own(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    with hanging("claude", {"orphan": 60, "pid_file": str(pid_file)}) as agent, left_behind(pid_file) as pid:
        parent = os.getsid(pid)
        assert parent not in (os.getsid(0), agent.pid, pid)
        assert not is_alive(parent)

        os.killpg(agent.pid, signal.SIGKILL)
        agent.wait(PATIENCE_SECONDS)

        assert is_alive(pid)


@pytest.mark.parametrize("kind", ["child", "orphan"])
def test_only_a_process_that_holds_the_output_keeps_the_reader_waiting(kind: str, tmp_path: Path) -> None:
    pid_file, holding = tmp_path / "pid", tmp_path / "holding"
    run("text", [{kind: 60, "pid_file": str(pid_file)}])
    with left_behind(pid_file) as pid:
        assert is_alive(pid)

    with Agent("text", [{kind: 60, "pid_file": str(holding), "holds_output": True}]) as agent:
        agent.stdin.close()
        agent.wait(PATIENCE_SECONDS)
        os.set_blocking(agent.stdout.fileno(), False)
        with left_behind(holding):
            assert agent.stdout.read() is None
        os.set_blocking(agent.stdout.fileno(), True)
        assert agent.stdout.read() == b""


def test_a_file_is_written_where_the_agent_works(tmp_path: Path) -> None:
    run("codex", [{"write_file": {"path": "made.txt", "text": "grüezi\n"}}], cwd=tmp_path)

    assert (tmp_path / "made.txt").read_text(encoding="utf-8") == "grüezi\n"
