"""Our own repository: for all work trees of one repository of somebody's, or for one folder."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from threading import local

from bullpen.files.git import Git, persons_setting
from bullpen.files.place import Place, git_dir_of, place_of

# Contents are kept byte for byte, and shown as what they are.
ATTRIBUTES = "* -text -eol -crlf -filter -ident -working-tree-encoding !diff !merge\n"
CONFIG = """[core]
\trepositoryformatversion = {version}
\tbare = true
\tfilemode = true
\tsymlinks = true
\tprotectNTFS = false
\tprotectHFS = false
\tfsync = loose-object
\tfsyncMethod = batch
[gc]
\tauto = 0
[diff]
\tignoreSubmodules = all
{more}"""
SHA256 = "[extensions]\n\tobjectFormat = sha256\n"
NOT_KEPT = """.venv/
venv/
node_modules/
__pycache__/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.tox/
.cache/
.gradle/
.idea/
*.pyc
.DS_Store
"""
"""What is left alone in a folder that is not a repository."""


_SPECIAL = re.compile(r"[][*?\\]")


class Repository:
    """Our repository, as it is used for one root."""

    def __init__(self, home: Path, place: Place, program: str, not_looked_at: Iterable[Path] = ()) -> None:
        self.place = place
        self.not_looked_at = tuple(
            str(path.relative_to(place.root)) for path in not_looked_at if path.is_relative_to(place.root)
        )
        """How the paths of our own files begin that are below the root."""
        self.program = program
        self.folder = home / place.family
        self.own = self.folder / "roots" / place.name
        self.index = self.own / "index"
        self._tree = self.own / "tree"
        self._settings: dict[str, str] = {}
        self._held = local()

    def make_private(self) -> None:
        """Make the folder of this root, in one that nobody else may look into."""
        self.folder.parent.mkdir(mode=0o700, exist_ok=True)
        self.own.mkdir(parents=True, exist_ok=True)

    def prepare(self) -> None:
        """Make what is missing of it."""
        self.make_private()
        (self.folder / "objects" / "info").mkdir(parents=True, exist_ok=True)
        (self.folder / "objects" / "pack").mkdir(exist_ok=True)
        _write(self.folder / "not-kept", NOT_KEPT)
        (self.folder / "refs").mkdir(exist_ok=True)
        (self.folder / "info").mkdir(exist_ok=True)
        more = SHA256 if self.place.is_sha256 else ""
        _write(self.folder / "config", CONFIG.format(version=1 if more else 0, more=more))
        _write(self.folder / "info" / "attributes", ATTRIBUTES)
        _write(self.folder / "HEAD", "ref: refs/heads/none\n")

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let nobody else use the index of this root."""
        self.make_private()
        with (self.own / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # The process that made it has ended: it would have our lock.
            (self.own / "index.lock").unlink(missing_ok=True)
            self._held.lock = file.fileno()
            try:
                yield
            finally:
                del self._held.lock

    def git(self, *, alone: bool = False, index: Path | None = None) -> Git:
        """Return git for this root; alone: without the objects of other repositories."""
        git = Git(
            self.program,
            self.folder,
            root=self.place.root,
            index=index or self.index,
            borrowed=[] if alone else self._borrowed(),
        )
        # If we are killed, what git has begun keeps our lock until it ends.
        git.inherited = (self._held.lock,) if hasattr(self._held, "lock") else ()
        return git

    @contextlib.contextmanager
    def keeping_time(self) -> Iterator[None]:
        """Let our index keep its time while git writes it without a look at the files.

        What is as young as the index may have changed since; git then reads it.
        """
        moment = self.index.stat().st_mtime_ns if self.index.exists() else None
        yield
        if moment is not None:
            os.utime(self.index, ns=(moment, moment))

    @property
    def is_seeded(self) -> bool:
        """Whether the index has once known all files."""
        return self._tree.exists()

    def last_tree(self) -> str:
        """Return the id of all files in our index; empty if it has changed since that was asked."""
        try:
            tree, state = self._tree.read_text(encoding="ascii").split("\n")
            return tree if state == file_state(self.index) else ""
        except (OSError, ValueError):
            return ""

    def remember_tree(self, tree: str) -> None:
        """Remember the id of all files in our index."""
        _write(self._tree, f"{tree}\n{file_state(self.index)}")

    def forget_index(self) -> None:
        """Let the index be made again."""
        for name in ("index", "tree", "asked"):
            (self.own / name).unlink(missing_ok=True)

    def excludes(self) -> list[str]:
        """Return the options for what is left alone, besides what files in the folder say."""
        # Its characters as they are, and anything after them: a database has files beside it.
        plain = [_SPECIAL.sub(r"\\\g<0>", path) for path in self.not_looked_at]
        ours = [f"--exclude=/{path}*" for path in plain]
        if self.place.common_dir is None:
            return [f"--exclude-from={self.folder / 'not-kept'}", *ours]
        files = [self.place.common_dir / "info" / "exclude", Path(self.setting("core.excludesFile"))]
        return [*(f"--exclude-from={file}" for file in files if file.is_file()), *ours]

    def setting(self, name: str) -> str:
        """Return a path that the person has set for all their repositories; asked once."""
        if name not in self._settings:
            self._settings[name] = persons_setting(self.program, self.folder, name)
        return self._settings[name]

    def borrow(self, nested: Path) -> None:
        """Use the objects of a repository within the root from now on."""
        git_dir = git_dir_of(nested)
        objects = None if git_dir is None else place_of(nested, git_dir).objects
        if objects is not None and objects not in self._borrowed() and self._is_ours(nested, git_dir):
            with (self.own / "borrowed").open("ab") as file:
                file.write(os.fsencode(objects) + b"\0")

    def _is_ours(self, nested: Path, git_dir: Path | None) -> bool:
        return git_dir is not None and place_of(nested, git_dir).is_sha256 == self.place.is_sha256

    def _borrowed(self) -> list[Path]:
        found = [self.place.objects] if self.place.objects else []
        # Also what the other roots borrow: a snapshot of one of them may be written into this one.
        for file in sorted(self.own.parent.glob("*/borrowed")):
            found += [Path(os.fsdecode(one)) for one in file.read_bytes().split(b"\0") if one]
        return [objects for objects in dict.fromkeys(found) if objects.is_dir()]

    def remove(self) -> None:
        """Remove what is kept of this root; if it was the last one, everything."""
        shutil.rmtree(self.own, ignore_errors=True)
        with contextlib.suppress(OSError):
            (self.folder / "roots").rmdir()
            shutil.rmtree(self.folder, ignore_errors=True)


def file_state(file: Path) -> str:
    """Return a few words that differ whenever a file was written again."""
    status = file.stat()
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"


def _write(file: Path, text: str) -> None:
    """Write a small file whole, if it is not so already."""
    with contextlib.suppress(OSError):
        if file.read_text(encoding="utf-8") == text:
            return
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(file)
