"""run_turn: prompt in, events out, reply back, failures classified."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents import guardian, process_tree
from bullpen.agents.asked_time import AskedTime
from bullpen.agents.crash_records import CrashRecords, end_leftover_processes, were_leftovers_ended
from bullpen.agents.dialogue import Ask, Dialogue, Tell, nobody
from bullpen.agents.driver import Driver, Opening
from bullpen.agents.environment import child_environment
from bullpen.agents.failures import classified, error_for
from bullpen.agents.process import Child
from bullpen.agents.spec import AgentSpec, Emit
from bullpen.agents.transcript import MAX_TEXT_BYTES, OtherSession, TooMuchText, Transcript, WaitsTooLong
from bullpen.context.prompt import AssemblerOutput
from bullpen.memory import SessionLeft, SessionUse
from bullpen.permissions import Permission
from bullpen.text.clean import clean_text
from bullpen.text.secrets import without_secrets
from bullpen.turn_events import Failed, Finished, Started, Usage

logger = logging.getLogger(__name__)

IDLE_TIMEOUT_SECONDS = 600.0
TOTAL_TIMEOUT_SECONDS = 3600.0
# A CLI may still clean up after its final event; codex takes five seconds if it finds no plugins.
LINGER_SECONDS = 30.0
ASKING_SECONDS = 0.5
"""How often it is looked at whether a program still waits for an answer."""


class Reply(Struct, frozen=True, kw_only=True):
    """What an agent answered, and what that used."""

    text: str
    usage: Usage
    started: Started
    command: tuple[str, ...]
    seconds: float
    session: SessionLeft | None = None
    """The session that it left, as far as the machine has looked on which it ran."""


async def run_turn(
    spec: AgentSpec,
    output: AssemblerOutput,
    *,
    emit: Emit,
    cwd: Path | str,
    permissions: Permission = "read-only",
    allow: Sequence[str] = (),
    model: str | None = None,
    arguments: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    idle_timeout: float = IDLE_TIMEOUT_SECONDS,
    total_timeout: float = TOTAL_TIMEOUT_SECONDS,
    session: SessionUse | None = None,
    on_command: Callable[[tuple[str, ...]], None] = lambda _: None,
    on_output: Callable[[bytes], None] = lambda _: None,
    ask: Ask = nobody,
    on_tell: Callable[[Tell], None] = lambda _: None,
    server: tuple[str, ...] = (),
    asked: AskedTime | None = None,
) -> Reply:
    """Run the agent's program with one prompt, and return its answer.

    Every event goes to `emit`, and the last is Finished or Failed. A failure is also raised, as a kind of AgentFailed.
    To cancel a turn, cancel the task: its processes are ended, and Failed holds the text so far. `on_command` gets the
    command line before it runs, and `on_output` the program's raw output. With `session` the CLI begins that session or
    continues it; if it begins another one instead, it is stopped, and SessionLost is raised. Where the CLI can ask,
    `ask` answers, and the time limits stop meanwhile; where it can listen, `on_tell` gets what gives it words. `server`
    is the command of an MCP server that the CLI is told of, and `asked` the time in which people are asked there.
    """
    spec = spec.with_permissions(permissions)
    asked = AskedTime() if asked is None else asked
    _refuse_system_text_without_a_flag(spec, output.system_flag)
    began = time.monotonic()
    folder = Path(cwd).absolute()
    environment = {**child_environment(spec, env), **({process_tree.TOOLS_VARIABLE: server[-1]} if server else {})}
    own = spec.arguments(permissions, model, allow)
    options = (*own, *_tool_arguments(spec, environment, server), *arguments)
    text = clean_text(output.prompt)
    opening = Opening(
        prompt=text, folder=str(folder), permissions=permissions, model=model, session=session, server=server
    )
    driver = spec.driver(opening) if spec.driver else None
    dialogue = Dialogue(driver, ask, emit, asked) if driver else None
    transcript = _transcript(spec, emit, environment, session, on_output, driver)
    try:
        await prepare_for_agents()
        with _command_line(spec, options, output.system_flag, session, environment, folder) as command:
            prompt = _encoded_prompt(spec, output.prompt)
            on_command(command)
            if dialogue is not None:
                on_tell(dialogue.tell)
            ending = await _run_program(
                spec, transcript, dialogue, asked, command, prompt, folder, environment, idle_timeout, total_timeout
            )
    except asyncio.CancelledError:
        emit(Failed(kind="cancelled", message="The turn was cancelled.", partial_text=transcript.text))
        raise
    except _TurnFailed as error:
        command, ending = (), error.failure
    return _reply(spec, emit, transcript, ending, command, time.monotonic() - began)


def _tool_arguments(spec: AgentSpec, environment: Mapping[str, str], server: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments that say which tools the CLI has, and what it may do with them unasked."""
    tools = spec.tools(server) if server and spec.tools is not None else ()
    return (*spec.rule_arguments(environment, bool(tools)), *tools)


def _refuse_system_text_without_a_flag(spec: AgentSpec, text: str | None) -> None:
    if text and spec.system_file_flag is None:
        raise ValueError(
            f"{spec.name} accepts no system text besides the prompt; use an assembler that puts it into the prompt"
        )


