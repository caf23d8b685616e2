"""Whether a CLI is installed and signed in, as far as the cheapest evidence tells: no model is asked."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from bullpen.agents.crash_records import CrashRecords
from bullpen.agents.process import Child
from bullpen.agents.runner import find_program, to_the_end
from bullpen.agents.spec import AgentSpec
from bullpen.turn_events import FailureKind

PROBE_SECONDS = 30.0
MAX_PROBE_BYTES = 64 * 1024
_SIGNED_OUT = re.compile(r'not logged in|logged ?out|"loggedIn":\s*false', re.IGNORECASE)


async def why_not_ready(spec: AgentSpec, environment: Mapping[str, str], cwd: Path) -> FailureKind | None:
    """Return how a turn that began now would fail: "not_installed" or "not_signed_in"; None: as far as we know, not."""
    path = find_program(spec.program, environment, cwd)
    if path is None:
        return "not_installed"
    is_signed_in, _ = await signed_in(spec, path, environment)
    return "not_signed_in" if is_signed_in is False else None


async def signed_in(spec: AgentSpec, path: str, environment: Mapping[str, str]) -> tuple[bool | None, str]:
    """Return whether the CLI is signed in, and how we know. A key that is set is not checked."""
    probe = spec.sign_in
    for variable in probe.variables:
        name, _, value = variable.partition("=")
        if environment.get(name) and value in ("", environment[name]):
            return True, f"{name} is set"
    if probe.arguments:
        command = " ".join([spec.program, *probe.arguments])
        exit_code, output = await run_probe([path, *probe.arguments], environment)
        if exit_code is None:
            return None, f"`{command}` did not answer"
        is_signed_in = exit_code == 0 and not _SIGNED_OUT.search(output)
        if not is_signed_in and probe.other_models and _names(*probe.other_models, environment):
            return None, f"~/{probe.other_models[0]} names other models"
        return is_signed_in, f"asked with `{command}`"
    home = environment.get("HOME") or Path.home()
    for name in probe.files:
        if Path(home, name).exists():
            return True, f"~/{name} exists"
    if not probe.is_complete or not (probe.variables or probe.files):
        return None, ""
    return False, f"no {' or '.join([probe.variables[0], *(f'~/{name}' for name in probe.files)])}"


def _names(file: str, word: str, environment: Mapping[str, str]) -> bool:
    """Return whether a settings file in the home folder has a word."""
    try:
        path = Path(environment.get("HOME") or Path.home(), file)
        return path.is_file() and word in path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


async def run_probe(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the exit code and output of a short command; None as the code if it could not run or took too long."""
    output = bytearray()

    def keep(chunk: bytes) -> None:
        output.extend(chunk[: MAX_PROBE_BYTES - len(output)])

    try:
        child = Child(
            argv,
            cwd=own_folder(),
            env=environment,
            stdin=b"",
            on_stdout=keep,
            on_stderr=keep,
            crash_records=CrashRecords(),
        )
    except OSError as error:
        return None, str(error)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await child.wait(), output.decode(errors="replace")
    except TimeoutError:
        return None, ""
    finally:
        await to_the_end(child.stop())


def own_folder() -> Path:
    """Return a folder whose settings are the user's own: a CLI that is only looked at reads nobody else's."""
    home = Path.home()
    return home if home.is_dir() else Path("/")
