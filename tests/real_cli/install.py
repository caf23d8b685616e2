"""Install the genuine agent CLIs into .cache/real_cli, once for each package.json: `python tests/real_cli/install.py`.

If BULLPEN_NEWEST names a folder, its package.json counts, and they are installed there: `make newest` sets it.
Whatever goes wrong is said in one line and is no failure, since the tests that need the CLIs are skipped without them.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PINS = Path(__file__).with_name("package.json")
NEWEST = os.environ.get("BULLPEN_NEWEST")
PACKAGES = Path(NEWEST, "package.json") if NEWEST else PINS
CACHE = Path(NEWEST) if NEWEST else Path(__file__).parents[2] / ".cache" / "real_cli"
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
NOT_INSTALLED = {"vibe-acp": "3.0.2"}
"""Tried where it is on the PATH: it is large, comes from PyPI as mistral-vibe, and needs Python 3.12."""
TIMEOUT_SECONDS = 900

# Install scripts would compile a terminal that nobody needs here. Only two are run, by name: they put the program for
# this machine into place.
NPM_INSTALL = ("install", "--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
SCRIPTS = ("@anthropic-ai/claude-code/install.cjs", "opencode-ai/postinstall.mjs")


class NotInstalled(Exception):
    """Why the CLIs are not there."""


def main() -> None:
    """Install the CLIs if they are not there yet, and say so."""
    try:
        if not is_installed():
            what = ", ".join(f"{command} {version}" for command, version in versions().items())
            print(f"Installing the genuine agent CLIs ({what}) into {folder()} ...", flush=True)
            install()
    except NotInstalled as error:
        print(
            f"\n!!! THE GENUINE AGENT CLIS ARE NOT INSTALLED, their tests will be skipped: {error}\n", file=sys.stderr
        )
    else:
        print(f"The genuine agent CLIs are in {binaries()}")


def folder() -> Path:
    """Return where the CLIs of this package.json are installed."""
    return CACHE / hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:16]


def binaries() -> Path:
    """Return the folder that holds the programs."""
    return folder() / "node_modules" / ".bin"


def is_installed() -> bool:
    """Return whether an installation was finished."""
    return (folder() / "installed").exists()


def versions(packages: Path = PACKAGES, commands: Mapping[str, str] = COMMANDS) -> dict[str, str]:
    """Return the version of each program that a package.json names."""
    pinned = json.loads(packages.read_bytes())["dependencies"]
    return {command: pinned[package] for command, package in commands.items()}


def install() -> None:
    """Install the CLIs, or raise NotInstalled."""
    folder().mkdir(parents=True, exist_ok=True)
    shutil.copy(PACKAGES, folder())
    _run("npm", *NPM_INSTALL)
    for script in SCRIPTS:
        _run("node", f"node_modules/{script}")
    missing = [name for name in (*COMMANDS, *OTHERS) if not (binaries() / name).exists()]
    if missing:
        raise NotInstalled(f"npm brought no {' and no '.join(missing)}")
    (folder() / "installed").touch()


def _run(program: str, *arguments: str) -> None:
    path = shutil.which(program)
    if path is None:
        raise NotInstalled(f"{program} is missing. Install Node.js 20 or newer")
    try:
        subprocess.run(
            [path, *arguments], cwd=folder(), check=True, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"{program} did not finish within {TIMEOUT_SECONDS} seconds") from None
    except subprocess.CalledProcessError as error:
        reason = " ".join(error.stderr.split())
        raise NotInstalled(f"{program} failed with exit code {error.returncode}: {reason[:300]}") from None


if __name__ == "__main__":
    main()
