"""run_turn with real processes: good ones, and every kind of bad one."""

import asyncio
import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec.structs import replace

from bullpen.agents import (
    AgentSpec,
    Reply,
    agent_spec,
    command_agent,
    guardian,
    process,
    process_tree,
    run_turn,
    watchman,
)
from bullpen.agents.process_tree import TURN_VARIABLE, ProcessId, is_alive, process_id
from bullpen.agents.processes.proc_files import ProcFiles
from bullpen.agents.processes.psutil_table import PsutilTable
from bullpen.context import AssemblerInput, AssemblerOutput
from bullpen.errors import (
    AgentCrashed,
    AgentFailed,
    AgentNotInstalled,
    AgentTimedOut,
    PromptTooLong,
    ProtocolBroken,
)
from bullpen.testing.clock import ManualClock
from bullpen.testing.stage import write_scripts
from bullpen.turn_events import Event, Failed, Finished, Notice, TextDelta, Thinking, TodoItem, TodoList

AGENTS = ["claude", "codex", "gemini", "text"]
every_agent = pytest.mark.parametrize("agent", AGENTS)
ANSWER = '  {"looks": "like JSON"}\n\n\tindented 你好 😀\n{\n[NEXT: x]'

Result = TypeVar("Result")
Step = dict[str, Any]


@pytest.fixture(autouse=True)
def own_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def scripted(agent: str) -> AgentSpec:
    """Return an agent's spec with our scripted program in place of the CLI."""
    spec = command_agent(["text"]) if agent == "text" else agent_spec(agent)
    return replace(spec, command=(sys.executable, "-m", "bullpen.testing.agent", "--as", agent, *spec.command[1:]))


def prompt(spec: AgentSpec, text: str = "hello") -> AssemblerOutput:
    return spec.assembler().assemble(AssemblerInput(current_message=text, system_instruction="You are Max"))


class Turn:
    """A turn with a script, and everything it emitted."""

    def __init__(self, agent: str, tmp_path: Path) -> None:
        self.spec = scripted(agent)
        self.cwd = tmp_path
        self.events: list[Event] = []

    async def run(self, *steps: Step, text: str = "hello", **options: Any) -> Reply:
        env = {"BULLPEN_TEST_SCRIPT": json.dumps(steps), **options.pop("env", {})}
        options = {"emit": self.events.append, "cwd": self.cwd, "env": env, **options}
        return await run_turn(self.spec, prompt(self.spec, text), **options)

    async def until_it_speaks(self) -> None:
        await until(lambda: any(isinstance(event, TextDelta) for event in self.events))

    async def fail(self, *steps: Step, **options: Any) -> Failed:
        with pytest.raises(AgentFailed) as raised:
            await self.run(*steps, **options)
        assert raised.value.event == self.events[-1]
        endings = [event for event in self.events if isinstance(event, Finished | Failed)]
        assert endings == [raised.value.event]
        return raised.value.event


