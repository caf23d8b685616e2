"""Commands that only read: which are, and that nothing else passes for one."""

import os
import shlex
from pathlib import Path

import pytest

from bullpen.agents.free_reading import is_inside, only_reads

FOLDER = "/home/dev/project"


def in_shell(script: str, shell: str = "/bin/bash", option: str = "-lc") -> str:
    return shlex.join([shell, option, script])


@pytest.mark.parametrize(
    "script",
    [
        "ls",
        "ls -la src",
        "pwd",
        "cat notes.txt",
        f"cat {FOLDER}/notes.txt",
        "sed -n '1,200p' src/a.py",
        "sed -n 1,5p a.py",
        "sed -n '5,$p' a.py",
        "nl -ba a.py | sed -n '1,80p'",
        "rg -n 'def (main|run)' src",
        'rg "a b" .',
        "rg --files | head -50",
        "grep -rn 'x*y' . 2>/dev/null",
        "find . -name '*.py' -type f",
        "head -3 a && tail -n 3 b; wc -l c",
        "cat a || cat b",
        "grep -rn --include='*.py' x .",
        f"grep --include={'x' * 245} x .",
        "ls -lahR --color=never --hyperlink=auto src",
        "ls -d src --sort=time",
        "tail -n 20 a",
    ],
)
def test_what_only_reads(script: str) -> None:
    assert only_reads(in_shell(script), FOLDER, FOLDER)


@pytest.mark.parametrize(
    "script",
    [
        "",
        "touch a",
        "git status",
        "python3 -c 'print(1)'",
        "cat a > b",
        "cat a >b 2>&1",
        "cat a 2>b",
        "cat a 2>/dev/nullb",
        "cat a 2>&1b",
        "cat a2>&1",
        "cat a & touch b",
        "cat a &",
        "cat a\ntouch b",
        "cat a; touch b",
        "cat a |",
        "| cat a",
        "cat `touch b`",
        "cat $(touch b)",
        'cat "$(touch b)"',
        'cat "`touch b`"',
        "cat <(touch b)",
        "cat $HOME/.ssh/id",
        "cat ~/.ssh/id",
        "cat ../other",
        "cat src/../../other",
        "cat /etc/passwd",
        "cat '/etc/passwd'",
        'cat ""/etc/passwd',
        "cat /home/dev/project-2/a",
        "grep -f/etc/passwd x",
        "grep --file=../x y",
        "grep --include=a..b x",
        f"grep --include={'x' * 246} x .",
        "cat *",
        "cat {a,../b}",
        "LD_PRELOAD=./x cat a",
        "./cat a",
        "'./cat' a",
        "/bin/cat a",
        "cat a # b",
        "cat \\/etc/passwd",
        "sed -i 1,5p a",
        "sed -n -i 1,5p a",
        "sed -n 1,5p a -i",
        "sed -n '1e touch b' a",
        "sed -n '1w b' a",
        "sed -n",
        "find . -delete",
        "find . -exec touch b +",
        "find . -execdir touch b +",
        "find . -ok touch b +",
        "find . -fprintf b x",
        "find . -fls b",
        "rg --pre ./x y",
        "rg --pre=./x y",
        "rg '--pre' x y",
        "rg --pr'e' x y",
        "rg -z x",
        "rg -iz x",
        "rg --search-zip x",
        "rg --hostname-bin x y",
        "rg -L x",
        "rg -nL x",
        "rg --follow x",
        "grep -R x .",
        "grep -nR x .",
        "grep --dereference-recursive x .",
        "grep --directories=recurse x .",
        "find -L . -name x",
        "find -H . -name x",
        "find . -follow",
        "find -EL . -name x",
        "find -XHs . -name x",
        "find -PL .",
        "find . -xtype f",
        "ls -L",
        "ls -LR",
        "ls -lRL src",
        "ls -H",
        "ls --dereference",
        "ls --deref -R",
        "ls --dereference-command-line-symlink-to-dir",
        "ls src -L",
        "ls '-L'",
        "ls -'L'",
        "grep -rS x .",
        "grep -rO x .",
        "grep --deref x .",
        "grep --devices=read x .",
        "tail -f a",
        "tail -F a",
        "tail -n3 -f a",
        "tail --follow=name a",
        "tail --retry a",
        "tree -l",
        "du -L",
        "stat -L a",
        "file -L a",
        "diff -r a b",
        "sort -o b a",
        "uniq a b",
        "readlink a",
        "realpath a",
        "less a",
        "tac a",
        "xxd a b",
        "jq . a",
        "env cat a",
        "command cat a",
        "cd .. && cat a",
        "find -files0-from names",
        "wc --files0-from=names",
        "wc --files0=names",
        "cat 'a\x1b'",
        "cat a\x00b",
        "éls",
    ],
)
def test_what_may_do_more_is_asked(script: str) -> None:
    assert not only_reads(in_shell(script), FOLDER, FOLDER)


