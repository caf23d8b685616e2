"""Instruction files such as CLAUDE.md, found and read without trusting the folder they are in.

Agents may write to the folders that we read from. So no link is followed out of the team's folder, not even one that is
created between the check and the open, and nothing but a regular file is read, which could block.
"""

import os
import stat
from pathlib import Path

from bullpen.errors import InstructionFileProblem

MAX_BYTES = 16 * 1024 * 1024
"""The most that is read. If that is too long for a prompt, its middle is left out, visibly."""

# O_PATH opens a folder without permission to read it; macOS has no such flag, and needs that permission.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


def find_instruction_file(
    root: Path, cwd: Path, default_name: str | None, *, outside_allowed: bool = False
) -> str | None:
    """Return a CLI's usual instruction file, for read_instruction_file; None if there is none.

    The member's folder comes first, then the team's. A folder outside the team's is searched only if that is allowed.
    """
    if not default_name:
        return None
    folders = [root / cwd, root] if outside_allowed or _is_inside(root / cwd, root) else [root]
    # A broken link counts as found: reading it reports what is wrong with it.
    found = (folder / default_name for folder in folders if os.path.lexists(folder / default_name))
    path = next(found, None)
    if path is None:
        return None
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def read_instruction_file(root: Path, name: str, *, outside_allowed: bool) -> str:
    """Return the text of a file, relative to the team's folder, or raise InstructionFileProblem."""
    try:
        folder, path = root.resolve(strict=True), (root / name).resolve(strict=True)
        if not outside_allowed and not path.is_relative_to(folder):
            raise InstructionFileProblem(
                name,
                f"is outside {folder}.",
                "Move it into that folder, or set outside_files = true in the team file.",
            )
        content = _read(path, folder if path.is_relative_to(folder) else Path(path.anchor), name)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InstructionFileProblem(name, "does not exist.", "Write it, or change instruction_file.") from error
    # A loop of links is a RuntimeError before Python 3.13; a null byte in a name is a ValueError.
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InstructionFileProblem(name, f"cannot be read: {reason}.", "Change it, or instruction_file.") from error
    return _text(content, name)


def _read(path: Path, folder: Path, name: str) -> bytes:
    descriptor = _opened(path, folder)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InstructionFileProblem(name, "is not a regular file.", "Name a text file as instruction_file.")
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)


def _opened(path: Path, folder: Path) -> int:
    """Open a resolved path from a resolved folder, one part at a time, so that no link is followed on the way."""
    *folders, file = path.relative_to(folder).parts or (".",)
    current = os.open(folder, _FOLDER)
    for part, flags in [*((part, _FOLDER) for part in folders), (file, _FILE)]:
        try:
            opened = os.open(part, flags, dir_fd=current)
        finally:
            os.close(current)
        current = opened
    return current


def _text(content: bytes, name: str) -> str:
    if len(content) > MAX_BYTES:
        raise InstructionFileProblem(name, f"is longer than {MAX_BYTES // 1024 // 1024} MiB.", "Shorten it.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InstructionFileProblem(name, f"is not valid UTF-8 (line {line}).", "Save it as UTF-8.") from error
