"""Opening a team file: what is no small text file is refused with a sentence before anything reads it as a team."""

import os
import stat
from pathlib import Path

from msgspec import Struct

from bullpen.errors import InvalidTeam, NoTeamFile, UnreadableTeamFile
from bullpen.team.reader import read_team
from bullpen.team.team import Team

MAX_FILE_BYTES = 1024 * 1024


class LoadedTeam(Struct, frozen=True, kw_only=True):
    """A team together with the file that describes it."""

    team: Team
    text: str
    path: Path
    """Absolute; its folder is the real one, whatever links led there."""

    @property
    def root(self) -> Path:
        """The folder that everything in the file is relative to."""
        return self.path.parent


def load_team(path: Path) -> LoadedTeam:
    """Return the team in a file, or raise NoTeamFile, UnreadableTeamFile or InvalidTeam, which name the file."""
    text = read_team_file(path)
    try:
        team = read_team(text)
    except InvalidTeam as error:
        raise InvalidTeam(error.problems, path=path) from error
    return LoadedTeam(team=team, text=text, path=team_path(path))


def team_path(path: Path) -> Path:
    """Return the one path that stands for a team file, however it was named. A link to a file is a file of its own."""
    return path.parent.resolve() / path.name


def read_team_file(path: Path) -> str:
    """Return the text of a team file, without the mark that some editors put at the beginning."""
    content = _content(path)
    if len(content) > MAX_FILE_BYTES:
        raise UnreadableTeamFile(path, f"is larger than {MAX_FILE_BYTES // 1024} KiB, so it is no team file")
    if b"\0" in content:
        raise UnreadableTeamFile(path, "is no text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableTeamFile(path, f"is not in UTF-8 (line {line})", "Save it as UTF-8.") from error


def _content(path: Path) -> bytes:
    """Return at most a byte more than a team file may have."""
    try:
        # A pipe would keep us waiting for its other end.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb", closefd=True) as file:
            _need_regular_file(path, os.fstat(handle).st_mode)
            return file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NoTeamFile(path) from error
    except IsADirectoryError as error:
        raise UnreadableTeamFile(path, "is a folder", f"Name the file: {path / 'team.toml'}") from error
    except OSError as error:
        raise UnreadableTeamFile(path, f"cannot be read: {error.strerror}") from error


def _need_regular_file(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise UnreadableTeamFile(path, "is no ordinary file")
