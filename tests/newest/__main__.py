"""See what the newest releases of the CLIs change for us: `make newest`.

It installs them beside those that the tests pin, records their streams and runs the tests of the genuine CLIs with
them, in a network without a way out. It ends with 1 if a test fails, and with 2 if it could not try.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.newest.difference import changes
from tests.newest.recording import RECORDINGS, record
from tests.real_cli import install, isolation

ROOT = Path(__file__).parents[2]
AT_ONCE = ("-n", "logical", "--dist", "worksteal")
TESTS = ("tests/real_cli", "tests/agents/test_recordings.py")
NPM_TIMEOUT_SECONDS = 120
WIDE = {"COLUMNS": "300"}
"""Otherwise pytest cuts why a test failed, or all of it, from the line that names the test."""


def main() -> int:
    """Install, record, compare and test; print what changed and what fails."""
    if install.NEWEST is None:
        print("BULLPEN_NEWEST must name a folder for the newest CLIs. Run: make newest", file=sys.stderr)
        return 2
    folder = Path(install.NEWEST)
    try:
        print(f"The newest are {_choose(folder)}.", flush=True)
        _install(folder)
    except install.NotInstalled as error:
        print(f"The newest CLIs cannot be installed: {error}", file=sys.stderr)
        return 2
    problems = _record(folder / "recordings")
    found = changes(RECORDINGS, folder / "recordings")
    print(
        "\n".join(
            ["Changed:", *(f"  {change}" for change in found)] if found else ["No record, field or flag changed."]
        )
    )
    problems += failures(folder / "tests.txt")
    print("\n".join(["Failed:", *(f"  {problem}" for problem in problems)] if problems else ["No test failed."]))
    return 1 if problems else 0


def newest_versions() -> dict[str, str]:
    """Return the newest version of each package, as npm says."""
    npm = shutil.which("npm")
    if npm is None:
        raise install.NotInstalled("npm is missing. Install Node.js 20 or newer")
    found = {}
    for package in (*install.COMMANDS.values(), *install.OTHERS.values()):
        command = [npm, "view", package, "version"]
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=NPM_TIMEOUT_SECONDS)
        if told.returncode != 0:
            raise install.NotInstalled(f"npm does not know {package}: {' '.join(told.stderr.split())[:300]}")
        found[package] = told.stdout.strip()
    return found


def _choose(folder: Path) -> str:
    """Write a package.json that names the newest versions, and return them in words."""
    folder.mkdir(parents=True, exist_ok=True)
    packages = {"private": True, "dependencies": newest_versions()}
    install.PACKAGES.write_text(json.dumps(packages, indent=2), encoding="utf-8")
    pinned = install.versions(install.PINS)
    return ", ".join(
        f"{program} {version} ({'as pinned' if version == pinned[program] else f'pinned: {pinned[program]}'})"
        for program, version in install.versions().items()
    )


def _install(folder: Path) -> None:
    for other in folder.glob("*/installed"):
        if other.parent != install.folder():
            shutil.rmtree(other.parent)
    if not install.is_installed():
        install.install()


def _record(into: Path) -> list[str]:
    """Record every case anew, and return what did not end."""
    shutil.rmtree(into, ignore_errors=True)
    print(f"Recording them into {into} ...", flush=True)
    with isolation.loopback_only() as isolated:
        if not isolated:
            print("This system does not let us cut off the network: what they send elsewhere would arrive.")
        return asyncio.run(record(install.COMMANDS, install.binaries(), into))


def failures(log: Path) -> list[str]:
    """Run the tests with the newest CLIs, print how many there were and which were skipped, and return what failed."""
    print(f"Running their tests; what they say is in {log} ...", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-rfEs", *AT_ONCE, *TESTS]
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