async def until(is_true: Callable[[], bool]) -> None:
    while not is_true():
        await asyncio.sleep(0.002)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run to the end, and see that nothing of ours is left; other tests may have left something."""
    before, others = open_descriptors(), children()
    result = asyncio.run(work)
    assert open_descriptors() <= before
    assert children() <= others
    return result


def open_descriptors() -> set[str]:
    waiting = {str(one.channel.fileno()) for one in guardian.idle}
    return {entry.name for entry in Path("/proc/self/fd").iterdir()} - waiting


def children() -> set[int]:
    return {*ProcFiles().children(os.getpid())} - {one.pid for one in guardian.guardians}


@every_agent
def test_the_answer_comes_back_whole(agent: str, tmp_path: Path) -> None:
    turn = Turn(agent, tmp_path)

    reply = run(turn.run({"say": ANSWER, "chunk": 3}))

    assert reply.text == ANSWER
    assert turn.events[-1] == Finished(ANSWER)
    assert "".join(event.text for event in turn.events if isinstance(event, TextDelta)).rstrip("\n") == ANSWER
    assert reply.seconds > 0
    assert reply.command[1:4] == ("-m", "bullpen.testing.agent", "--as")


@every_agent
def test_a_large_prompt_and_a_large_answer_pass_each_other(agent: str, tmp_path: Path) -> None:
    text = "0123456789abcde\n" * 40_000 + "最后 😀"

    reply = run(Turn(agent, tmp_path).run({"echo": True}, text=text))

    assert text in reply.text


def test_thinking_tools_and_noise_are_not_part_of_the_answer(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)

    reply = run(
        turn.run(
            {"think": "hm"},
            {"say": "Let me look."},
            {"tool": {"name": "Bash", "input": {"command": "ls"}, "output": "secret.txt"}},
            {"raw": "Debugger attached.\n"},
            {"say": "All good."},
        )
    )

    assert reply.text == "Let me look.\n\nAll good."
    assert Notice(kind="noise", text="Debugger attached.") in turn.events


@pytest.mark.parametrize("agent", AGENTS[:3])
def test_a_list_of_things_to_do(agent: str, tmp_path: Path) -> None:
    turn = Turn(agent, tmp_path)
    todos = [{"text": "one", "completed": True}, {"text": "two", "completed": False}]

    run(turn.run({"todo": todos}, {"say": "ok"}))

    (found, *_) = [event for event in turn.events if isinstance(event, TodoList)]
    assert found == TodoList((TodoItem("one", done=True), TodoItem("two", done=False)))


@every_agent
def test_an_exit_code_is_a_crash_with_what_was_said(agent: str, tmp_path: Path) -> None:
    event = run(Turn(agent, tmp_path).fail({"say": "half an ans"}, {"stderr": "it broke\n"}, {"exit": 3}))

    assert (event.kind, event.exit_code, event.stderr_tail) == ("crashed", 3, "it broke")
    assert event.partial_text == "half an ans"
    assert event.message == "It ended with exit code 3: it broke"


@every_agent
def test_a_signal_is_a_crash(agent: str, tmp_path: Path) -> None:
    event = run(Turn(agent, tmp_path).fail({"kill_self": "SIGSEGV"}))

    assert (event.kind, event.exit_code, event.message) == ("crashed", -11, "It ended with signal SIGSEGV.")


@pytest.mark.parametrize("agent", AGENTS[:3])
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "crashed"),
        (401, "not_signed_in"),
        (403, "not_signed_in"),
        (429, "quota"),
        (500, "overloaded"),
        (529, "overloaded"),
    ],
)
def test_errors_of_the_service_have_a_kind(agent: str, status: int, kind: str, tmp_path: Path) -> None:
    event = run(Turn(agent, tmp_path).fail({"error": status, "message": "scripted"}))

    assert event.kind == kind
    assert event.hint


@pytest.mark.parametrize("agent", AGENTS[:3])
def test_no_final_event_is_a_broken_protocol(agent: str, tmp_path: Path) -> None:
    event = run(Turn(agent, tmp_path).fail({"say": "I am done, believe me"}, {"no_result": True}))

    assert event.kind == "protocol_broken"
    assert event.partial_text == "I am done, believe me"


@every_agent
def test_a_program_that_never_reads_its_prompt_is_no_trouble(agent: str, tmp_path: Path) -> None:
    reply = run(Turn(agent, tmp_path).run({"read": False}, {"close_stdin": True}, {"say": "ok"}, text="x" * 900_000))

    assert reply.text == "ok"


@every_agent
def test_bad_utf8_and_half_lines_are_no_trouble(agent: str, tmp_path: Path) -> None:
    turn = Turn(agent, tmp_path)

    reply = run(turn.run({"raw_base64": "//4K"}, {"say": "ok"}, {"half_line": ""}))

    assert reply.text.endswith("ok")


def test_silence_is_a_timeout(tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn("claude", tmp_path)

    async def silent() -> Failed:
        failing = asyncio.ensure_future(turn.fail({"say": "wait"}, {"hang": True}, idle_timeout=2.5))
        await turn.until_it_speaks()
        # It may not have written all of it yet.
        await clock.until(failing.done, step=2.5)
        return await failing

    event = run(silent())

    assert (event.kind, event.message) == ("timed_out", "It wrote nothing for 2.5 seconds.")
    assert event.partial_text == "wait"


LOST: Step = {"retry": "error sending request", "of": 5}


def test_a_cli_that_only_reports_failed_connections_is_stopped(tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn("codex", tmp_path)

    async def lost() -> Failed:
        steps = [LOST, {"wait_for": "go"}, LOST, {"wait_for": "again"}, LOST, {"hang": True}]
        failing = asyncio.ensure_future(turn.fail(*steps))
        await until(lambda: len(retries(turn)) == 1)
        clock.advance(170)
        (tmp_path / "go").touch()
        await until(lambda: len(retries(turn)) == 2)
        clock.advance(70)
        assert not failing.done(), "it may be thinking since then"
        (tmp_path / "again").touch()
        return await failing

    event = run(lost())

    first, second, third = retries(turn)
    assert (first.attempts, second.attempts, third.attempts, third.since) == (1, 2, 3, first.since)
    assert event.kind == "overloaded"
    began, _, reason = event.message.partition(" (3 attempts): ")
    assert began == "It could not reach its server for 4 min 00 s"
    assert reason == third.text
    assert "error sending request" in reason


def test_a_failed_login_is_the_reason_why_it_cannot_connect(tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn("codex", tmp_path)

    async def lost() -> Failed:
        failing = asyncio.ensure_future(turn.fail({"retry": 401, "message": "Unauthorized"}, {"hang": True}))
        await until(lambda: len(retries(turn)) == 1)
        await clock.until(failing.done, step=60)
        return await failing

    assert run(lost()).kind == "not_signed_in"


@pytest.mark.parametrize(
    ("status", "words", "kind"),
    [(429, "Its server limited requests", "quota"), (529, "Its server was busy", "overloaded")],
)
def test_a_server_that_is_busy_or_limits_requests_is_not_out_of_reach(
    status: int, words: str, kind: str, tmp_path: Path, clock: ManualClock
) -> None:
    turn = Turn("claude", tmp_path)

    async def refused() -> Failed:
        failing = asyncio.ensure_future(turn.fail({"retry": status}, {"hang": True}, idle_timeout=30))
        await until(lambda: len(retries(turn)) == 1)
        await clock.until(failing.done, step=5)
        return await failing

    event = run(refused())
    assert (event.kind, event.message.partition(" for ")[0]) == (kind, words)
    assert f"({status})" in event.message


def test_who_is_silent_after_a_failed_connection_may_think(tmp_path: Path, clock: ManualClock) -> None:
    """Codex thinks for minutes without a word, also after it has connected again."""
    turn = Turn("codex", tmp_path)

    async def thinks() -> Reply:
        going = asyncio.ensure_future(turn.run(LOST, {"wait_for": "go"}, {"say": "Done."}))
        await until(lambda: len(retries(turn)) == 1)
        await clock.until_waiting()
        clock.advance(500)
        for _ in range(20):
            await asyncio.sleep(0)
        (tmp_path / "go").touch()
        return await going

    assert run(thinks()).text == "Done."


def test_a_shorter_idle_timeout_counts_for_connections_too(tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn("codex", tmp_path)

    async def lost() -> Failed:
        failing = asyncio.ensure_future(turn.fail(LOST, {"wait_for": "go"}, LOST, {"hang": True}, idle_timeout=30))
        await until(lambda: len(retries(turn)) == 1)
        clock.advance(20)
        (tmp_path / "go").touch()
        await until(lambda: len(retries(turn)) == 2)
        await clock.until(failing.done, step=5)
        return await failing

    assert run(lost()).message.startswith("It could not reach its server for 50 s (2 attempts): ")


@pytest.mark.parametrize("work", [{"say": "There."}, {"think": "Hm."}], ids=["text", "thinking"])
def test_who_works_again_has_a_connection(work: Step, tmp_path: Path, clock: ManualClock) -> None:
    turn = Turn("claude", tmp_path)

    async def back() -> Reply:
        going = asyncio.ensure_future(turn.run(LOST, work, {"wait_for": "go"}, {"say": "Done."}))
        await until(lambda: any(isinstance(event, TextDelta | Thinking) for event in turn.events))
        clock.advance(400)
        await asyncio.sleep(0)
        (tmp_path / "go").touch()
        return await going

    assert run(back()).text.endswith("Done.")


def retries(turn: Turn) -> list[Notice]:
    return [event for event in turn.events if isinstance(event, Notice) and event.kind == "retry"]


def test_talking_too_long_is_a_timeout(tmp_path: Path, clock: ManualClock) -> None:
    steps: list[Step] = [{"raw": "one\n"}, {"wait_for": "go"}, {"raw": "two\n"}, {"hang": True}]
    output: list[bytes] = []

    async def talking() -> None:
        turn = Turn("gemini", tmp_path).run(*steps, idle_timeout=5, total_timeout=8, on_output=output.append)
        failing = asyncio.ensure_future(turn)
        await until(lambda: b"one" in b"".join(output))
        clock.advance(4)
        (tmp_path / "go").touch()
        await until(lambda: b"two" in b"".join(output))
        await clock.until(failing.done, step=4)
        with pytest.raises(AgentTimedOut, match="It did not finish within 8 seconds"):
            await failing

    run(talking())


def test_a_program_that_ignores_signals_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.01)
    turn = Turn("codex", tmp_path)

    async def cancelled() -> None:
        steps: list[Step] = [{"ignore": ["SIGINT", "SIGTERM"]}, {"say": "deaf"}, {"hang": True}]
        task = asyncio.ensure_future(turn.run(*steps))
        await turn.until_it_speaks()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancelled())

    assert marked_processes(tmp_path) == []


@every_agent
def test_cancelling_keeps_what_was_said_and_leaves_no_process(agent: str, tmp_path: Path) -> None:
    turn = Turn(agent, tmp_path)

    async def cancel_when_it_speaks() -> None:
        task = asyncio.ensure_future(turn.run({"child": 60}, {"orphan": 60}, {"say": "so far"}, {"hang": True}))
        await turn.until_it_speaks()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()

    run(cancel_when_it_speaks())

    assert turn.events[-1] == Failed(kind="cancelled", message="The turn was cancelled.", partial_text="so far")
    assert marked_processes(tmp_path) == []


def marked_processes(tmp_path: Path) -> list[int]:
    """Return the processes that still run in this test's folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if (entry / "cwd").resolve() == tmp_path and entry.name != str(os.getpid()):
                    found.append(int(entry.name))
    return found


