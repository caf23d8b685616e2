"""Read-only media and full disks, for a process of its own."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
FULL = (
    'mkdir "$1/full" && mount -t tmpfs -o size=1m tmpfs "$1/full" && cp "$1"/*.db* "$1/full" && '
    '{ dd if=/dev/zero of="$1/full/fill" bs=4k 2>/dev/null; shift; exec "$@"; }'
)


def run_on_read_only_media(
    folder: Path, command: Sequence[str], env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command for which a folder is on read-only media."""
    if os.getuid() == 0:
        return _mounted(READ_ONLY, folder, command, env)
    folder.chmod(0o500)
    try:
        return _run(command, env)
    finally:
        folder.chmod(0o700)


def run_on_a_full_disk(folder: Path, command: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command for which the folder `full` has a copy of a folder's databases, and no room for anything else."""
    return _mounted(FULL, folder, command, None)


def _mounted(
    script: str, folder: Path, command: Sequence[str], env: Mapping[str, str] | None
) -> "subprocess.CompletedProcess[str]":
    unshare = shutil.which("unshare")
    if unshare is None or _run([unshare, "--mount", "true"], env).returncode:
        pytest.skip("only root on Linux can mount something here")
    return _run([unshare, "--mount", "sh", "-c", script, "sh", str(folder), *command], env)


def _run(command: Sequence[str], env: Mapping[str, str] | None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, env=env, capture_output=True, encoding="utf-8", check=False)
