"""Random turns in random folders: everything that an agent or a person does to files, always the same for a seed."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

from bullpen.files.workspace import FolderSnapshots, Workspace

NAMES = (
    *(
        b"plain.txt",
        b"a b.md",
        "中文.txt".encode(),
        "表情😀.py".encode(),
        b"new\nline",
        b"tab\tbed",
        b'quo"te',
        b"back\\slash",
    ),
    *(
        b"\xff\xfe.bin",
        b"-dash",
        b" lead",
        b"trail ",
        b"UPPER",
        b"*.star",
        b"[b]",
        b"git~1",
        b"x.crlf",
        b"x.id",
        b"x.rot",
    ),
    *(b"a", b"b", b"c", b"index", b"HEAD", b"{}", b"%s", b"'"),
)
FOLDERS = (b"src", "目录".encode(), b"deep/er/est", b"a", b"sp ace", b"\xfe", b"src/new\nline", b"nested", b"sub")
KINDS = ("repository", "unborn", "plain", "sha256", "worktree", "submodule", "converting")
IGNORED = b"ignored"
Files = dict[bytes, tuple[str, bytes]]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    **{"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"},
    **{f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str) -> bytes:
    """Run git as a person would."""
    command = [
        "git",
        "-c",
        "core.protectNTFS=false",
        "-c",
        "protocol.file.allow=always",
        "-c",
        "advice.addEmbeddedRepo=false",
        *arguments,
    ]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def files_in(root: Path) -> Files:
    """Return mode and contents of every file that is not ignored, nor in a git folder."""
    found: Files = {}
    for folder, folders, names in os.walk(os.fsencode(root)):
        folders[:] = [name for name in folders if name not in (b".git", IGNORED)]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *links):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if name != b".git" and stat.S_ISLNK(mode):
                found[os.path.relpath(path, os.fsencode(root))] = ("120000", os.readlink(path))
            elif name != b".git":
                data = Path(os.fsdecode(path)).read_bytes()
                found[os.path.relpath(path, os.fsencode(root))] = ("100755" if mode & 0o100 else "100644", data)
    return found


def others_in(root: Path) -> str:
    """Return a hash of all that we may never touch: every git folder in it, and what is ignored."""
    hasher = sha256()
    for folder, folders, names in os.walk(os.fsencode(root)):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(folder, name)
            parts = os.path.relpath(path, os.fsencode(root)).split(b"/")
            if b".git" in parts or IGNORED in parts:
                hasher.update(path + b"\0" + sha256(Path(os.fsdecode(path)).read_bytes()).digest())
    return hasher.hexdigest()


class RandomFolder:
    """A folder of a random kind, and somebody who does random things in it."""

    def __init__(self, base: Path, random: Random) -> None:
        self.random = random
        self.kind = random.choice(KINDS)
        self.base = base
        self.root = base / "root"
        self.actions: list[Callable[[], object]] = [
            *([self.edit] * 5 + [self.create] * 4 + [self.delete] * 2 + [self.rename] * 2),
            *(self.make_executable, self.link, self.touch, self.replace_by_folder, self.replace_folder, self.nest),
            *(self.ignore, self.empty),
        ]

    def prepare(self) -> None:
        """Make the folder, with some files, dirty and untracked ones among them."""
        self.root.mkdir()
        if self.kind != "plain":
            getattr(self, f"_prepare_{self.kind}", self._prepare_repository)()
        self._write(b".gitignore", b"ignored/\n*.o\n")
        self.act(self.random.randrange(2, 12))

    def act(self, count: int) -> None:
        """Do random things."""
        for _ in range(count):
            self.random.choice(self.actions)()

    def _prepare_unborn(self) -> None:
        git(self.root, "init", "-q")

    def _prepare_repository(self, *options: str) -> None:
        git(self.root, "init", "-q", *options)
        for _ in range(8):
            self.create()
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "--allow-empty", "-m", "x")
        self.edit()
        git(self.root, "stash", "-q")
        self.create()
        git(self.root, "add", "-A")

    def _prepare_sha256(self) -> None:
        self._prepare_repository("--object-format=sha256")

    def _prepare_worktree(self) -> None:
        self._prepare_repository()
        git(self.root, "worktree", "add", "-q", str(self.base / "tree"))
        self.root = self.base / "tree"

    def _prepare_submodule(self) -> None:
        other = self.base / "other"
        other.mkdir()
        git(other, "init", "-q")
        (other / "in submodule").write_bytes(b"one\r\ntwo\n")
        git(other, "add", "-A")
        git(other, "commit", "-q", "-m", "x")
        self._prepare_repository()
        for name in ("checked out", "empty"):
            git(self.root, "submodule", "--quiet", "add", str(other), name)
        git(self.root, "commit", "-q", "-m", "x")
        git(self.root, "submodule", "--quiet", "deinit", "-f", "empty")

    def _prepare_converting(self) -> None:
        git(self.root, "init", "-q")
        git(self.root, "config", "filter.rot.clean", "tr a-z n-za-m")
        git(self.root, "config", "filter.rot.smudge", "tr a-z n-za-m")
        attributes = b"* text=auto\n*.crlf eol=crlf\n*.id ident\n"
        self._write(b".gitattributes", attributes + (b"*.rot filter=rot\n" if self.random.random() < 0.5 else b""))
        for name in (b"x.crlf", b"x.id", b"x.rot", b"mixed"):
            self._write(name, b"line $Id$\r\nand\n" * 3)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "x")
        for name in ("x.crlf", "x.id", "x.rot"):
            (self.root / name).unlink()
        git(self.root, "checkout", "-q", "--", ".")

    # What can be done.

    def edit(self) -> None:
        path = self._some()
        if path is None or os.path.islink(self._at(path)):
            return
        data = Path(os.fsdecode(self._at(path))).read_bytes()
        at = self.random.randrange(len(data) + 1)
        Path(os.fsdecode(self._at(path))).write_bytes(data[:at] + self._contents()[:200] + data[at + 3 :])

    def create(self) -> None:
        self._write(self._new(), self._contents())

    def empty(self) -> None:
        self._write(self._new(), b"")

    def delete(self) -> None:
        path = self._some()
        if path is not None:
            os.unlink(self._at(path))

    def rename(self) -> None:
        path, new = self._some(), self._new()
        if path is not None and self._is_free(new):
            os.renames(self._at(path), self._at(new))
            self.root.mkdir(exist_ok=True)

    def make_executable(self) -> None:
        path = self._some()
        if path is not None and not os.path.islink(self._at(path)):
            os.chmod(self._at(path), 0o755 if self.random.random() < 0.6 else 0o644)

    def touch(self) -> None:
        path = self._some()
        if path is not None and not os.path.islink(self._at(path)):
            os.utime(self._at(path), ns=(10**18, self.random.choice((10**18, 2 * 10**18))))

    def link(self) -> None:
        path = self._new()
        target = self.random.choice((b"/etc/passwd", b"../..", b"nowhere", b"a", b"src", b"\xff", "目录".encode()))
        if self._is_free(path):
            os.makedirs(os.path.dirname(self._at(path)), exist_ok=True)
            os.symlink(target, self._at(path))

    def replace_by_folder(self) -> None:
        path = self._some()
        if path is not None:
            os.unlink(self._at(path))
            self._write(path + b"/inside", self._contents())

    def replace_folder(self) -> None:
        path = self._some()
        if path is None or b"/" not in path:
            return
        folder = os.path.dirname(path)
        if any(b".git" in names for _, *lists in os.walk(self._at(folder)) for names in lists):
            return
        shutil.rmtree(self._at(folder))
        if self.random.random() < 0.5:
            os.symlink(b"/tmp", self._at(folder))
        else:
            self._write(folder, self._contents())

    def nest(self) -> None:
        name = self.random.choice(("nested", "sub/module", "src/in\nside"))
        if self._is_free(os.fsencode(name)):
            folder = self.root / name
            folder.mkdir(parents=True)
            sha256 = ["--object-format=sha256"] if self.random.random() < 0.2 else []
            git(folder, "init", "-q", *sha256)
            (folder / "in it").write_bytes(self._contents())
            if self.random.random() < 0.5:
                git(folder, "add", "-A")
                git(folder, "commit", "-q", "-m", "x")
            if self.random.random() < 0.3:
                (folder / "in it").unlink()

    def ignore(self) -> None:
        if self._is_free(IGNORED) or os.path.isdir(self._at(IGNORED)):
            self._write(IGNORED + b"/file", self._contents())

    def _some(self) -> bytes | None:
        files = sorted(path for path in files_in(self.root) if path not in (b".gitignore", b".gitattributes"))
        return self.random.choice(files) if files else None

    def _new(self) -> bytes:
        name = self.random.choice(NAMES)
        return name if self.random.random() < 0.4 else self.random.choice(FOLDERS) + b"/" + name

    def _at(self, path: bytes) -> bytes:
        return os.path.join(os.fsencode(self.root), path)

    def _is_free(self, path: bytes) -> bool:
        """Return whether nothing is there, and no file or link on the way."""
        parts = path.split(b"/")
        above = [b"/".join(parts[:count]) for count in range(1, len(parts))]
        if any(os.path.islink(self._at(one)) or os.path.isfile(self._at(one)) for one in above):
            return False
        return not os.path.lexists(self._at(path))

    def _write(self, path: bytes, data: bytes) -> None:
        if self._is_free(path) or (os.path.isfile(self._at(path)) and not os.path.islink(self._at(path))):
            os.makedirs(os.path.dirname(self._at(path)), exist_ok=True)
            Path(os.fsdecode(self._at(path))).write_bytes(data)

    def _contents(self) -> bytes:
        random = self.random
        lines = [random.choice((b"one", b"two", "三".encode(), b"  four", b"")) for _ in range(random.randrange(1, 60))]
        match random.randrange(6):
            case 0:
                return b"\r\n".join(lines)
            case 1:
                return random.randbytes(random.randrange(1, 3000))
            case 2:
                return b"caf\xe9\n" + b"\n".join(lines)
            case 3:
                return b"\n".join(lines) + b"\0\n"
            case _:
                return b"\n".join(lines) + b"\n"


def check_turns(base: Path, seed: int) -> None:
    """Let somebody take turns in a random folder; raises AssertionError if anything is not as it was or should be."""
    folder = RandomFolder(base, Random(seed))
    folder.prepare()
    snapshots = FolderSnapshots(base / "home")
    for _ in range(3):
        workspace = snapshots.workspace(folder.root)
        _check_turn(folder, workspace, base)
        folder.act(folder.random.randrange(3))


def _check_turn(folder: RandomFolder, workspace: Workspace, base: Path) -> None:
    before_files, others = files_in(folder.root), others_in(folder.root)
    before = workspace.snapshot()
    assert others_in(folder.root) == others
    folder.act(folder.random.randrange(1, 9))
    after_files, others = files_in(folder.root), others_in(folder.root)
    after = workspace.snapshot()
    changes = workspace.compare(before.id, after.id)

    notes = (before.note, after.note, changes.note)
    assert notes == ("", "", ""), notes
    assert (changes.files == ()) == (before_files == after_files)
    assert not changes.patch_is_cut
    assert _patched(base / "patched", before_files, changes.patch, is_sha256=folder.kind == "sha256") == after_files
    assert workspace.differs(changes.files, "new") == ()
    workspace.apply(changes.files, back=True)
    assert files_in(folder.root) == before_files
    assert workspace.differs(changes.files, "old") == ()
    workspace.apply(changes.files, back=True)
    assert workspace.snapshot().id == before.id
    workspace.apply(changes.files, back=False)
    assert files_in(folder.root) == after_files
    assert workspace.snapshot().id == after.id
    assert others_in(folder.root) == others


def _patched(folder: Path, files: Files, patch: str, *, is_sha256: bool) -> Files:
    """Return what plain `git apply` makes of some files."""
    for path in _written(folder, files):
        assert os.path.lexists(path)
    if is_sha256:
        git(folder, "init", "-q", "--object-format=sha256")
    if patch:
        command = ["git", "-c", "core.protectNTFS=false", "apply", "--whitespace=nowarn"]
        environment = ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
        done = subprocess.run(
            command, cwd=folder, env=environment, input=patch.encode(), capture_output=True, check=False
        )
        assert done.returncode == 0, (done.stderr, patch)
    return files_in(folder)


def _written(folder: Path, files: Files) -> Iterator[bytes]:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, (mode, data) in files.items():
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if mode == "120000":
            os.symlink(data, path)
        else:
            Path(os.fsdecode(path)).write_bytes(data)
            os.chmod(path, int(mode, 8) & 0o777)
        yield path
