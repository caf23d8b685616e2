"""Instruction files: CLAUDE.md and its like, found and read without trusting what lies there.

Agents may write to the folders that we read from. So nothing is followed out of the team's folder, not even a link that
is put there between looking and opening, and nothing that is no file can make us wait.
"""

import os
import stat
from pathlib import Path

from bullpen.errors import InstructionFileProblem

MAX_BYTES = 16 * 1024 * 1024
"""What is read at most. Whatever of it does not fit into a prompt is left out of its middle, visibly."""

# Only the name of a folder is needed to look inside it; macOS has no such flag, and needs leave to read the folder.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


def find_instruction_file(
    root: Path, cwd: Path, default_name: str | None, *, outside_allowed: bool = False
) -> str | None:
    """Return the file that a CLI's users keep instructions in, for read_instruction_file; None if there is none.

    The member's folder comes first, then the team's. A folder outside the team's counts only if that is allowed.
    """
    if not default_name:
        return None
    folders = [root / cwd, root] if outside_allowed or _lies_inside(root / cwd, root) else [root]
    # A link that leads nowhere is there: reading it says what is wrong with it.
    found = (folder / default_name for folder in folders if os.path.lexists(folder / default_name))
    path = next(found, None)
    if path is None:
        return None
    return str(path.relative_to(root) if path.is_relative_to(root) else path)


def _lies_inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def read_instruction_file(root: Path, name: str, *, outside_allowed: bool) -> str:
    """Return the text of a file, named from the team's folder, or raise InstructionFileProblem."""
    try:
        folder, path = root.resolve(strict=True), (root / name).resolve(strict=True)
        if not outside_allowed and not path.is_relative_to(folder):
            raise InstructionFileProblem(
                name,
                f"lies outside {folder}.",
                "Move it into that folder, or set outside_files = true in the team file.",
            )
        content = _read(path, folder if path.is_relative_to(folder) else Path(path.anchor), name)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InstructionFileProblem(name, "does not exist.", "Write it, or change instruction_file.") from error
    # A circle of links is a RuntimeError before Python 3.13; a null byte in a name is a ValueError.
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
    """Open a resolved path from a resolved folder on, one part at a time, so that no link can come in between."""
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
        raise InstructionFileProblem(name, f"is not UTF-8 in line {line}.", "Save it as UTF-8.") from error
