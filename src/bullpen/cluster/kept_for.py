"""KeptFor: which contents a worker keeps for which conversations: what none of them was told of can be removed."""

import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from threading import Lock

from bullpen.files.shrink import UNKNOWN

FOLDER = "conversations"


class KeptFor:
    """What conversations were told of, each in a file of its own: its id, then ids of contents and paths of folders."""

    def __init__(self, home: Path, cluster: str) -> None:
        """Several clusters may use one machine: each knows only its own conversations."""
        self._all = home / FOLDER
        self._ours = self._all / _safe(cluster)
        self._known: dict[str, set[str]] = {}
        self._writing = Lock()

    def note(self, conversation: str, told: Collection[str]) -> None:
        """Note what a conversation is told of, before it is."""
        with self._writing:
            known = self._known.get(conversation)
            if known is None:
                known = self._known[conversation] = set(_lines(self._file(conversation))[1:])
            # A path may have a line break in it: it is not known then which one it was.
            if new := {one.replace("\n", UNKNOWN) for one in told} - known:
                self._ours.mkdir(mode=0o700, parents=True, exist_ok=True)
                file = self._file(conversation)
                first = [] if file.exists() else [conversation]
                with file.open("a", encoding="utf-8", errors="surrogateescape") as opened:
                    opened.writelines(f"{line}\n" for line in (*first, *sorted(new)))
                known.update(new)

    def copy(self, conversation: str, fork: str) -> None:
        """Keep for another conversation, too, what one was told of."""
        self.note(fork, _lines(self._file(conversation))[1:])

    def conversations(self) -> list[str]:
        """Return the conversations of this cluster for which something is kept."""
        return [lines[0] for file in self._files(self._ours) if (lines := _lines(file))]

    def forget(self, conversation: str) -> None:
        """Note that nothing is kept for a conversation any more."""
        with self._writing:
            self._known.pop(conversation, None)
            self._file(conversation).unlink(missing_ok=True)

    def told(self, but: Collection[str]) -> tuple[set[str], set[str]]:
        """Return all ids and all folders that conversations of any cluster were told of, but for some of this one."""
        ids: set[str] = set()
        folders: set[str] = set()
        left_out = {self._file(conversation) for conversation in but}
        for file in self._files(self._all):
            if file not in left_out:
                lines = _lines(file)[1:]
                folders |= {line for line in lines if line.startswith("/")}
                ids |= {line for line in lines if not line.startswith("/")}
        return ids, folders

    def _file(self, conversation: str) -> Path:
        return self._ours / _safe(conversation)

    @staticmethod
    def _files(folder: Path) -> Iterator[Path]:
        return (file for file in sorted(folder.rglob("*")) if file.is_file())


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape").split("\n")[:-1]
    except OSError:
        return []


def _safe(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