def _transcript(
    spec: AgentSpec,
    emit: Emit,
    environment: Mapping[str, str],
    session: SessionUse | None,
    on_output: Callable[[bytes], None],
    driver: Driver | None,
) -> Transcript:
    """Return what reads the program's output, and emits it without the secrets of its environment."""
    transcript = Transcript(spec, emit, partial(without_secrets, environment={**os.environ, **environment}), driver)
    transcript.on_output = on_output
    transcript.expected_session = session.id if session and session.origin == "resumed" else None
    return transcript


async def prepare_for_agents() -> None:
    """Wait until nothing is left of agents before a crash, and a guardian is ready for the next one."""
    while not (were_leftovers_ended() and guardian.is_one_ready()):
        await asyncio.to_thread(_prepare)


def _prepare() -> None:
    """Do what takes too long for the event loop, and is needed before an agent starts."""
    end_leftover_processes(once=True)
    guardian.make_one_ready()


class _TurnFailed(Exception):
    def __init__(self, failure: Failed) -> None:
        super().__init__(failure)
        self.failure = failure


@contextmanager
def _command_line(
    spec: AgentSpec,
    options: tuple[str, ...],
    system_text: str | None,
    session: SessionUse | None,
    environment: Mapping[str, str],
    cwd: Path,
) -> Iterator[tuple[str, ...]]:
    """Yield the command that runs the agent's program; the files that it names are there meanwhile."""
    session_arguments = spec.sessions.arguments(session) if spec.sessions and session else ()
    with _system_file(spec, system_text) as system_arguments:
        program = _program(spec, environment, cwd)
        yield (program, *options, *system_arguments, *session_arguments, *spec.last_arguments)


@contextmanager
def _system_file(spec: AgentSpec, text: str | None) -> Iterator[tuple[str, ...]]:
    """Yield the arguments that give the CLI its system text, in a temporary file that only we can read.

    Not as an argument: that is limited to 128 KiB, and every user of the machine can read it.
    """
    if not text or spec.system_file_flag is None:
        yield ()
        return
    import tempfile

    try:
        folder = tempfile.TemporaryDirectory(prefix="bullpen-")
        file = Path(folder.name, "system.md")
        file.touch(mode=0o600)
        file.write_bytes(clean_text(text).encode())
    except OSError as error:
        message = f"Its system text could not be written to {tempfile.gettempdir()}: {error.strerror}."
        raise _TurnFailed(
            Failed(kind="crashed", message=message, hint="Free some space there, or set TMPDIR.")
        ) from error
    with folder:
        yield spec.system_file_flag, str(file)


def _program(spec: AgentSpec, environment: Mapping[str, str], cwd: Path) -> str:
    if not cwd.is_dir():
        raise _TurnFailed(Failed(kind="crashed", message=f"The folder {cwd} does not exist.", hint="Check its cwd."))
    found = find_program(spec.program, environment, cwd)
    if found is None:
        raise _TurnFailed(Failed(kind="not_installed", message=f"The program {spec.program} was not found."))
    return found


def find_program(program: str, environment: Mapping[str, str], cwd: Path) -> str | None:
    """Return the path of the program that a turn in this folder would run."""
    if os.sep in program:
        program = str(cwd / program)
    import shutil

    found = shutil.which(program, path=environment.get("PATH", os.defpath))
    return None if found is None else str(Path(found).absolute())


def _encoded_prompt(spec: AgentSpec, prompt: str) -> bytes:
    encoded = clean_text(prompt).encode()
    if spec.max_prompt_bytes is not None and len(encoded) > spec.max_prompt_bytes:
        message = f"The prompt has {len(encoded):,} bytes, and the limit is {spec.max_prompt_bytes:,}."
        raise _TurnFailed(Failed(kind="prompt_too_long", message=message))
    return b"" if spec.driver is not None else encoded


async def _run_program(
    spec: AgentSpec,
    transcript: Transcript,
    dialogue: Dialogue | None,
    asked: AskedTime,
    command: tuple[str, ...],
    prompt: bytes,
    cwd: Path,
    environment: Mapping[str, str],
    idle_timeout: float,
    total_timeout: float,
) -> Finished | Failed:
    """Run the program until it ends or is stopped, and return how the turn ended."""
    try:
        child = Child(
            command,
            cwd=cwd,
            env=environment,
            stdin=prompt,
            keep_stdin_open=dialogue is not None,
            on_stdout=transcript.feed,
            on_stderr=transcript.feed_errors,
            crash_records=CrashRecords(),
        )
    except OSError as error:
        raise _TurnFailed(Failed(kind="crashed", message=f"{command[0]} could not be started: {error}.")) from error
    logger.info("turn began agent=%s pid=%d", spec.name, child.pid)
    transcript.on_verdict = child.close_stdin
    if dialogue is not None:
        _connect(dialogue, transcript, child)
    try:
        exit_code = await _end_of(spec, child, transcript, dialogue, asked, idle_timeout, total_timeout)
        transcript.finish()
    except OtherSession as error:
        return Failed(kind="session_lost", message=str(error))
    except TooMuchText:
        limit = f"{MAX_TEXT_BYTES // 1024 // 1024} MiB"
        return Failed(kind="protocol_broken", message=f"It wrote more than {limit} and was stopped.")
    except WaitsTooLong as error:
        return Failed(kind="quota", message=str(error), stderr_tail=transcript.stderr_tail)
    except TimeoutError as error:
        transcript.finish()
        return Failed(kind="timed_out", message=str(error), stderr_tail=transcript.stderr_tail)
    finally:
        if dialogue is not None:
            dialogue.close(interrupted=transcript.verdict is None)
        await to_the_end(child.stop())
        if dialogue is not None:
            await to_the_end(dialogue.closed())
    return _ending(spec, transcript, exit_code)


