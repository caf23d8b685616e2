"""A disk that loses what was not synced: rebuilt from a recording, as it may look if the power fails at any moment."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

Keeping = Literal["nothing", "everything", "a beginning", "some sectors"]
KEEPING: tuple[Keeping, ...] = ("nothing", "everything", "a beginning", "some sectors", "some sectors")


class Operation(NamedTuple):
    """One line of a recording."""

    kind: str
    inode: int
    path: str
    place: int = 0
    """Where bytes are written, or the size that a file is cut to."""
    data: bytes = b""
    other: str = ""


def operations(recording: bytes) -> Iterator[Operation]:
    """Yield what a process did to the file system, in order."""
    place = 0
    while place < len(recording):
        end = recording.index(b"\n", place)
        kind, *words = recording[place:end].decode().split(" ")
        place = end + 1
        match kind, words:
            case "write", [inode, at, size]:
                yield Operation(kind, int(inode), "", int(at), recording[place : place + int(size)])
                place += int(size)
            case "cut", [inode, size]:
                yield Operation(kind, int(inode), "", int(size))
            case "sync", [inode]:
                yield Operation(kind, int(inode), "")
            case (("create" | "mkdir" | "link"), [inode, path]):
                yield Operation(kind, int(inode), path)
            case "unlink", [path]:
                yield Operation(kind, 0, path)
            case "rename", [path, other]:
                yield Operation(kind, 0, path, other=other)
            case _:
                raise ValueError(f"{kind} {words} is no line of a recording")


class File:
    """A file: what is safe, and what was written since."""

    def __init__(self, *, is_folder: bool = False) -> None:
        self.is_folder = is_folder
        self.safe = bytearray()
        self.pending: list[Operation] = []

    def sync(self) -> None:
        for operation in self.pending:
            apply(self.safe, operation)
        self.pending.clear()

    def after_a_cut(self, chance: random.Random, keeping: Keeping) -> bytes:
        """Return what is in the file when it is read again."""
        content = bytearray(self.safe)
        kept = self.pending
        if keeping == "nothing":
            kept = []
        elif keeping == "a beginning":
            kept = kept[: chance.randint(0, len(kept))]
            kept = [*kept[:-1], *torn(kept[-1:], chance, ordered=True)]
        elif keeping == "some sectors":
            kept = list(torn(kept, chance, ordered=False))
        for operation in kept:
            apply(content, operation)
        return bytes(content)


def apply(content: bytearray, operation: Operation) -> None:
    """Do one operation to the content of a file."""
    if operation.kind == "cut":
        del content[operation.place :]
        content.extend(bytes(operation.place - len(content)))
        return
    end = operation.place + len(operation.data)
    content.extend(bytes(max(0, operation.place - len(content))))
    content[operation.place : end] = operation.data


def torn(pending: list[Operation], chance: random.Random, *, ordered: bool) -> Iterator[Operation]:
    """Yield those sectors that reached the disk, each whole: the first ones, or any."""
    sector = chance.choice((512, 4096))
    likely = chance.random()
    for operation in pending:
        pieces = list(in_sectors(operation, sector))
        if ordered:
            yield from pieces[: chance.randint(0, len(pieces))]
        else:
            yield from (piece for piece in pieces if chance.random() < likely)


def in_sectors(operation: Operation, sector: int) -> Iterator[Operation]:
    """Yield the parts of an operation that a disk does at once."""
    if operation.kind != "write":
        yield operation
        return
    start, data = operation.place, operation.data
    while data:
        size = sector - start % sector
        yield operation._replace(place=start, data=data[:size])
        start, data = start + size, data[size:]


class Disk:
    """The file system below one folder. Names are safe when their folder is synced, and lost in the order they came."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.files: dict[int, File] = {root.stat().st_ino: File(is_folder=True)}
        self.folder_names: dict[int, str] = {root.stat().st_ino: self.root}
        self.names: dict[str, File] = {}
        self.safe_names: dict[str, File] = {}
        self.pending_names: list[tuple[str, File | None]] = []

    def do(self, operation: Operation) -> None:
        """Let one operation happen."""
        match operation.kind:
            case "write" | "cut":
                self.files[operation.inode].pending.append(operation)
            case "sync":
                self._sync(operation.inode)
            case "create" | "mkdir":
                self.files[operation.inode] = File(is_folder=operation.kind == "mkdir")
                self.folder_names.pop(operation.inode, None)
                if operation.kind == "mkdir":
                    self.folder_names[operation.inode] = operation.path
                self._name(operation.path, self.files[operation.inode])
            case "link":
                self._name(operation.path, self.files[operation.inode])
            case "unlink":
                self._name(operation.path, None)
            case "rename":
                self._name(operation.other, self.names[operation.path])
                self._name(operation.path, None)

    def after_a_cut(self, chance: random.Random) -> dict[str, bytes | None]:
        """Return the files that are there when the power is back, by their place below the root; None is a folder."""
        keeping = chance.choice(KEEPING)
        kept: dict[str, int] = {}
        for folder in sorted({str(Path(path).parent) for path, _ in self.pending_names}):
            changes = sum(str(Path(path).parent) == folder for path, _ in self.pending_names)
            kept[folder] = {"nothing": 0, "everything": changes}.get(keeping, chance.randint(0, changes))
        names = dict(self.safe_names)
        for path, file in self.pending_names:
            folder = str(Path(path).parent)
            kept[folder] -= 1
            if kept[folder] >= 0:
                rename(names, path, file)
        return {
            path.removeprefix(self.root + "/"): None if file.is_folder else file.after_a_cut(chance, keeping)
            for path, file in names.items()
            if self._is_reachable(path, names)
        }

    def now(self) -> dict[str, bytes]:
        """Return the files as a process sees them that goes on."""
        chance = random.Random(0)
        return {
            path.removeprefix(self.root + "/"): file.after_a_cut(chance, "everything")
            for path, file in self.names.items()
            if not file.is_folder
        }

    def _sync(self, inode: int) -> None:
        self.files[inode].sync()
        folder = self.folder_names.get(inode)
        if folder is None:
            return
        waiting = self.pending_names
        self.pending_names = []
        for path, file in waiting:
            if str(Path(path).parent) == folder:
                rename(self.safe_names, path, file)
            else:
                self.pending_names.append((path, file))

    def _name(self, path: str, file: File | None) -> None:
        rename(self.names, path, file)
        self.pending_names.append((path, file))

    def _is_reachable(self, path: str, names: dict[str, File]) -> bool:
        folder = str(Path(path).parent)
        return folder == self.root or (folder in names and self._is_reachable(folder, names))


def rename(names: dict[str, File], path: str, file: File | None) -> None:
    """Let a name mean a file, or nothing."""
    if file is None:
        names.pop(path, None)
    else:
        names[path] = file


def write_files(folder: Path, files: dict[str, bytes | None]) -> None:
    """Write what a cut left into a folder."""
    for name, content in sorted(files.items()):
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
