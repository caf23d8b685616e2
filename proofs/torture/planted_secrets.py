"""Torture: keys and passwords wherever people keep them, and a search for each wherever it must not be."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from proofs.torture.outcome import Outcome, Size, Torture
from proofs.torture.secret_keys import KEYS, Key, made_keys
from proofs.torture.secret_pages import never_fetched, record_pages
from proofs.torture.secret_stage import COMMANDS, bugs, build, environment_of

SESSIONS: dict[Size, int] = {"small": 1, "full": 20}
ROOT = Path(__file__).parents[2]
SECONDS = 120
FAULT = "BULLPEN_TORTURE_FAULT"
"""Names a mistake for the process of the conversation. The product does not know it."""
MISTAKES = (
    "nothing is masked",
    "notices are not masked",
    "output is kept as it is",
    "the last lines are cut before they are masked",
    "a private key ends with a dash",
    "a block is not a private key",
    "a quotation ends with any mark",
    "what is escaped is written in capital letters",
    "an address without a name has no password",
)


def run(size: Size, seed: int) -> Outcome:
    """Hold conversations with other keys each time."""
    pages: list[str] = []
    failures = [f for number in range(SESSIONS[size]) for f in _session(f"{seed}/{number}", pages)]
    places = len(COMMANDS) + len(bugs())
    return Outcome(
        tried=SESSIONS[size] * KEYS,
        unit="keys",
        failures=tuple(failures),
        figures={
            "conversations": SESSIONS[size],
            "commands after each": places,
            "pages, answers and streams of the server": len({*pages}),
        },
    )


def run_with_fault(seed: int) -> Outcome:
    """Make one mistake after the other in a conversation. Failures are returned only if each was found."""
    found = {mistake: _talk_with(mistake, f"{seed}/{mistake}") for mistake in MISTAKES}
    failures = [f"{mistake}: {problem}" for mistake, problems in found.items() for problem in problems]
    missed = {f"not found: {mistake}": 1 for mistake, problems in found.items() if not problems}
    return Outcome(tried=len(MISTAKES), unit="mistakes", failures=() if missed else tuple(failures), figures=missed)


def _talk_with(mistake: str, seed: str) -> list[str]:
    """Return the keys that are found after a conversation with a mistake, and in its export."""
    keys = made_keys(Random(seed))
    with TemporaryDirectory(prefix="torture-secrets-") as temporary:
        folder = Path(temporary)
        env = _talk(folder, keys, mistake)
        _record(folder, "export", [sys.executable, "-m", "bullpen", *COMMANDS["export-prompts"]], env)
        return [problem for problem in _problems(folder, keys) if " is in " in problem]


def _talk(folder: Path, keys: list[Key], mistake: str = "") -> dict[str, str]:
    """Hold a conversation, and return the environment of all that follows."""
    build(folder, keys, repository=ROOT)
    env = environment_of(folder, keys) | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    talk = [sys.executable, "-X", "dev", "-m", "proofs.torture.secret_session", str(folder)]
    _record(folder, "session", talk, env | {FAULT: mistake})
    return env


def _session(seed: str, pages: list[str]) -> list[str]:
    keys = made_keys(Random(seed))
    with TemporaryDirectory(prefix="torture-secrets-") as temporary:
        folder = Path(temporary)
        env = _talk(folder, keys)
        for name, command in COMMANDS.items():
            _record(folder, name, [sys.executable, "-m", "bullpen", *command], env)
        for name, program in bugs().items():
            debug = {"BULLPEN_DEBUG": "1"} if "debug" in name else {}
            _record(folder, name, [sys.executable, "-c", program], env | debug)
        fetched = record_pages(folder, env)
        pages += fetched
        unseen = [f"{route} was never looked at" for route in never_fetched(fetched)]
        found = (*_problems(folder, keys), *_inherited(folder, keys), *unseen)
        return [f"seed {seed}: {problem}" for problem in found]


def _record(folder: Path, name: str, command: list[str], env: dict[str, str]) -> None:
    """Run a program and keep all that it prints."""
    with (folder / "outputs" / name).open("wb") as file:
        project = folder / "project"
        subprocess.run(command, cwd=project, env=env, stdout=file, stderr=file, timeout=SECONDS, check=False)


def _problems(folder: Path, keys: list[Key]) -> Iterator[str]:
    """Yield where a key was found that must not be there, and what did not happen at all."""
    found, in_pages = 0, 0
    for file in _searched(folder):
        data = file.read_bytes()
        for key in keys:
            spelling = key.is_in(data)
            if not spelling:
                continue
            if key.is_said:
                found += 1
                in_pages += file.parent.name == "web"
            else:
                yield f"{key.where} is in {file.relative_to(folder)}: {_around(data, spelling)!r}"
    if found < len(("md", "html", "json", "prompts")):
        yield f"what an agent said was found only {found} times, so the search proves nothing"
    if not in_pages:
        yield "what an agent said was found on no page, so the search proves nothing there"
    session = (folder / "outputs" / "session").read_text(errors="replace")
    if "the conversation is over" not in session:
        yield f"the conversation did not end: {session[-2000:]}"


def _searched(folder: Path) -> Iterator[Path]:
    """Yield every file but those in which the keys were planted."""
    for name in ("outputs", "logs", "home", "temporary"):
        planted = {folder / "home" / ".aws" / "credentials"}
        yield from (path for path in (folder / name).rglob("*") if path.is_file() and path not in planted)


def _around(data: bytes, value: bytes) -> bytes:
    at = data.index(value)
    return data[max(0, at - 60) : at + len(value) + 20]


def _inherited(folder: Path, keys: list[Key]) -> Iterator[str]:
    """Yield the keys that an agent got from our environment and should not have, or the other way round."""
    reports = sorted((folder / "reports").glob("*.env"))
    if len(reports) < len(("max", "cody", "tool", "sayer", "hanger")):
        yield f"only {[report.stem for report in reports]} have run"
    for report in reports:
        data = report.read_bytes()
        for key in keys:
            if (key.value.encode() in data) != (report.stem in key.given_to):
                yield f"{report.stem} {'got' if key.value.encode() in data else 'did not get'} {key.where}"


TORTURE = Torture(
    name="planted secrets",
    does=f"{KEYS} keys and passwords, of all characters of base64 and of addresses, some of them beginning as a path "
    "does, phrases with spaces, private keys of many lines and values with quotation marks, are put into the "
    "environment (under names that agents get, names that they do not, and names that the team file passes on), into "
    "files beside the team file and in the home folder, and on the standard error and output of agents that succeed, "
    "fail, hang and are cancelled, some where the last lines that are kept would begin within them. A whole "
    "conversation runs with all logging on; then every command and export, and bugs of our own, with and without "
    "BULLPEN_DEBUG; then a server, from which every page, every answer of the API and the streams are fetched while "
    "some of the agents fail again, with the pages of errors and of a bug.",
    promise="No key is in a log, an export, the output of a command, a traceback, the command line of any process, a "
    "page, an answer or a stream of the server, what the server prints, the database, a record or a temporary file. "
    "Agents get the variables that they are to get, and no others. What an agent itself says to the team is part of "
    "the conversation, and is found there.",
    run=run,
    fault="nine mistakes of one line, one after the other: nothing is masked; notices are not, or only where they are "
    "shown and not where they are kept; the last lines of standard error are cut first; a private key ends with its "
    "first dash, or is not one if it is called a block; a quotation ends with any quotation mark; %2f is not %2F; an "
    "address without a name has no password. Each must be found.",
    seen_as="on the standard error of",
    run_with_fault=run_with_fault,
    order=50,
)
