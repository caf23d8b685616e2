"""What nobody needs any more, removed from our repositories. What is needed is never without a copy meanwhile."""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from bullpen.files.beside import FOLDER as BESIDE
from bullpen.files.git import Git, find_git
from bullpen.files.keep import missing_objects
from bullpen.files.own_paths import FOLDER as WORKTREES
from bullpen.files.own_workspace import STATE, read_state
from bullpen.files.place import find_place, hashed

_ID = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")
UNKNOWN = "\ufffd"
"""In a path that was not UTF-8: it cannot be known which one it was."""
WALK = ("rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--stdin")


def ids_in(data: bytes) -> set[str]:
    """Return everything in a text that may be the id of a tree or of contents."""
    return {found.decode() for found in _ID.findall(data)}


def kept_bytes(home: Path) -> int:
    """Return how much all that is kept takes, worktrees included."""
    return sum(_size(Path(where) / name) for where, _, names in os.walk(home) for name in names)


def shrink(home: Path, ids: Collection[str], folders: Collection[str]) -> int:
    """Remove all contents but those with these ids, or in trees with these ids; return how many bytes that were.

    Of folders that are not named, what was last seen in them is forgotten, too; agents' worktrees are all needed. Only
    for who is alone with what is kept. Raises GitFailed or OSError; then less is removed.
    """
    before = kept_bytes(home)
    wanted, named = set(ids), set(folders)
    for state, path in _worktrees(home):
        wanted |= ids_in(state.read_bytes())
        known = read_state(state)
        named |= {str(path), known.shared if known is not None else UNKNOWN}
    program = find_git()
    for family in sorted(one.parent for one in home.glob("*/roots")):
        with _unused(family) as is_unused:
            if is_unused and program is not None:
                _shrink(family, program, wanted, named)
    return before - kept_bytes(home)


def _worktrees(home: Path) -> Iterator[tuple[Path, Path]]:
    for file in (Path(os.path.realpath(home)) / WORKTREES).glob(f"*/*{STATE}"):
        yield file, file.with_name(file.name.removesuffix(STATE))


@contextlib.contextmanager
def _unused(family: Path) -> Iterator[bool]:
    """Say whether no git is running there: one may be, of a process that was killed."""
    with contextlib.ExitStack() as locks:
        try:
            for root in (family / "roots").iterdir():
                fcntl.flock(locks.enter_context((root / "lock").open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True


def _shrink(family: Path, program: str, wanted: set[str], folders: set[str]) -> None:
    names = {hashed(Path(folder)) for folder in folders}
    is_known = not any(UNKNOWN in folder for folder in folders)
    for root in (family / "roots").iterdir():
        if is_known and root.name not in names:
            shutil.rmtree(root)
    if not any((family / "roots").iterdir()):
        shutil.rmtree(family)
    elif (family / "config").exists():
        _remove_beside(family, wanted)
        needed = _needed(family, program, wanted, _borrowed(family, folders))
        _remove_files(family, needed)
        _remove_from_packs(family, Git(program, family, root=family), needed)


def _needed(family: Path, program: str, wanted: set[str], borrowed: list[Path]) -> set[str]:
    """Return all that can be reached from what is wanted, and from what was last seen in each root."""
    ids = set(wanted)
    for root in (family / "roots").iterdir():
        if (root / "tree").exists():
            ids |= ids_in((root / "tree").read_bytes())
        if (root / "index").exists():
            listed = Git(program, family, root=family, index=root / "index").run("ls-files", "--stage", "-z")
            ids |= {line.split(b" ", 2)[1].decode() for line in listed.split(b"\0")[:-1]}
    git = Git(program, family, root=family, borrowed=borrowed)
    ids -= missing_objects(git, ids)
    return set(git.run(*WALK, given="".join(f"{one}\n" for one in sorted(ids)).encode()).decode().split())


def _remove_beside(family: Path, wanted: set[str]) -> None:
    """Remove what was beside snapshots that nobody needs, and that are not the last of their root."""
    for root in (family / "roots").iterdir():
        last = ids_in((root / "tree").read_bytes()) if (root / "tree").exists() else set()
        for file in (root / BESIDE).glob("*"):
            if file.name not in wanted | last:
                file.unlink()


def _remove_files(family: Path, needed: set[str]) -> None:
    """Remove objects that have a file each, and what was half written."""
    for file in (family / "objects").glob("[0-9a-f][0-9a-f]/*"):
        if file.parent.name + file.name not in needed:
            file.unlink()
    for file in (family / "objects" / "pack").glob("tmp_*"):
        file.unlink()


def _remove_from_packs(family: Path, git: Git, needed: set[str]) -> None:
    """Write packs again without what is not needed; the old ones are removed when the new ones are on the disk."""
    old: list[Path] = []
    for index in sorted((family / "objects" / "pack").glob("*.idx")):
        with index.open("rb") as file:
            ids = {line.split()[1] for line in git.run("show-index", given=file).decode().splitlines()}
        if ids <= needed:
            continue
        old.append(index)
        if ids & needed:
            given = "".join(f"{one}\n" for one in sorted(ids & needed)).encode()
            git.run("pack-objects", "-q", "--window=0", str(index.with_name("pack")), given=given)
    if old:
        os.sync()
    for index in old:
        index.unlink()
        for part in index.parent.glob(f"{index.stem}.*"):
            part.unlink()


def _borrowed(family: Path, folders: set[str]) -> list[Path]:
    """Return where else objects of a family are: a tree there may be on the way to what is only in ours."""
    # An import may name anything, also what cannot be looked at.
    places = (find_place(Path(folder)) for folder in sorted(folders) if os.path.isdir(folder))  # noqa: PTH112
    found = [place.objects for place in places if place.family == family.name and place.objects]
    for file in sorted(family.glob("roots/*/borrowed")):
        found += [Path(os.fsdecode(one)) for one in file.read_bytes().split(b"\0") if one]
    return [objects for objects in dict.fromkeys(found) if objects.is_dir()]


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except OSError:
        return 0
