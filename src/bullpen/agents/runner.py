"""run_turn: prompt in, events out, reply back, failures classified."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from bullpen.agents import guardian, process_tree
from bullpen.agents.asked_time import AskedTime
from bullpen.agents.crash_records import CrashRecords, end_leftover_processes, were_leftovers_ended
from bullpen.agents.dialogue import Ask, Dialogue, Tell, nobody
from bullpen.agents.driver import Driver, Opening
from bullpen.agents.environment import child_environment
from bullpen.agents.failures import classified, error_for, unreachable
from bullpen.agents.inline_system_text import SystemFileRefused, as_taken_by, refused, with_fallback
from bullpen.agents.process import Child
from bullpen.agents.settings_choice import SettingsChoice, choose_settings
from bullpen.agents.spec import AgentSpec, Emit
from bullpen.agents.time_limits import CannotConnect, end_of
from bullpen.agents.transcript import MAX_TEXT_BYTES, OtherSession, TooMuchText, Transcript, WaitsTooLong
from bullpen.clock import monotonic
from bullpen.config import program_path
from bullpen.context.prompt import AssemblerOutput
from bullpen.memory import SessionLeft, SessionUse
from bullpen.permissions import Permission
from bullpen.sandbox.rules import NO_SANDBOX, CannotHold, SandboxRules
from bullpen.text.clean import clean_text
from bullpen.text.secrets import without_secrets
from bullpen.turn_events import Failed, Finished, Started, Usage

if TYPE_CHECKING:
    from bullpen.agents.program_sandbox import Refusals

logger = logging.getLogger(__name__)

IDLE_TIMEOUT_SECONDS = 600.0
TOTAL_TIMEOUT_SECONDS = 3600.0
BETWEEN_TEXTS = "\n\n"


class Reply(Struct, frozen=True, kw_only=True):
    """What an agent answered, and what that used."""

    text: str
    usage: Usage
    started: Started
    command: tuple[str, ...]
    seconds: float
    session: SessionLeft | None = None
    """The session that it left, as far as the machine has looked on which it ran."""


@with_fallback
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
    agreed: Callable[[], Collection[str]] = frozenset,
    sandbox: SandboxRules = NO_SANDBOX,
) -> Reply:
    """Run the agent's program with one prompt, and return its answer.

    Every event goes to `emit`, and the last is Finished or Failed. A failure is also raised, as a kind of AgentFailed.
    To cancel a turn, cancel the task: its processes are ended, and Failed holds the text so far. `on_command` gets the
    command line before it runs, and `on_output` the program's raw output. With `session` the CLI begins that session or
    continues it; if it begins another one instead, it is stopped, and SessionLost is raised. Where the CLI can ask,
    `ask` answers, and the time limits stop meanwhile; where it can listen, `on_tell` gets what gives it words. `server`
    is the command of an MCP server that the CLI is told of, and `asked` the time in which people are asked there.
    `agreed` returns the marks of the settings of this folder to which people have agreed; it is run without others.
    `sandbox` says whether the system holds it, and what it may write then beside its folder.
    """
    spec = spec.with_permissions(permissions)
    asked = AskedTime() if asked is None else asked
    _refuse_system_text_without_a_flag(spec, output.system_flag)
    began = monotonic()
    folder = Path(cwd).absolute()
    choice = choose_settings(spec, permissions, folder, agreed, child_environment(spec, env))
    spec = choice.spec
    tools = {process_tree.TOOLS_VARIABLE: server[-1]} if server else {}
    environment = {**child_environment(spec, env), **tools, **choice.environment}
    own = spec.arguments(permissions, model, allow)
    options = (*own, *_tool_arguments(spec, environment, server), *arguments)
    program = find_program(spec.program, environment, folder)
    output = as_taken_by(program, output)
    text = clean_text(output.prompt)
    opening = Opening(
        prompt=text, folder=str(folder), permissions=permissions, model=model, session=session, server=server
    )
    driver = spec.driver(opening) if spec.driver else None
    refusals = _refusals(sandbox, permissions, emit)
    dialogue = Dialogue(driver, ask, emit, asked, folder) if driver else None
    transcript = _transcript(spec, refusals.emit if refusals else emit, environment, session, on_output, driver)
    try:
        _heed(choice, emit)
        _refuse_what_is_not_asked(spec, permissions, environment)
        await prepare_for_agents()
        with _command_line(spec, options, output.system_flag, session, environment, folder) as command:
            prompt = _encoded_prompt(spec, output.prompt)
            on_command(command)
            if dialogue is not None:
                on_tell(dialogue.tell)
            run = partial(_run_program, spec, transcript, dialogue, asked, command, prompt, folder)
            if refusals is None:
                ending = await run(environment, (), idle_timeout, total_timeout)
            else:
                refusals.tell = dialogue.tell if dialogue is not None else refusals.tell
                around = refusals.sandboxed(spec, sandbox, permissions, folder, command, environment, server)
                async with around as held:
                    ending = await run({**environment, **held.environment}, held.prefix, idle_timeout, total_timeout)
                    refusals.read(transcript.stderr_tail)
    except asyncio.CancelledError:
        emit(Failed(kind="cancelled", message="The turn was cancelled.", partial_text=transcript.text))
        raise
    except _TurnFailed as error:
        command, ending = (), error.failure
    except CannotHold as error:
        command, ending = (), Failed(kind="crashed", message=str(error), hint=error.hint)
    if not transcript.has_begun and (notice := refused(spec, program, output, ending)):
        emit(notice)
        raise SystemFileRefused
    return _reply(spec, emit, transcript, ending, command, monotonic() - began)


def _refusals(rules: SandboxRules, permissions: Permission, emit: Emit) -> "Refusals | None":
    """Return what makes a sandbox and tells what that refuses; None: nothing is to hold the program."""
    if not rules.hold(permissions):
        return None
    # A turn without a sandbox does not load it.
    from bullpen.agents.program_sandbox import Refusals

    return Refusals(emit)


def _tool_arguments(spec: AgentSpec, environment: Mapping[str, str], server: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments that say which tools the CLI has, and what it may do with them unasked."""
    tools = spec.tools(server) if server and spec.tools is not None else ()
    return (*spec.rule_arguments(environment, bool(tools)), *tools)


