"""Git repositories on workers."""

import subprocess
from pathlib import Path


def git(folder: Path, *arguments: str, given: str = "") -> str:
    """Run git in a folder, and return what it writes."""
    ours = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    done = subprocess.run(
        ["git", *ours, *arguments], cwd=folder, input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


def repository(folder: Path) -> None:
    """Make a repository with one file in it."""
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("one\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
