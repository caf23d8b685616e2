"""Random turns in random folders: everything that an agent or a person does to files, always the same for a seed."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random

from bullpen.errors import FilesDiffer
from bullpen.file_changes import FileChange
from bullpen.files.workspace import FolderSnapshots, Workspace

NAMES = tuple(
    map(
        os.fsdecode,
        (
            *(b"plain.txt", b"a b.md", "中文.txt".encode(), "表情😀.py".encode(), b"new\nline", b"tab\tbed", b'quo"te'),
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
            ),
            *(b"a", b"b", b"c", b"index", b"HEAD", b"{}", b"%s", b"'", b"x.rot", b"x.id", b"back\\slash"),
        ),
    )
)
FOLDERS = ("src", "目录", "deep/er/est", "a", "sp ace", os.fsdecode(b"\xfe"), "src/new\nline", "nested", "sub")
KINDS = ("repository", "unborn", "plain", "sha256", "worktree", "submodule", "converting")
IGNORED = "ignored"
Files = dict[str, tuple[str, bytes]]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
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
    for file in _walk(root):
        name = str(file.relative_to(root))
        if not {".git", IGNORED}.isdisjoint(file.relative_to(root).parts):
            continue
        if file.is_symlink():
            found[name] = ("120000", os.fsencode(file.readlink()))
        else:
            found[name] = ("100755" if file.stat().st_mode & 0o100 else "100644", file.read_bytes())
    return found


def others_in(root: Path) -> dict[str, bytes]:
    """Return hashes of all that we may never touch: every git folder in it, and what is ignored."""
    return {
        str(file): sha256(file.read_bytes()).digest()
        for file in _walk(root)
        if not {".git", IGNORED}.isdisjoint(file.relative_to(root).parts)
    }


def _walk(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        yield from (Path(folder) / name for name in (*names, *links))


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
        self._write(".gitignore", b"ignored/\n*.o\n")
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
        self._write(".gitattributes", attributes + (b"*.rot filter=rot\n" if self.random.random() < 0.5 else b""))
        for name in ("x.crlf", "x.id", "x.rot", "mixed"):
            self._write(name, b"line $Id$\r\nand\n" * 3)
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "x")
        for name in ("x.crlf", "x.id", "x.rot"):
            (self.root / name).unlink()
        git(self.root, "checkout", "-q", "--", ".")

    # What can be done.

    def edit(self) -> None:
        file = self._some()
        if file is not None and not file.is_symlink():
            data = file.read_bytes()
            at = self.random.randrange(len(data) + 1)
            file.write_bytes(data[:at] + self._contents()[:200] + data[at + 3 :])

    def create(self) -> None:
        self._write(self._new(), self._contents())

    def empty(self) -> None:
        self._write(self._new(), b"")

    def delete(self) -> None:
        file = self._some()
        if file is not None:
            file.unlink()

    def rename(self) -> None:
        file, new = self._some(), self.root / self._new()
        if file is not None and self._is_free(new):
            new.parent.mkdir(parents=True, exist_ok=True)
            file.rename(new)

    def make_executable(self) -> None:
        file = self._some()
        if file is not None and not file.is_symlink():
            file.chmod(0o755 if self.random.random() < 0.6 else 0o644)

    def touch(self) -> None:
        file = self._some()
        if file is not None and not file.is_symlink():
            os.utime(file, ns=(10**18, self.random.choice((10**18, 2 * 10**18))))

    def link(self) -> None:
        file = self.root / self._new()
        target = self.random.choice(("/etc/passwd", "../..", "nowhere", "a", "src", os.fsdecode(b"\xff"), "目录"))
        if self._is_free(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.symlink_to(target)

    def replace_by_folder(self) -> None:
        file = self._some()
        if file is not None:
            file.unlink()
            self._write(str(file.relative_to(self.root) / "inside"), self._contents())

    def replace_folder(self) -> None:
        file = self._some()
        if file is None or file.parent == self.root or any(".git" in one.parts for one in _walk(file.parent)):
            return
        shutil.rmtree(file.parent)
        if self.random.random() < 0.5:
            file.parent.symlink_to("/tmp")
        else:
            file.parent.write_bytes(self._contents())

    def nest(self) -> None:
        folder = self.root / self.random.choice(("nested", "sub/module", "src/in\nside"))
        if not self._is_free(folder):
            return
        folder.mkdir(parents=True)
        git(folder, "init", "-q", *(["--object-format=sha256"] if self.random.random() < 0.2 else []))
        (folder / "in it").write_bytes(self._contents())
        if self.random.random() < 0.5:
            git(folder, "add", "-A")
            git(folder, "commit", "-q", "-m", "x")
        if self.random.random() < 0.3:
            (folder / "in it").unlink()

    def ignore(self) -> None:
        self._write(f"{IGNORED}/file", self._contents())

    def _some(self) -> Path | None:
        files = sorted(path for path in files_in(self.root) if path not in (".gitignore", ".gitattributes"))
        return self.root / self.random.choice(files) if files else None

    def _new(self) -> str:
        name = self.random.choice(NAMES)
        return name if self.random.random() < 0.4 else f"{self.random.choice(FOLDERS)}/{name}"

    def _is_free(self, file: Path) -> bool:
        """Return whether nothing is there, and no file or link on the way."""
        above = [folder for folder in file.parents if folder.is_relative_to(self.root)]
        return not any(one.is_symlink() or one.is_file() for one in above) and not os.path.lexists(file)

    def _write(self, name: str, data: bytes) -> None:
        file = self.root / name
        if self._is_free(file) or (file.is_file() and not file.is_symlink() and self._is_free(file.with_name("~"))):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

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


def check_turns(base: Path, seed: int, *, turns: int = 2) -> None:
    """Let somebody take turns in a random folder; raises AssertionError if anything is not as it was or should be."""
    folder = RandomFolder(base, Random(seed))
    folder.prepare()
    snapshots = FolderSnapshots(base / "home")
    for _ in range(turns):
        _check_turn(folder, snapshots.workspace(folder.root), base)
        folder.act(folder.random.randrange(3))


def _check_turn(folder: RandomFolder, workspace: Workspace, base: Path) -> None:
    before_files, others = files_in(folder.root), others_in(folder.base)
    before = workspace.snapshot()
    assert others_in(folder.base) == others
    folder.act(folder.random.randrange(1, 9))
    after_files, others = files_in(folder.root), others_in(folder.base)
    after = workspace.snapshot()
    changes = workspace.compare(before.id, after.id)

    notes = (before.note, after.note, changes.note)
    assert notes == ("", "", ""), notes
    assert (changes.files == ()) == (before_files == after_files)
    assert not changes.patch_is_cut
    assert _patched(base / "patched", before_files, changes.patch, is_sha256=folder.kind == "sha256") == after_files
    assert workspace.differs(changes.files, "new") == ()
    in_the_way = _refused(workspace, changes.files)
    if in_the_way:
        # A repository was made in the place of a file. It is not removed, and nothing else is touched.
        assert all(list((folder.root / path).rglob(".git")) for path in in_the_way)
        assert files_in(folder.root) == after_files
        return
    assert files_in(folder.root) == before_files
    assert workspace.differs(changes.files, "old") == ()
    workspace.apply(changes.files, back=True)
    assert workspace.snapshot().id == before.id
    workspace.apply(changes.files, back=False)
    assert files_in(folder.root) == after_files
    assert workspace.snapshot().id == after.id
    assert others_in(folder.base) == others


def _refused(workspace: Workspace, files: Sequence[FileChange]) -> tuple[str, ...]:
    """Take changes back, or return because of which files that was refused."""
    try:
        workspace.apply(files, back=True)
    except FilesDiffer as refused:
        return refused.paths
    return ()


def _patched(folder: Path, files: Files, patch: str, *, is_sha256: bool) -> Files:
    """Return what plain `git apply` makes of some files."""
    write_files(folder, files)
    if is_sha256:
        git(folder, "init", "-q", "--object-format=sha256")
    if patch:
        command = ["git", "-c", "core.protectNTFS=false", "apply", "--whitespace=nowarn"]
        environment = ENVIRONMENT | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
        done = subprocess.run(
            command, cwd=folder, env=environment, input=patch.encode(), capture_output=True, check=False
        )
        assert done.returncode == 0, (done.stderr, patch)
    found = files_in(folder)
    shutil.rmtree(folder)
    return found


def write_files(folder: Path, files: Files) -> None:
    """Make a folder with some files in it."""
    folder.mkdir()
    for name, (mode, data) in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            file.symlink_to(os.fsdecode(data))
        else:
            file.write_bytes(data)
            file.chmod(int(mode, 8) & 0o777)
