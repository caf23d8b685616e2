"""The screens of the vendors' own CLIs, each with what it needs to start without questions and without a network."""

import json
import shutil
import subprocess
from pathlib import Path

from msgspec import Struct
from tests.agents.real_cli.install import binaries, is_installed

KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), "none")
NOWHERE = "http://127.0.0.1:9"
QWEN = {"OPENAI_BASE_URL": NOWHERE, "OPENAI_MODEL": "none"}
ASKED = b"Type your message"
READY = {"claude": "❯".encode(), "codex": b"Ask Codex", "gemini": ASKED, "qwen": ASKED}
"""What is on each screen when it takes input."""


class VendorScreen(Struct, frozen=True):
    """How one of them is started, and what it shows when it is ready."""

    command: tuple[str, ...]
    environment: dict[str, str]
    ready: bytes


def vendor_screens(home: Path, folder: Path) -> dict[str, VendorScreen]:
    """Return those that are installed, with a home that answers their first questions; none without `unshare`."""
    unshare = shutil.which("unshare")
    if unshare is None or not is_installed() or subprocess.run([unshare, "-n", "true"], check=False).returncode:
        return {}
    _answer_questions(home, folder)
    environment = {"HOME": str(home), **KEYS, **QWEN}
    return {
        name: VendorScreen((unshare, "-n", str(binaries() / name)), environment, ready)
        for name, ready in READY.items()
        if (binaries() / name).exists()
    }


def _answer_questions(home: Path, folder: Path) -> None:
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    claude = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {str(folder): trusted},
        "customApiKeyResponses": {"approved": ["none"], "rejected": []},
    }
    gemini = {"security": {"folderTrust": {"enabled": False}, "auth": {"selectedType": "gemini-api-key"}}}
    _write(home / ".claude.json", json.dumps(claude))
    _write(home / ".codex" / "auth.json", json.dumps({"OPENAI_API_KEY": "none"}))
    _write(home / ".codex" / "config.toml", f'[projects."{folder}"]\ntrust_level = "trusted"\n')
    _write(home / ".gemini" / "settings.json", json.dumps(gemini))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
