"""Record the genuine CLIs' streams, each case with the arguments that its recording in tests/agents/recordings names.

`python -m proofs.newest.recording claude` writes the recordings of the pinned claude anew.
"""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Coroutine, Iterable
from pathlib import Path

from proofs.newest.scripts import scripts
from tests.agents.real_cli import install, isolation

from bullpen.agents import agent_spec
from bullpen.testing.models import ModelServer
from bullpen.testing.settings import SETTINGS, CliSettings

RECORDINGS = Path(__file__).parents[2] / "tests" / "agents" / "recordings"
FLAGS = "flags.txt"
PROMPTS = {"gemini/plain": "PROMPT-MARK-1 hello\n"}
USUAL_PROMPT = "hi"
OTHER_SETTINGS = {"qwen/err429": (".qwen/settings.json", '"maxRetries": 0', '"maxRetries": 1')}
"""Where a case needs other settings than usual: the file, and what is replaced by what in it."""
ANY_ADDRESS = "http://127.0.0.1:9999"
"""Where a recording says that the model was."""
KEY = {"FAKE_OPENAI_KEY": "sk-scripted"}
STDERR_CHARACTERS = 2000
TIMEOUT_SECONDS = 240
AT_ONCE = 2


def cases(cli: str) -> list[str]:
    """Return the names of the cases that are recorded of a CLI."""
    return sorted(file.name.removesuffix(".run.json") for file in (RECORDINGS / cli).glob("*.run.json"))


async def record(clis: Iterable[str], programs: Path, into: Path) -> list[str]:
    """Record every case of these CLIs, and which flags they have; return what did not end."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def ended(what: str, work: Coroutine[None, None, None]) -> str | None:
        async with turn:
            try:
                await work
            except TimeoutError:
                return f"{what} did not end within {TIMEOUT_SECONDS} seconds"
        return None

    everything = []
    for cli in clis:
        (into / cli).mkdir(parents=True, exist_ok=True)
        everything.append(ended(f"{cli} --help", _record_flags(cli, programs, into / cli)))
        everything += [ended(f"{cli}/{case}", _record_case(cli, case, programs, into / cli)) for case in cases(cli)]
    return [problem for problem in await asyncio.gather(*everything) if problem]


async def _record_case(cli: str, case: str, programs: Path, into: Path) -> None:
    """Run one case, and write what the CLI wrote and how it ended."""
    argv = json.loads((RECORDINGS / cli / f"{case}.run.json").read_text(encoding="utf-8"))["argv"]
    with tempfile.TemporaryDirectory(prefix="bullpen-newest-") as name:
        home, project = Path(name), Path(name, "project")
        project.mkdir()
        async with ModelServer() as models:
            models.script(*scripts(cli, project)[case])
            settings = SETTINGS[cli](models.base_url, home)
            _change_settings(f"{cli}/{case}", home)
            arguments = [argument.replace(ANY_ADDRESS, models.base_url) for argument in argv[1:]]
            prompt = PROMPTS.get(f"{cli}/{case}", USUAL_PROMPT)
            stdout, stderr, code = await _run([str(programs / cli), *arguments], settings, project, prompt)
            hidden = {
                str(home): "/home/dev",
                models.base_url: ANY_ADDRESS,
                _place(programs / cli): "/opt/agents",
            }
    run = {"argv": argv, "exit_code": code, "stderr_tail": _without(hidden, stderr)[-STDERR_CHARACTERS:]}
    (into / f"{case}.jsonl").write_text(_without(hidden, stdout), encoding="utf-8")
    (into / f"{case}.run.json").write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


async def _run(command: list[str], settings: CliSettings, cwd: Path, prompt: str) -> tuple[str, str, int]:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env={**settings.env, **KEY}, start_new_session=True
    )
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            stdout, stderr = await child.communicate(prompt.encode())
    except TimeoutError:
        os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
        raise
    assert child.returncode is not None
    return stdout.decode(), stderr.decode(), child.returncode


def _change_settings(case: str, home: Path) -> None:
    if case in OTHER_SETTINGS:
        name, usual, other = OTHER_SETTINGS[case]
        file = home / name
        file.write_text(file.read_text(encoding="utf-8").replace(usual, other), encoding="utf-8")


def _place(program: Path) -> str:
    """Return the folder into which a program was installed."""
    return str(
        next((one.parent for one in program.resolve().parents if one.name == "node_modules"), program.parents[1])
    )


def _without(hidden: dict[str, str], text: str) -> str:
    """Return a text without what is of this machine."""
    for here, anywhere in hidden.items():
        text = text.replace(here, anywhere)
    return text


async def _record_flags(cli: str, programs: Path, into: Path) -> None:
    """Write every option in the help of the command that we use, each in a line."""
    _, *arguments = agent_spec(cli).command
    command = [str(programs / cli), *(one for one in arguments[:1] if not one.startswith("-")), "--help"]
    with tempfile.TemporaryDirectory(prefix="bullpen-newest-") as name:
        settings = SETTINGS[cli](ANY_ADDRESS, Path(name))
        stdout, _, _ = await _run(command, settings, Path(name), "")
    flags = {*re.findall(r"(?<![\w-])(?:--[A-Za-z][\w-]*|-[A-Za-z](?![\w-]))", stdout)}
    (into / FLAGS).write_text("".join(f"{flag}\n" for flag in sorted(flags)), encoding="utf-8")


def main() -> None:
    """Record the named CLIs again, as pinned."""
    os.environ["PATH"] = f"{install.binaries()}{os.pathsep}{os.environ['PATH']}"
    with isolation.loopback_only():
        problems = asyncio.run(record(sys.argv[1:], install.binaries(), RECORDINGS))
    sys.exit("\n".join(problems) or None)


if __name__ == "__main__":
    main()
