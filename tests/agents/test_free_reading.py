"""Commands that only read: which are, and that nothing else passes for one."""

import shlex
import time

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
        "cat 'a\x1b'",
        "cat a\x00b",
        "éls",
    ],
)
def test_what_may_do_more_is_asked(script: str) -> None:
    assert not only_reads(in_shell(script), FOLDER, FOLDER)


@pytest.mark.parametrize(
    "command",
    ["ls", "./bash -lc ls", "bash -lc ls", "/bin/bash -lic ls", "/bin/bash -lc ls more", "/bin/bash -lc 'ls", ""],
)
def test_only_a_shell_is_known_by_its_full_name(command: str) -> None:
    assert not only_reads(command, FOLDER, FOLDER)


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


def test_a_very_long_command_is_asked_and_stops_nobody() -> None:
    began = time.process_time()

    assert not only_reads(f"/bin/bash -lc 'cat {'x' * 2_000_000}'", "/p", "/p")
    assert time.process_time() - began < 1
