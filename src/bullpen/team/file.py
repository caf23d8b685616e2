"""Opening a team file: anything but a small text file is refused before it is parsed."""

import os
import stat
from pathlib import Path

from msgspec import Struct

from bullpen.errors import BullpenError, InvalidTeam, NoTeamFile, UnreadableTeamFile
from bullpen.team.reader import read_team
from bullpen.team.team import Team

MAX_FILE_BYTES = 1024 * 1024


class LoadedTeam(Struct, frozen=True, kw_only=True):
    """A team together with the file that describes it."""

    team: Team
    text: str
    path: Path
    """Absolute; links in its folder are resolved."""
    folder: Path | None = None
    """Where its agents work if not in the folder of the file: in another worktree of the same repository."""

    @property
    def root(self) -> Path:
        """The folder that everything in the file is relative to."""
        return self.folder or self.path.parent


def read_loaded(path: Path, text: str) -> LoadedTeam:
    """Return the team that a text would be in a file at this path; raise InvalidTeam if it is not one."""
    try:
        team = read_team(text)
    except InvalidTeam as error:
        raise InvalidTeam(error.problems, path=path) from error
    return LoadedTeam(team=team, text=text, path=team_path(path))


def write_team_file(path: Path, text: str) -> None:
    """Replace a team file at once, with the permissions that it has."""
    # A link stays one: what it leads to is replaced.
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{os.urandom(8).hex()}.new")
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            os.fchmod(handle, mode)
            file.write(text)
            file.flush()
            os.fsync(handle)
        draft.replace(target)
    except OSError as error:
        raise BullpenError(f"{path} cannot be written: {error.strerror}.") from error
    finally:
        draft.unlink(missing_ok=True)


def load_team(path: Path) -> LoadedTeam:
    """Return the team in a file. Raise NoTeamFile, UnreadableTeamFile or InvalidTeam, which name the file."""
    return read_loaded(path, read_team_file(path))


def team_path(path: Path) -> Path:
    """Return the one path that identifies a team file. A link to a file counts as a separate file."""
    return path.parent.resolve() / path.name


def read_team_file(path: Path) -> str:
    """Return the text of a team file, without the byte order mark that some editors add."""
    content = _content(path)
    if len(content) > MAX_FILE_BYTES:
        raise UnreadableTeamFile(path, f"is larger than {MAX_FILE_BYTES // 1024} KiB, so it is not a team file")
    if b"\0" in content:
        raise UnreadableTeamFile(path, "is not a text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableTeamFile(path, f"is not valid UTF-8 (line {line})", "Save it as UTF-8.") from error


def _content(path: Path) -> bytes:
    """Return the content, read up to one byte more than a team file may have."""
    try:
        # Non-blocking: opening a pipe would wait for its writer.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", closefd=True) as file:
            _require_regular_file(path, os.fstat(handle).st_mode)
            return file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoTeamFile(path) from error
    except IsADirectoryError as error:
        raise UnreadableTeamFile(path, "is a folder", f"Name the file: {path / 'team.toml'}") from error
    except OSError as error:
        raise UnreadableTeamFile(path, f"cannot be read: {error.strerror}") from error


def _require_regular_file(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UnreadableTeamFile(path, "is not a regular file")