@pytest.mark.parametrize(
    "command",
    ["./bash -lc ls", "bash -lc ls", "/bin/bash -lic ls", "/bin/bash -lc ls more", "/bin/bash -lc 'ls", ""],
)
def test_only_a_shell_is_known_by_its_full_name(command: str) -> None:
    assert not only_reads(command, FOLDER, FOLDER)


def test_a_command_is_what_a_shell_is_given_or_it_is_a_shell_that_is_given_one() -> None:
    assert only_reads("ls -la | head -3", FOLDER, FOLDER)
    assert not only_reads("ls; touch a", FOLDER, FOLDER)
    assert not only_reads("touch a", FOLDER, FOLDER)
    assert not only_reads("cat a > b", FOLDER, FOLDER)


def test_it_is_real_paths_that_count(tmp_path: Path) -> None:
    folder, outside = tmp_path / "project", tmp_path / "outside"
    (folder / "src").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text("x")
    (folder / "out").symlink_to(outside)
    (folder / "x").symlink_to(outside / "secret")
    (folder / "in").symlink_to(folder / "src")
    (tmp_path / "also").symlink_to(folder)

    def reads(script: str, cwd: Path = folder) -> bool:
        return only_reads(script, str(folder), str(cwd))

    assert reads("cat in/a")
    assert reads("cat a", folder / "in")
    assert reads("ls", tmp_path / "also")
    assert only_reads("ls", str(tmp_path / "also"), str(folder))
    assert not reads("cat x")
    assert not reads("cat out/secret")
    assert not reads("ls out/")
    assert not reads("ls", folder / "out")
    assert not reads("cat in/../../outside/secret")
    assert not reads("grep -fx a")
    assert not reads("grep -nfx a")
    assert not reads("grep --file=x a")
    assert not reads("cat src/a x")


def test_it_must_run_in_the_folder() -> None:
    assert only_reads(in_shell("ls"), FOLDER, f"{FOLDER}/src")
    assert only_reads(in_shell("cat ../a"), FOLDER, f"{FOLDER}/src")
    assert not only_reads(in_shell("ls"), FOLDER, "/home/dev")
    assert not only_reads(in_shell("ls"), FOLDER, f"{FOLDER}/..")
    assert not only_reads(in_shell("ls"), FOLDER, "")


def test_what_is_inside() -> None:
    assert is_inside("/a/b", "/a/b")
    assert is_inside("/a/b/../b/c", "/a/b")
    assert is_inside("/c", "/")
    assert not is_inside("/a/bc", "/a/b")
    assert not is_inside("/a/b/../c", "/a/b")
    assert not is_inside("b", "/a/b")


def test_a_very_long_command_is_asked() -> None:
    assert not only_reads(in_shell(f"cat {'x' * 20_000}"), FOLDER, FOLDER)


def test_what_is_different_for_each_process_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, sub = tmp_path / "project", tmp_path / "project" / "sub"
    sub.mkdir(parents=True)
    (folder / "link").symlink_to("/proc/self/cwd")
    # As an agent's would be that works in a folder below; its own leads elsewhere.
    monkeypatch.chdir(sub)

    def reads(script: str) -> bool:
        return only_reads(script, str(folder), str(folder))

    assert not reads("cat /proc/self/cwd/../x")
    assert not reads("ls /proc/thread-self/cwd")
    assert not reads("ls /dev/fd/../cwd/..")
    assert not reads("cat link/../x")
    assert not only_reads("ls", str(folder), "/proc/self/cwd")
    assert reads("cat proc/self sub/../x")


def test_a_program_of_the_folder_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, linked = tmp_path / "project", tmp_path / "bin"
    for place in (folder / "bin", linked):
        place.mkdir(parents=True)
    (folder / "bin" / "ls").write_text("#!/bin/sh\ntouch x\n")
    (folder / "bin" / "ls").chmod(0o755)
    (folder / "bin" / "head").symlink_to("/bin/sh")
    (linked / "cat").symlink_to(folder / "bin" / "ls")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{linked}:{os.environ['PATH']}")

    free = [one for one in ("ls", "head a", "cat a", "wc a", "wc a | ls") if only_reads(one, str(folder), str(folder))]
    assert free == ["wc a"]


def test_a_word_that_zsh_takes_for_a_program_is_asked() -> None:
    assert not only_reads("cat =python", FOLDER, FOLDER)
    assert not only_reads("cat '=python'", FOLDER, FOLDER)
    assert only_reads("cat a=b", FOLDER, FOLDER)
