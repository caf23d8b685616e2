"""Nothing in a folder makes us run a program, however its repositories are set up."""

import contextlib
from pathlib import Path

import pytest
from tests.files.random_turns import git
from tests.files.stage import repository, told, turn, workspace, write

from bullpen.files.worktree import why_no_worktree

SETTINGS = (
    *("core.fsmonitor", "core.hooksPath", "core.editor", "core.pager", "core.sshCommand", "core.askPass"),
    *("filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.external", "diff.evil.command"),
    *("diff.evil.textconv", "merge.evil.driver", "alias.ls-files", "alias.diff-files", "alias.update-index"),
    *("interactive.diffFilter", "credential.helper", "gpg.program", "uploadpack.packObjectsHook"),
)
HOOKS = ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman", "reference-transaction")
ATTRIBUTES = b"* filter=evil diff=evil merge=evil text eol=crlf ident working-tree-encoding=UTF-16\n"


def make_evil(root: Path, trap: Path, mark: Path) -> None:
    """Let everything in a repository that can run a program leave a mark."""
    trap.write_text(f"#!/bin/sh\necho $0 $@ >> '{mark}'\ncat\n", encoding="utf-8")
    trap.chmod(0o755)
    for name in HOOKS:
        hook = root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_bytes(trap.read_bytes())
        hook.chmod(0o755)
    for name in SETTINGS:
        value = str(root / ".git" / "hooks") if name == "core.hooksPath" else str(trap)
        git(root, "config", name, f"!{value}" if name.startswith("alias.") else value)
    git(root, "config", "filter.evil.required", "true")
    write(root, {".gitattributes": ATTRIBUTES, ".git/info/attributes": ATTRIBUTES})


def evil(base: Path) -> tuple[Path, Path]:
    mark = base / "mark"
    root = repository(base / "root")
    inner = repository(root / "inner")
    repository(root / "module")
    git(root, "-c", "advice.addEmbeddedRepo=false", "add", "module", "inner")
    git(root, "commit", "-q", "-m", "with repositories")
    write(inner, {"edited.txt": b"dirty\n"})
    for folder in (root, inner, root / "module"):
        make_evil(folder, base / "trap", mark)
    write(
        root,
        {".gitmodules": f'[submodule "module"]\n\tpath = module\n\turl = {base}\n\tupdate = !{base}/trap\n'.encode()},
    )
    return root, mark


def test_the_traps_would_spring(tmp_path: Path) -> None:
    root, mark = evil(tmp_path)

    with contextlib.suppress(AssertionError):
        git(root, "status")

    assert mark.exists()


def test_nothing_runs(tmp_path: Path) -> None:
    root, mark = evil(tmp_path)
    place = workspace(root)
    changes = turn(
        place, {"edited.txt": b"x\r\n$Id$\n", "inner/edited.txt": b"y\n", "module/gone.txt": None, "new": b"z"}
    )
    place.apply(changes.files, back=True)
    place.apply(changes.files, back=False)
    place.merge(changes.before, changes.after, changes.after)

    assert told(changes) == {
        "edited.txt": "changed",
        "inner/edited.txt": "changed",
        "module/gone.txt": "deleted",
        "new": "added",
    }
    assert (root / "edited.txt").read_bytes() == b"x\r\n$Id$\n"
    assert not mark.exists()


def test_settings_of_the_environment_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, mark = evil(tmp_path)
    monkeypatch.setenv("GIT_DIR", str(root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", "/nowhere")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(tmp_path / "trap"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(tmp_path / "trap"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(root / ".git" / "config"))
    place = workspace(root)

    assert told(turn(place, {"edited.txt": b"x"})) == {"edited.txt": "changed"}
    assert not mark.exists()


def test_nothing_is_fetched_that_a_partial_clone_lacks(tmp_path: Path) -> None:
    root = repository(tmp_path / "root")
    trap, mark = tmp_path / "trap", tmp_path / "mark"
    trap.write_text(f"#!/bin/sh\ntouch '{mark}'\n", encoding="utf-8")
    trap.chmod(0o755)
    commit = git(root, "rev-parse", "HEAD").decode().strip()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(repository(tmp_path / "origin")),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(trap),
    }.items():
        git(root, "config", name, value)
    (root / ".git" / "objects" / commit[:2] / commit[2:]).unlink()

    assert "damaged" in why_no_worktree(root)
    assert not mark.exists()
    with contextlib.suppress(AssertionError):
        git(root, "log")
    assert mark.exists(), "the trap springs where it is not forbidden"


def test_a_git_in_the_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, mark = evil(tmp_path)
    (root / "git").write_bytes((tmp_path / "trap").read_bytes())
    (root / "git").chmod(0o755)
    monkeypatch.chdir(root)
    monkeypatch.setenv("PATH", ".", prepend=":")

    assert told(turn(workspace(root), {"edited.txt": b"x"})) == {"edited.txt": "changed"}
    assert not mark.exists()