@every_agent
def test_what_a_program_leaves_behind_is_ended(agent: str, tmp_path: Path) -> None:
    reply = run(Turn(agent, tmp_path).run({"child": 60}, {"orphan": 60}, {"say": "ok"}))

    assert reply.text == "ok"
    assert marked_processes(tmp_path) == []


@pytest.mark.parametrize("escape", ["env -i", "setsid"])
def test_what_a_shell_leaves_in_the_background_is_ended(escape: str, tmp_path: Path) -> None:
    spec = leaving_one_behind(escape)

    reply = run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path))

    assert reply.text == "hi"
    assert marked_processes(tmp_path) == []


@pytest.mark.parametrize("escape", ["env -i", "setsid", "setsid setsid --fork"])
def test_it_is_also_ended_where_there_is_no_proc(escape: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_tree, "process_table", PsutilTable)
    monkeypatch.setattr(guardian, "take", lambda: None)
    monkeypatch.setattr(watchman, "watch", lambda _: None)
    spec = leaving_one_behind(escape)

    reply = run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path))

    assert reply.text == "hi"
    # It was killed. Where nothing tells us when it is gone, that may take a moment.
    run(until(lambda: marked_processes(tmp_path) == []))


def leaving_one_behind(escape: str) -> AgentSpec:
    """Return an agent that answers while something of it still runs."""
    left = f"{escape} sh -c ': > left; exec sleep 300' > /dev/null 2>&1 &"
    return command_agent(["bash", "-c", f"cat > /dev/null; {left} until [ -e left ]; do sleep 0.002; done; echo hi"])