def _connect(dialogue: Dialogue, transcript: Transcript, child: Child) -> None:
    """Let a program and those who answer it speak with each other, until it has said its last word."""

    def end() -> None:
        dialogue.close()
        child.close_stdin()

    transcript.on_verdict = end
    transcript.on_asked, transcript.on_over = dialogue.on_asked, dialogue.on_over
    transcript.on_read = dialogue.send
    dialogue.connect(child.write)


async def _end_of(
    spec: AgentSpec,
    child: Child,
    transcript: Transcript,
    dialogue: Dialogue | None,
    asked: AskedTime,
    idle_timeout: float,
    total_timeout: float,
) -> int:
    """Return the exit code, or raise TimeoutError if the program is idle or runs for too long.

    While it waits for an answer, its time does not count.
    """
    clock = asyncio.get_running_loop().time
    began, answered_at = clock(), 0.0
    waiting = asyncio.ensure_future(child.wait())
    try:
        while not waiting.done():
            if asked.is_asking and transcript.verdict is None:
                await asyncio.wait([waiting], timeout=ASKING_SECONDS)
                answered_at = clock()
                continue
            has_verdict = transcript.verdict is not None
            if has_verdict and not spec.ends_by_itself:
                break
            deadline = began + total_timeout + asked.seconds
            idle_deadline = max(child.last_activity, answered_at) + (
                min(idle_timeout, LINGER_SECONDS) if has_verdict else idle_timeout
            )
            if clock() >= deadline:
                raise TimeoutError(f"It did not finish within {total_timeout:g} seconds.")
            if clock() >= idle_deadline:
                raise TimeoutError(f"It wrote nothing for {idle_timeout:g} seconds.")
            ends: list[asyncio.Future[Any]] = [waiting]
            if dialogue is not None and not spec.ends_by_itself and not has_verdict:
                ends.append(dialogue.over)
            await asyncio.wait(
                ends, timeout=min(deadline, idle_deadline) - clock(), return_when=asyncio.FIRST_COMPLETED
            )
        return 0 if transcript.verdict is not None and not spec.ends_by_itself else waiting.result()
    finally:
        waiting.cancel()


async def to_the_end(work: Coroutine[object, object, None]) -> None:
    """Await something that must be completed even if we are cancelled; the cancellation is raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled:
        raise cancelled


def _ending(spec: AgentSpec, transcript: Transcript, exit_code: int) -> Finished | Failed:
    """Return the CLI's own verdict on the turn if its exit code agrees, and a failure otherwise."""
    tail = transcript.stderr_tail
    match transcript.verdict:
        case Finished() as finished if exit_code == 0:
            return finished
        case Failed() as failed:
            return replace(failed, exit_code=exit_code, stderr_tail=tail)
        case None if exit_code == 0 and spec.stream == "text" and transcript.has_words:
            return Finished(transcript.take_answer())
        case None if exit_code == 0:
            message = "It ended without an answer."
            return Failed(kind="protocol_broken", message=message, exit_code=exit_code, stderr_tail=tail)
        case _:
            message = _how_it_ended(exit_code, tail)
            return Failed(kind="crashed", message=message, exit_code=exit_code, stderr_tail=tail)


def _reply(
    spec: AgentSpec,
    emit: Emit,
    transcript: Transcript,
    ending: Finished | Failed,
    command: tuple[str, ...],
    seconds: float,
) -> Reply:
    """Emit how the turn ended, and return the agent's reply or raise its failure."""
    logger.info("turn ended agent=%s ending=%s seconds=%.1f", spec.name, type(ending).__name__, seconds)
    if isinstance(ending, Failed):
        ending = replace(ending, message=transcript.masked(ending.message), partial_text=transcript.text)
        failure = classified(spec, ending)
        emit(failure)
        raise error_for(spec, failure)
    emit(ending)
    return Reply(text=ending.text, usage=transcript.usage, started=transcript.started, command=command, seconds=seconds)


def _how_it_ended(exit_code: int, stderr_tail: str) -> str:
    how = f"exit code {exit_code}" if exit_code >= 0 else f"signal {_signal_name(-exit_code)}"
    last_line = stderr_tail.rpartition("\n")[2]
    return f"It ended with {how}" + (f": {last_line[:300]}" if last_line else ".")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
