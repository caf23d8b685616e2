"""Sessions that the genuine CLIs wrote, in homes of their own: see tests/agents/recordings/sessions."""

import shutil
from pathlib import Path

import pytest

RECORDINGS = Path(__file__).parents[1] / "agents" / "recordings" / "sessions"
HOMES = {
    "claude": "CLAUDE_CONFIG_DIR",
    "codex": "CODEX_HOME",
    "gemini": "GEMINI_CLI_HOME",
    "qwen": "QWEN_HOME",
}
FOLDER = "/home/kai/project"

# The first session of each was made with one command per message, the second by typing into the CLI.
FIRST = {
    "claude": "11111111-2222-4333-8444-555555555501",
    "codex": "01a1e405-cfc2-7cd0-8762-f6e1a970230f",
    "gemini": "11111111-2222-4333-8444-555555555501",
    "qwen": "11111111-2222-4333-8444-555555555501",
}
TYPED = {
    "claude": "ec189aca-ac84-41cb-a350-13d0e33d4326",
    "codex": "01a1e40a-97e2-70c0-b45f-9792e02c4057",
    "gemini": "67704b51-ed15-40b5-9ac6-861d872b0a01",
    "qwen": "07f64066-b536-4f07-9d54-b8f362a7d5c9",
}


def copy_homes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Copy the recordings, and point the CLIs' variables there; return the home of each."""
    homes = {cli: folder / cli for cli in HOMES}
    for cli, home in homes.items():
        shutil.copytree(RECORDINGS / cli, home)
        monkeypatch.setenv(HOMES[cli], str(home))
    return homes


def session_files(home: Path) -> list[Path]:
    """Return all files of sessions below a home."""
    return sorted(home.rglob("*.jsonl"))