def test_a_program_that_keeps_forking_is_ended(tmp_path: Path) -> None:
    forks = "(for i in $(seq 60); do setsid sleep 300 & done) > /dev/null 2>&1 &"
    spec = command_agent(["bash", "-c", f"cat > /dev/null; {forks} echo hi"])

    run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path))

    assert marked_processes(tmp_path) == []


def test_exit_codes_of_the_application_around_us_are_left_alone(tmp_path: Path) -> None:
    theirs = subprocess.Popen(["sh", "-c", "exit 7"], start_new_session=True)
    os.waitid(os.P_PID, theirs.pid, os.WEXITED | os.WNOWAIT)

    asyncio.run(Turn("claude", tmp_path).run({"say": "ok"}))

    assert theirs.wait() == 7


def test_an_unheard_of_signal_is_a_crash(tmp_path: Path) -> None:
    spec = command_agent(["bash", "-c", "kill -35 $$"])
    events: list[Event] = []

    with pytest.raises(AgentCrashed, match="It ended with signal"):
        run(run_turn(spec, prompt(spec), emit=events.append, cwd=tmp_path))

    assert [type(event) for event in events] == [Failed]


def test_a_program_that_prints_nothing_has_not_answered(tmp_path: Path) -> None:
    spec = command_agent(["true"])

    with pytest.raises(ProtocolBroken, match="It ended without an answer"):
        run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path))


