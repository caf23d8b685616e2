"""Install the genuine agent CLIs into .cache/real_cli, each once for each version that package.json names.

Run it as `python tests/agents/real_cli/install.py`.

If BULLPEN_NEWEST names a folder, its package.json counts, and they are installed there: `make newest` sets it.
Each is installed by itself. What goes wrong is said in one line and is no failure: only the tests that need that
program are skipped.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PINS = Path(__file__).with_name("package.json")
NEWEST = os.environ.get("BULLPEN_NEWEST")
PACKAGES = Path(NEWEST, "package.json") if NEWEST else PINS
CACHE = Path(NEWEST) if NEWEST else Path(__file__).parents[3] / ".cache" / "real_cli"
COMMANDS = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "qwen": "@qwen-code/qwen-code",
}
"""Each program, and the package that it is in."""
OTHERS = {
    "opencode": "opencode-ai",
    "pi": "@earendil-works/pi-coding-agent",
    "copilot": "@github/copilot",
}
"""Programs of which fewer things are tried, and no new versions."""
ALL = {**COMMANDS, **OTHERS}
NOT_INSTALLED = {"vibe-acp": "3.0.2"}
"""Tried where it is on the PATH: it is large, comes from PyPI as mistral-vibe, and needs Python 3.12."""
TIMEOUT_SECONDS = 900
AT_ONCE = 4

# Install scripts would compile a terminal that nobody needs here. Only two are run, by name: they put the program for
# this machine into place.
NPM_INSTALL = ("install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
SCRIPTS = {"claude": "install.cjs", "opencode": "postinstall.mjs"}
NODE = "node@24"
"""Installed beside a CLI that wants a newer Node.js than there is here; this one needs its own script."""
NODE_INSTALL = ("install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error", NODE)


class NotInstalled(Exception):
    """Why a CLI is not there."""


def main() -> None:
    """Install the CLIs that are not there yet, and say what is there and what is not."""
    if wanted := missing():
        what = ", ".join(f"{program} {version}" for program, version in versions().items() if program in wanted)
        print(f"Installing the genuine agent CLIs ({what}) into {CACHE} ...", flush=True)
    for program, why in install_all(wanted).items():
        print(f"!!! {program} IS NOT INSTALLED, and its tests will be skipped: {why}", file=sys.stderr)
    if is_installed():
        print(f"The genuine agent CLIs are in {binaries()}")


def binaries() -> Path:
    """Return the folder with a link to each program, in the version that package.json names."""
    return CACHE / hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:16]


def folder(program: str) -> Path:
    """Return the folder that holds a program."""
    return CACHE / f"{program}-{versions()[program]}" / "node_modules" / ".bin"


def missing() -> list[str]:
    """Return the programs that are not installed."""
    return [program for program in versions() if not is_installed(program)]


def is_installed(program: str = "") -> bool:
    """Return whether a program is installed; without one, whether all are."""
    return (binaries() / program).exists() if program else not missing()


def versions(packages: Path | None = None, commands: Mapping[str, str] = ALL) -> dict[str, str]:
    """Return the version of each program that a package.json names."""
    named = json.loads((packages or PACKAGES).read_bytes())["dependencies"]
    return {command: named[package] for command, package in commands.items() if package in named}


def install_all(programs: Iterable[str]) -> dict[str, str]:
    """Install programs, each by itself; return why one is not there."""

    def problem(program: str) -> str:
        try:
            install(program)
        except NotInstalled as error:
            return str(error)
        return ""

    wanted = list(programs)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        problems = dict(zip(wanted, threads.map(problem, wanted), strict=True))
    return {program: why for program, why in problems.items() if why}


def install(program: str) -> None:
    """Install a program into a folder of its own, or raise NotInstalled; a link to it is made last."""
    file = folder(program) / program
    own = file.parents[2]
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    packages = {"private": True, "dependencies": {ALL[program]: versions()[program]}}
    (own / "package.json").write_text(json.dumps(packages), encoding="utf-8")
    _run(own, "npm", *NPM_INSTALL)
    if _wanted_node(own / "node_modules" / ALL[program] / "package.json") > _major(_run(own, "node", "--version")):
        _run(own, "npm", *NODE_INSTALL)
    if script := SCRIPTS.get(program):
        _run(own, "node", f"node_modules/{ALL[program]}/{script}")
    if not file.exists():
        raise NotInstalled(f"npm brought no {program}")
    binaries().mkdir(exist_ok=True)
    link = binaries() / program
    link.unlink(missing_ok=True)
    link.symlink_to(Path("..", *file.parts[-4:]))


def _wanted_node(package: Path) -> int:
    """Return the Node.js that a package wants at least, such as 22 of ">=22.19.0"; 0 if it says nothing."""
    said = json.loads(package.read_bytes()) if package.exists() else {}
    return _major(said.get("engines", {}).get("node", "").removeprefix(">="))


def _major(version: str) -> int:
    return int(version.strip().removeprefix("v").split(".")[0] or 0)


def _run(cwd: Path, program: str, *arguments: str) -> str:
    """Run a program to its end and return what it says, or raise NotInstalled."""
    path = shutil.which(program)
    if path is None:
        raise NotInstalled(f"{program} is missing. Install Node.js 20 or newer")
    try:
        done = subprocess.run(
            [path, *arguments], cwd=cwd, check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{program} did not finish within {TIMEOUT_SECONDS} seconds") from None
    except subprocess.CalledProcessError as error:
        reason = " ".join(error.stderr.split())
        raise NotInstalled(f"{program} failed with exit code {error.returncode}: {reason[:300]}") from None
    return done.stdout


if __name__ == "__main__":
    main()
