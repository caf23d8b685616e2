"""What a person has typed before: a private file with one JSON string per line, so that messages keep their lines."""

import hashlib
import json
import os
from pathlib import Path

from bullpen.config import data_folder

MOST_ENTRIES = 1000
FOLDER_MODE, FILE_MODE = 0o700, 0o600


def history_of(team_file: Path) -> Path:
    """Return where the history of a team is: what is typed to one team is nothing for another."""
    name = hashlib.sha256(str(team_file).encode(errors="surrogateescape")).hexdigest()[:16]
    return data_folder() / "input-histories" / name


class InputHistory:
    """Reads the file and adds to it. If the file cannot be used, the chat works without it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def entries(self) -> list[str]:
        """Return the latest entries, oldest first."""
        try:
            lines = self._file.read_bytes().splitlines()[-MOST_ENTRIES:]
        except OSError:
            return []
        return [text for line in lines if (text := _text(line))]

    def add(self, text: str) -> None:
        """Add an entry. A file that has grown long is shortened."""
        if not text.strip():
            return
        try:
            self._file.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            handle = os.open(self._file, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, FILE_MODE)
            with os.fdopen(handle, "ab") as file:
                file.write(json.dumps(text).encode() + b"\n")
        except OSError:
            return

    def shorten(self) -> None:
        """Keep the latest entries only, if there are many more."""
        try:
            lines = self._file.read_bytes().splitlines(keepends=True)
            if len(lines) > 2 * MOST_ENTRIES:
                draft = self._file.with_name(f".{self._file.name}.{os.getpid()}.new")
                with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE), "wb") as file:
                    file.writelines(lines[-MOST_ENTRIES:])
                draft.replace(self._file)
        except OSError:
            return


def _text(line: bytes) -> str:
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return text if isinstance(text, str) else ""