def test_blank_lines_at_the_end_of_an_answer_are_kept(tmp_path: Path) -> None:
    spec = command_agent(["printf", "a\\n\\n\\n"])

    assert run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path)).text == "a\n\n"


def test_text_after_the_exit_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A busy machine does not read all of it sooner.
    monkeypatch.setattr(process, "DRAIN_SECONDS", 60)
    has_ended = "! grep -q '^State:.[^Z]' /proc/$$/status 2> /dev/null"
    later = f"(until {has_ended}; do :; done; head -c 30000000 /dev/zero | tr '\\0' x)"
    spec = command_agent(["bash", "-c", f"cat > /dev/null; {later} & exit 0"])

    with pytest.raises(ProtocolBroken, match="more than 16 MiB"):
        run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path))


def test_a_program_beside_the_working_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    tool = tmp_path / "sub" / "tool.sh"
    tool.write_text("#!/bin/sh\ncat > /dev/null; pwd\n")
    tool.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    spec = command_agent(["./tool.sh"])

    assert run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd="sub")).text == str(tmp_path / "sub")


@pytest.mark.parametrize(
    "options", [{"permissions": "everything"}, {"model": "--skip-trust"}], ids=["permissions", "model"]
)
def test_an_argument_that_makes_no_sense_is_refused_before_anything_starts(options: Any, tmp_path: Path) -> None:
    events: list[Event] = []
    spec = scripted("gemini")

    with pytest.raises(ValueError, match=r"must be one of|not a model name"):
        run(run_turn(spec, prompt(spec), emit=events.append, cwd=tmp_path, **options))

    assert events == []


def test_system_text_that_would_be_lost_is_refused(tmp_path: Path) -> None:
    spec = command_agent(["cat"])
    output = agent_spec("claude").assembler().assemble(AssemblerInput(current_message="x", system_instruction="y"))

    with pytest.raises(ValueError, match="accepts no system text besides the prompt"):
        run(run_turn(spec, output, emit=lambda _: None, cwd=tmp_path))


