"""Where our index begins: with what the index of the person's repository knows, as far as it is byte for byte so."""

import os
import re
import shutil
from functools import cache
from pathlib import Path

from bullpen.files.git import GitFailed
from bullpen.files.index_file import Entry, NotReadable, read_index, write_index
from bullpen.files.repository import Repository, file_state

REGULAR, LINK = 0o100000, 0o120000
# What may change contents without changing their size.
CONVERTS = re.compile(rb"\b(filter|working-tree-encoding)\b|\[attr\]")
MOST_ATTRIBUTES_BYTES = 1024 * 1024
MOST_ATTRIBUTE_FILES = 1000


def seed(repository: Repository) -> list[bytes]:
    """Write our first index, and return what is tracked but must be read once, since it may be converted."""
    place = repository.place
    id_bytes = 32 if place.is_sha256 else 20
    if place.git_dir is None or place.objects is None:
        return []
    theirs = place.git_dir / "index"
    try:
        moment = theirs.stat().st_mtime_ns
        entries = [entry for entry in read_index(theirs, id_bytes=id_bytes) if _is_file(entry)]
    except (NotReadable, OSError):
        return []
    known = set() if _may_be_converted(repository, entries) else _as_on_disk(repository, entries)
    new = repository.own / "index.seed"
    write_index(new, [entry for entry in entries if entry.path in known], id_bytes=id_bytes)
    # Files as young as the index may have changed since; git then reads them, if the index keeps its time.
    os.utime(new, ns=(moment, moment))
    shutil.move(new, repository.index)
    return _there(place.root, [entry.path for entry in entries if entry.path not in known])


def tracked_but_ignored(repository: Repository) -> list[bytes]:
    """Return what the person tracks although it is ignored, if their index has changed since it was last asked."""
    git_dir = repository.place.git_dir
    if git_dir is None:
        return []
    theirs, asked = git_dir / "index", repository.own / "asked"
    try:
        state = file_state(theirs)
        if asked.exists() and asked.read_text(encoding="ascii") == state:
            return []
        git = repository.git(index=theirs)
        printed = git.run("ls-files", "--cached", "--ignored", "-z", "--exclude-standard", *repository.excludes())
        asked.write_text(state, encoding="ascii")
    except (GitFailed, OSError):
        return []
    return _there(repository.place.root, printed.split(b"\0")[:-1])


def _there(root: Path, paths: list[bytes]) -> list[bytes]:
    """Return the paths that lead to a file, with no symbolic link on the way."""

    @cache
    def is_folder(folder: Path) -> bool:
        return folder == root or (is_folder(folder.parent) and folder.is_dir() and not folder.is_symlink())

    files = {path: root / os.fsdecode(path) for path in paths}
    return [path for path, file in files.items() if is_folder(file.parent) and (file.is_symlink() or file.is_file())]


def _is_file(entry: Entry) -> bool:
    parts = entry.path.split(b"/")
    return entry.mode & 0o170000 in (REGULAR, LINK) and not {b"", b".", b"..", b".git"}.intersection(parts)


def _may_be_converted(repository: Repository, entries: list[Entry]) -> bool:
    """Return whether contents on the disk may differ from what is stored although they are equally long."""
    place = repository.place
    common = place.common_dir or place.root
    paths = [entry.path for entry in entries if entry.path.rpartition(b"/")[2] == b".gitattributes"]
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    files = [place.root / os.fsdecode(path) for path in (b".gitattributes", *paths)]
    files += [common / "info" / "attributes", home / "git" / "attributes", Path("/etc/gitattributes")]
    files += [Path(file) for file in (repository.setting("core.attributesFile"),) if file]
    return len(files) > MOST_ATTRIBUTE_FILES or any(map(_converts, files))


def _converts(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            text = opened.read(MOST_ATTRIBUTES_BYTES)
    except OSError:
        return False
    return len(text) == MOST_ATTRIBUTES_BYTES or CONVERTS.search(text) is not None


def _as_on_disk(repository: Repository, entries: list[Entry]) -> set[bytes]:
    """Return the paths whose stored contents are as long as the files on the disk were."""
    given = b"".join(entry.blob.hex().encode() + b"\n" for entry in entries)
    printed = repository.git().run("cat-file", "--batch-check=%(objecttype) %(objectsize)", "--buffer", given=given)
    return {
        entry.path for entry, line in zip(entries, printed.splitlines(), strict=True) if line == b"blob %d" % entry.size
    }
