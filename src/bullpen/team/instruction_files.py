"""Instruction files such as CLAUDE.md, found and read without trusting the folder they are in.

Agents may write to the folders that we read from. So no link is followed out of the team's folder, not even one that is
created between the check and the open, and nothing but a regular file is read, which could block.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from bullpen.agents.folder_settings import places_of
from bullpen.errors import InstructionFileProblem
from bullpen.files.place import find_place

MAX_BYTES = 16 * 1024 * 1024
"""The most that is read. If that is too long for a prompt, its middle is left out, visibly."""

# O_PATH opens a folder without permission to read it; macOS has no such flag, and needs that permission.
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC


class InstructionFile(Struct, frozen=True, kw_only=True):
    """An instruction file that is to be read."""

    name: str
    """Its path from the team's folder; an absolute one if it is not below it."""
    folder: Path
    """Nothing outside of this folder is read for it, unless the team file allows that."""
    usual: str = ""
    """Which of its CLI's usual files it is; empty: the team file names it."""


def find_instruction_files(
    root: Path, cwd: Path, usual: Sequence[str], *, outside_allowed: bool = False
) -> tuple[InstructionFile, ...]:
    """Return a CLI's usual instruction files: of each folder the first that it has, the nearest folder last.

    They are looked for from the top of the repository down to the member's folder, as CLIs do. A folder that is
    neither around nor below the team's is searched only if that is allowed.
    """
    root = Path(os.path.abspath(root))  # noqa: PTH100 - links stay as they are
    if not usual:
        return ()
    below = _is_inside(root / cwd, root)
    top, last = (root, root / cwd if below else root)
    if not below and outside_allowed and (found := _in_folders(root, _down(_top(root / cwd), root / cwd), usual)):
        return found
    above = _down(_top(root), Path(os.path.realpath(root)))[:-1]
    return _in_folders(root, (*above, *_down(top, last)), usual)


def _in_folders(root: Path, folders: Sequence[Path], usual: Sequence[str]) -> tuple[InstructionFile, ...]:
    # A broken link counts as found: reading it reports what is wrong with it.
    firsts = ((folder, next((name for name in usual if os.path.lexists(folder / name)), "")) for folder in folders)
    return tuple(
        InstructionFile(name=str((folder / name).relative_to(root)), folder=root, usual=name)
        if folder.is_relative_to(root)
        else InstructionFile(name=str(folder / name), folder=folder, usual=name)
        for folder, name in firsts
        if name
    )


def _is_inside(path: Path, folder: Path) -> bool:
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def _top(folder: Path) -> Path:
    """Return the top of a folder's repository; the folder itself if it is in none that is the user's own.

    One around the user's home is not the project's, and in one such as /tmp everybody may write rules.
    """
    top = find_place(folder).root
    return top if top in places_of(folder) else folder


def _down(top: Path, folder: Path) -> tuple[Path, ...]:
    """Return the folders from the top down to a folder; only that if it is not below."""
    top, folder = (Path(os.path.abspath(path)) for path in (top, folder))  # noqa: PTH100 - links stay as they are
    return tuple(place for place in (*reversed(folder.parents), folder) if place.is_relative_to(top)) or (folder,)


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