def test_a_last_word_that_is_too_long_does_not_hang(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nread -r message; head -c 9000000 /dev/zero | tr '\\0' x; echo; cat > /dev/null\n")
    program.chmod(0o755)
    spec = replace(agent_spec("claude"), command=(str(program),))
    events: list[Event] = []

    with pytest.raises(ProtocolBroken):
        run(run_turn(spec, prompt(spec), emit=events.append, cwd=tmp_path, idle_timeout=20))

    assert any(isinstance(event, Notice) and "overlong" in event.text for event in events)


def test_two_turns_at_once_do_not_end_each_others_children(tmp_path: Path) -> None:
    async def both() -> tuple[Reply, Reply]:
        quick, slow = Turn("claude", tmp_path), Turn("claude", tmp_path)
        ending = asyncio.ensure_future(
            slow.run({"child": 60}, {"orphan": 60}, {"say": "slow"}, {"wait_for": "quick"}, {"say": "er"})
        )
        await slow.until_it_speaks()
        first = await quick.run({"orphan": 60}, {"say": "quick"})
        (tmp_path / "quick").touch()
        return first, await ending

    assert [reply.text for reply in run(both())] == ["quick", "slower"]


def test_a_flood_of_noise_is_counted_not_kept(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)

    reply = run(turn.run({"flood": 20_000_000, "line": 1000}, {"flood": 5_000_000, "to": "stderr"}, {"say": "ok"}))

    assert reply.text == "ok"
    assert len(turn.events) < 120


def test_a_flood_of_text_is_stopped(tmp_path: Path) -> None:
    event = run(Turn("text", tmp_path).fail({"flood": 30_000_000, "line": 1000}))

    assert (event.kind, event.message) == ("protocol_broken", "It wrote more than 16 MiB and was stopped.")
    assert len(event.partial_text) < 20_000_000


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    turn = Turn("claude", tmp_path)

    reply = run(turn.run({"flood": 20_000_000, "line": 20_000_000}, {"say": "ok"}))

    assert reply.text == "ok"
    assert any(isinstance(event, Notice) and "overlong lines" in event.text for event in turn.events)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    spec = replace(agent_spec("codex"), command=("no-such-codex",))
    events: list[Event] = []

    with pytest.raises(
        AgentNotInstalled, match=r"openai-codex: The program no-such-codex was not found\. Install it with"
    ):
        run(run_turn(spec, prompt(spec), emit=events.append, cwd=tmp_path))

    assert [type(event) for event in events] == [Failed]


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    spec = command_agent([str(program)])

    with pytest.raises(AgentCrashed, match="could not be started"):
        run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    spec = scripted("claude")

    with pytest.raises(AgentCrashed, match=r"The folder .*/nowhere does not exist\. Check its cwd\."):
        run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path / "nowhere"))


def test_a_prompt_longer_than_the_cli_takes_is_not_sent(tmp_path: Path) -> None:
    spec = scripted("codex")
    output = replace(prompt(spec), prompt="x" * 1_048_577)

    with pytest.raises(PromptTooLong, match="1,048,577 bytes, and the limit is 1,048,576"):
        run(run_turn(spec, output, emit=lambda _: None, cwd=tmp_path))


def test_an_emit_that_fails_ends_the_turn_and_its_processes(tmp_path: Path) -> None:
    def broken(_: Event) -> None:
        raise RuntimeError("nobody listens")

    with pytest.raises(RuntimeError, match="nobody listens"):
        run(Turn("claude", tmp_path).run({"say": "hi"}, {"hang": True}, emit=broken))


BEGINS = '{"type": "system", "subtype": "init", "session_id": "s"}'
OLDER = """#!/bin/sh
echo start >> starts
case "$*" in *--append-system-prompt-file*)
    echo "error: unknown option '--append-system-prompt-file'" >&2
    exit 1
esac
exec {python} -m bullpen.testing.agent --as claude --turns turns "$@"
"""