def _refuse_what_is_not_asked(spec: AgentSpec, permissions: Permission, environment: Mapping[str, str]) -> None:
    if permissions == "ask" and (why := spec.why_not_asked(environment)):
        raise _TurnFailed(Failed(kind="permission_refused", message=f"It was not started to ask: {why}."))


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


def _heed(choice: SettingsChoice, emit: Emit) -> None:
    if choice.refusal is not None:
        raise _TurnFailed(choice.refusal)
    if choice.notice is not None:
        emit(choice.notice)


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
    """Return the path of the program that a turn in this folder would run; none that its repository brings along."""
    if os.sep in program:
        program = str(cwd / program)
    import shutil

    folders = program_path(environment.get("PATH", os.defpath)).split(os.pathsep)
    repository = _repository_of(cwd)
    path = os.pathsep.join(folder for folder in folders if not _is_brought_by(repository, folder))
    found = shutil.which(program, path=path)
    return None if found is None else str(Path(found).absolute())


def _repository_of(cwd: Path) -> Path | None:
    """Return the repository that a folder is in, unless it is the person's home with all that is installed there."""
    folder = Path(os.path.realpath(cwd))
    found = next((one for one in (folder, *folder.parents) if os.path.lexists(one / ".git")), None)
    return None if found is not None and Path.home().resolve().is_relative_to(found) else found


def _is_brought_by(repository: Path | None, folder: str) -> bool:
    """Return whether a folder of PATH is in a repository; the programs of an activated environment are a person's."""
    if repository is None or not Path(os.path.realpath(folder)).is_relative_to(repository):
        return False
    return not os.path.lexists(Path(folder).parent / "pyvenv.cfg")


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
    prefix: tuple[str, ...],
    idle_timeout: float,
    total_timeout: float,
) -> Finished | Failed:
    """Run the program until it ends or is stopped, and return how the turn ended."""
    try:
        child = Child(
            command,
            prefix=prefix,
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
        exit_code = await end_of(spec, child, transcript, asked, idle_timeout, total_timeout)
        transcript.finish()
    except OtherSession as error:
        return Failed(kind="session_lost", message=str(error))
    except TooMuchText:
        limit = f"{MAX_TEXT_BYTES // 1024 // 1024} MiB"
        return Failed(kind="protocol_broken", message=f"It wrote more than {limit} and was stopped.")
    except WaitsTooLong as error:
        return Failed(kind="quota", message=str(error), stderr_tail=transcript.stderr_tail)
    except CannotConnect as error:
        transcript.finish()
        sentence, reason = error.args
        return unreachable(spec, Failed(kind="crashed", message=reason, stderr_tail=transcript.stderr_tail), sentence)
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
        case Finished(text=text) if exit_code == 0:
            return _whole(transcript, transcript.texts(text), tail)
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


def _whole(transcript: Transcript, texts: tuple[str, ...], tail: str) -> Finished | Failed:
    """Return all that an agent has said, as one text; a failure, if none of it was understood."""
    text = BETWEEN_TEXTS.join(texts)
    doubt = transcript.doubt(text)
    if not transcript.is_understood and not text.strip():
        return Failed(kind="protocol_broken", message=doubt, exit_code=0, stderr_tail=tail)
    ends = accumulate(len(one) + len(BETWEEN_TEXTS) for one in texts[:-1])
    return Finished(text, texts_at=tuple(ends), doubt=doubt)


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
