"""See what the newest releases of the CLIs change for us: `make newest`.

It installs them beside those that the tests pin, records their streams and runs the tests of the genuine CLIs with
them, in a network without a way out. A CLI that cannot be installed is left out, and said. It ends with 1 if a test
fails, and otherwise with 2 if a CLI could not be tried.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from proofs.newest.difference import changes
from proofs.newest.recording import RECORDINGS, record
from tests.agents.real_cli import install, isolation

ROOT = Path(__file__).parents[2]
AT_ONCE = ("-n", "logical", "--dist", "worksteal")
TESTS = ("tests/agents/real_cli", "tests/agents/test_recordings.py")
NPM_TIMEOUT_SECONDS = 120
WIDE = {"COLUMNS": "300"}
"""Otherwise pytest cuts why a test failed, or all of it, from the line that names the test."""


def main() -> int:
    """Install, record, compare and test; print what changed and what fails."""
    if install.NEWEST is None:
        print("BULLPEN_NEWEST must name a folder for the newest CLIs. Run: make newest", file=sys.stderr)
        return 2
    folder = Path(install.NEWEST)
    left_out = _choose(folder)
    print(f"The newest are {_in_words()}." if install.versions() else "There is nothing to try.", flush=True)
    left_out |= _install(folder)
    programs = [program for program in install.versions() if program not in left_out]
    _say_left_out(left_out)
    if not programs:
        return 2
    problems = _record(programs, folder / "recordings")
    found = changes(RECORDINGS, folder / "recordings")
    print(
        "\n".join(
            ["Changed:", *(f"  {change}" for change in found)] if found else ["No record, field or flag changed."]
        )
    )
    problems += failures(folder / "tests.txt")
    print("\n".join(["Failed:", *(f"  {problem}" for problem in problems)] if problems else ["No test failed."]))
    _say_left_out(left_out)
    return 1 if problems else 2 if left_out else 0


def newest_versions() -> tuple[dict[str, str], dict[str, str]]:
    """Return the newest version of each program's package, as npm says, and why a program is left out."""
    found, left_out = {}, {}
    with ThreadPoolExecutor(install.AT_ONCE) as threads:
        told = threads.map(_newest_version, install.ALL.values())
        for (program, package), (version, why) in zip(install.ALL.items(), told, strict=True):
            if version:
                found[package] = version
            else:
                left_out[program] = why
    return found, left_out


def _newest_version(package: str) -> tuple[str, str]:
    """Return the version, or why there is none."""
    npm = shutil.which("npm")
    if npm is None:
        return "", "npm is missing. Install Node.js 20 or newer"
    command = [npm, "view", package, "version"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=NPM_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        return "", f"npm did not answer within {NPM_TIMEOUT_SECONDS} seconds"
    if told.returncode != 0:
        return "", f"npm does not know {package}: {' '.join(told.stderr.split())[:300]}"
    return told.stdout.strip(), ""


def _choose(folder: Path) -> dict[str, str]:
    """Write a package.json that names the newest versions, and return why a program is left out."""
    folder.mkdir(parents=True, exist_ok=True)
    found, left_out = newest_versions()
    packages = {"private": True, "dependencies": found}
    install.PACKAGES.write_text(json.dumps(packages, indent=2), encoding="utf-8")
    return left_out


def _in_words() -> str:
    pinned = install.versions(install.PINS)
    return ", ".join(
        f"{program} {version} ({'as pinned' if version == pinned[program] else f'pinned: {pinned[program]}'})"
        for program, version in install.versions().items()
    )


def _install(folder: Path) -> dict[str, str]:
    """Install what is not there yet, remove other versions, and return why a program is left out."""
    wanted = {f"{program}-{version}" for program, version in install.versions().items()}
    for other in folder.glob("*/node_modules"):
        if other.parent.name not in wanted:
            shutil.rmtree(other.parent)
    return install.install_all(install.missing())


def _say_left_out(left_out: dict[str, str]) -> None:
    for program, why in left_out.items():
        print(f"!!! {program} IS NOT TRIED: {why}", file=sys.stderr, flush=True)


def _record(programs: list[str], into: Path) -> list[str]:
    """Record every case anew, and return what did not end."""
    shutil.rmtree(into, ignore_errors=True)
    print(f"Recording them into {into} ...", flush=True)
    with isolation.loopback_only() as isolated:
        if not isolated:
            print("This system does not let us cut off the network: what they send elsewhere would arrive.")
        recorded = [program for program in programs if program in install.COMMANDS]
        return asyncio.run(record(recorded, install.binaries(), into))


def failures(log: Path) -> list[str]:
    """Run the tests with the newest CLIs, print how many there were and which were skipped, and return what failed."""
    print(f"Running their tests; what they say is in {log} ...", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", "-m", "", *AT_ONCE, *TESTS]
    with log.open("w", encoding="utf-8") as output:
        code = subprocess.run(
            command, cwd=ROOT, env=os.environ | WIDE, stdout=output, stderr=subprocess.STDOUT, check=False
        ).returncode
    lines = log.read_text(encoding="utf-8").splitlines()
    print("\n".join([f"Their tests: {lines[-1]}", *(f"  {line}" for line in lines if line.startswith("SKIPPED "))]))
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return failed or ([f"pytest ended with {code}"] if code else [])


if __name__ == "__main__":
    sys.exit(main())