def test_a_release_without_the_option_for_a_file_gets_its_system_text_in_the_prompt(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(OLDER.format(python=sys.executable))
    program.chmod(0o755)
    write_scripts(tmp_path / "turns", [[{"say": "hi"}]])
    spec = replace(agent_spec("claude"), command=(str(program), *agent_spec("claude").command[1:]))
    source = AssemblerInput(current_message="Go", team_task="Ship", system_instruction="You are Max.")
    events: list[Event] = []

    def turn() -> str:
        reply = run(run_turn(spec, spec.assembler().assemble(source), emit=events.append, cwd=tmp_path))
        assert "--append-system-prompt-file" not in reply.command
        return reply.text

    assert [turn(), turn()] == ["hi", "hi"]
    whole = "[SYSTEM]\nYou are Max.\n\n[TEAM_TASK]\nShip\n\n[MESSAGE]\nGo"
    given = [json.loads((tmp_path / "turns" / f"prompt-{number}").read_text()) for number in (1, 2)]
    assert [record["message"]["content"] for record in given] == [whole, whole]
    [notice] = [event.text for event in events if isinstance(event, Notice)]
    where = "so its instructions are at the beginning of its prompt. A newer release takes them separately."
    assert notice == f"{program} does not know --append-system-prompt-file, {where}"
    assert sum(isinstance(event, Finished | Failed) for event in events) == 2
    assert (tmp_path / "starts").read_text().split() == ["start"] * 3, "it is tried once for a release"

    program.write_text(f"{OLDER.format(python=sys.executable)}# the next release")
    turn()
    assert (tmp_path / "starts").read_text().split() == ["start"] * 5


@pytest.mark.parametrize(
    "says",
    [
        "echo 'cannot read --append-system-prompt-file' >&2",
        f"echo '{BEGINS}'\necho 'unknown option --append-system-prompt-file' >&2",
    ],
    ids=["another failure", "in its turn"],
)
def test_a_turn_is_not_run_again_for_anything_else(says: str, tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\necho start >> starts\n{says}\nexit 1\n")
    program.chmod(0o755)
    spec = replace(agent_spec("claude"), command=(str(program),))
    source = AssemblerInput(current_message="Go", system_instruction="You are Max.")

    with pytest.raises(AgentCrashed):
        run(run_turn(spec, spec.assembler().assemble(source), emit=lambda _: None, cwd=tmp_path))
    assert (tmp_path / "starts").read_text() == "start\n"


def test_the_system_text_travels_in_a_private_file_that_goes_away(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(
        "#!/bin/sh\n"
        'for last; do :; done; stat -c %a "$last" > seen; cat "$last" >> seen; echo "$last" > path\n'
        'tr "\\0" " " < /proc/$$/cmdline > cmdline\n'
        """echo '{"type":"result","subtype":"success","is_error":false,"result":"ok"}'\n"""
    )
    program.chmod(0o755)
    spec = replace(agent_spec("claude"), command=(str(program),))
    output = replace(prompt(spec), system_flag="系统 secret " * 50_000)

    reply = run(run_turn(spec, output, emit=lambda _: None, cwd=tmp_path))

    assert reply.text == "ok"
    assert (tmp_path / "seen").read_text() == f"600\n{output.system_flag}"
    assert not Path((tmp_path / "path").read_text().strip()).exists()
    assert "secret" not in (tmp_path / "cmdline").read_text()


def test_no_place_for_the_system_text_is_a_failure_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))

    event = run(Turn("claude", tmp_path).fail({"say": "hi"}))

    assert event.message.startswith("Its system text could not be written to")
    assert event.hint == "Free some space there, or set TMPDIR."


def test_the_prompt_of_claude_is_one_json_message_and_its_input_is_closed_in_the_end(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text(
        "#!/bin/sh\n"
        'read -r message; printf %s "$message" > message\n'
        """echo '{"type":"result","subtype":"success","is_error":false,"result":"ok"}'\n"""
        "cat > rest; echo closed > end\n"
    )
    program.chmod(0o755)
    spec = replace(agent_spec("claude"), command=(str(program),))

    reply = run(run_turn(spec, prompt(spec, "你好\n😀"), emit=lambda _: None, cwd=tmp_path))

    assert reply.text == "ok"
    assert json.loads((tmp_path / "message").read_text()) == {
        "type": "user",
        "message": {"role": "user", "content": "[MESSAGE]\n你好\n😀"},
    }
    assert (tmp_path / "end").read_text() == "closed\n"


def test_the_child_gets_little_of_our_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "OPENAI_API_KEY", "LC_ALL", "http_proxy"):
        monkeypatch.setenv(name, f"value of {name}")
    spec = replace(agent_spec("codex"), command=("env",), permissions={"read-only": ()}, last_arguments=())
    spec = replace(spec, stream="text", parser=command_agent(["x"]).parser)

    reply = run(run_turn(spec, prompt(spec), emit=lambda _: None, cwd=tmp_path, env={"MINE": "yes"}))

    names = {line.partition("=")[0] for line in reply.text.splitlines()}
    assert {"OPENAI_API_KEY", "LC_ALL", "http_proxy", "MINE", "PATH", TURN_VARIABLE} <= names
    assert not {"AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "PYTEST_CURRENT_TEST"} & names


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_when_bullpen_dies_its_agents_die_and_the_next_start_ends_the_rest(tmp_path: Path, how: str) -> None:
    victim = start_turn_in_another_process(tmp_path, [{"orphan": 60}, {"child": 60}, {"say": "up"}, {"hang": True}])
    family = wait_for(lambda: processes_in(tmp_path, at_least=3))

    os.kill(victim.pid, getattr(signal, how))
    os.waitpid(victim.pid, 0)

    from bullpen.agents.crash_records import CrashRecords

    folder = tmp_path / "state" / "bullpen" / "running"
    assert len(list(folder.iterdir())) == 1
    CrashRecords(folder).end_all()
    wait_for(lambda: not any(is_alive(process) for process in family))
    assert list(folder.iterdir()) == []


def start_turn_in_another_process(tmp_path: Path, steps: list[Step]) -> ProcessId:
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from bullpen.agents import agent_spec, run_turn
from bullpen.context import AssemblerInput
from msgspec.structs import replace
spec = agent_spec("claude")
spec = replace(spec, command=(sys.executable, "-m", "bullpen.testing.agent", "--as", "claude", *spec.command[1:]))
output = spec.assembler().assemble(AssemblerInput(current_message="x"))
env = {{"BULLPEN_TEST_SCRIPT": {json.dumps(json.dumps(steps))}}}
asyncio.run(run_turn(spec, output, emit=lambda _: None, cwd={str(tmp_path)!r}, env=env))
"""
    pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], dict(os.environ))
    identity = process_id(pid)
    assert identity is not None
    return identity


def processes_in(tmp_path: Path, at_least: int) -> list[ProcessId]:
    found = [identity for pid in marked_processes(tmp_path) if (identity := process_id(pid)) is not None]
    return found if len(found) >= at_least else []


def wait_for(condition: Callable[[], Result], seconds: float = 15) -> Result:
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return result


def test_leftovers_of_a_living_owner_are_left_alone(tmp_path: Path) -> None:
    from bullpen.agents.crash_records import CrashRecords

    async def look_while_it_runs() -> None:
        turn = Turn("claude", tmp_path)
        task = asyncio.ensure_future(turn.run({"say": "wait"}, {"wait_for": "looked"}, {"say": "ok"}))
        await turn.until_it_speaks()
        assert CrashRecords().end_all() == 0
        (tmp_path / "looked").touch()
        assert (await task).text == "waitok"

    run(look_while_it_runs())


def test_a_broken_record_of_leftovers_is_removed(tmp_path: Path) -> None:
    from bullpen.agents.crash_records import CrashRecords

    (tmp_path / "x.json").write_text("not a record")

    assert CrashRecords(tmp_path).end_all() == 0
    assert list(tmp_path.iterdir()) == []


def test_records_are_private(tmp_path: Path) -> None:
    async def look_while_it_runs() -> int:
        task = asyncio.ensure_future(Turn("claude", tmp_path).run({"say": "ok"}))
        folder = tmp_path / "state" / "bullpen" / "running"
        while not folder.exists():
            await asyncio.sleep(0.01)
        await task
        return stat.S_IMODE(folder.stat().st_mode)

    assert run(look_while_it_runs()) == 0o700


def test_unusable_output_is_a_protocol_error_not_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ProtocolBroken, match="It ended without an answer"):
        run(Turn("gemini", tmp_path).run({"raw": "\x1b[31mhello\n"}, {"no_result": True}))


@pytest.mark.parametrize("permissions", ["read-only", "ask"])
async def test_a_model_that_would_be_an_option_starts_nothing(tmp_path: Path, permissions: str) -> None:
    turn = Turn("claude", tmp_path)

    with pytest.raises(ValueError, match="it would be read as an option"):
        await turn.run({"say": "x"}, model="--include-directories=/etc", permissions=permissions)
    assert turn.events == []
