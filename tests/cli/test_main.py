"""The command line itself: help, versions, and errors in a sentence."""

import errno
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from bullpen import __version__
from bullpen.cli import COMMANDS, FIRST, main
from bullpen.errors import BullpenError, StoreReadOnly
from bullpen.text.safe import printable

SOURCE = Path(__file__).parents[2] / "src" / "bullpen"


def test_help_names_the_eight_commands_of_the_first_hour(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])

    commands = capsys.readouterr().out.partition("\ncommands:\n")[2].splitlines()
    assert left.value.code == 0
    named = [line.split("  ")[1] for line in commands if line.startswith("  ") and line[2] != " "]
    assert named == ["demo", "doctor", "init", "check", "chat", "run", "diff, undo", "serve"]
    assert commands[-1] == f"All {len(COMMANDS)} commands: bullpen help --all"


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "docs/first-hour.md"])
def test_help_shows_every_command_that_a_newcomer_is_told_to_type(page: str) -> None:
    text = (SOURCE.parents[1] / page).read_text(encoding="utf-8")
    told = set(re.findall(r"(?:`|\$ |; )bullpen ([a-z]+)", text))

    assert {"demo", "init", "chat"} <= told <= {*FIRST, "undo"}


@pytest.mark.parametrize("words", [["--help", "--all"], ["--all", "--help"], ["help", "--all"]])
def test_all_of_them_are_behind_more(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code: object = main(words)
    except SystemExit as left:
        code = left.code

    printed = capsys.readouterr().out
    assert code == 0
    assert all(f"{name}  " in printed and purpose[:40] in printed for name, purpose in COMMANDS.items())


def test_every_command_has_its_file_and_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    for name in COMMANDS:
        assert (SOURCE / "cli" / f"{name}.py").exists()
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert f"usage: bullpen {name}" in capsys.readouterr().out


def test_without_a_command_it_helps(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: bullpen" in capsys.readouterr().out


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bullpen {__version__}\n"


def test_an_error_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "clade"]) == 2
    assert capsys.readouterr().err.startswith("bullpen: There is no agent type 'clade'. Known types: ")


def test_a_bug_is_admitted_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bullpen.cli.doctor.run", lambda _: 1 / 0)

    assert main(["doctor"]) == 1
    assert capsys.readouterr().err.startswith("bullpen: this is a bug in bullpen, sorry: ZeroDivisionError")

    monkeypatch.setenv("BULLPEN_DEBUG", "1")
    assert main(["doctor"]) == 1
    traceback = capsys.readouterr().err
    assert traceback.startswith("Traceback (most recent call last):")
    assert traceback.endswith("ZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("debug", ["", "1"])
def test_no_bug_tells_a_secret(debug: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bullpen.cli.doctor.run", lambda _: dict[str, int]()["correct horse"])
    monkeypatch.setenv("MY_PASSWORD", "correct horse")
    monkeypatch.setenv("BULLPEN_DEBUG", debug)

    assert main(["doctor"]) == 1
    assert "KeyError: '[secret]'" in capsys.readouterr().err


def test_ctrl_c_is_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("bullpen.cli.doctor.run", interrupted)

    assert main(["doctor"]) == 130


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"], ["doctor", "--json"], ["completion", "bash"]])
def test_a_reader_that_leaves_early_is_no_error(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nobody:
        command, buffered = [sys.executable, "-m", "bullpen", *words], {**os.environ, "PYTHONUNBUFFERED": ""}
        done = subprocess.run(command, env=buffered, stdout=nobody, stderr=subprocess.PIPE, check=False)

    assert (done.stderr, done.returncode) == (b"", 141)


def test_a_full_disk_is_an_error_of_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "bullpen", "--version"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert (done.stderr, done.returncode) == ("bullpen: [Errno 28] No space left on device\n", 1)


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from bullpen.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert not {"asyncio", "msgspec", "rich", "typing", "logging"} & set(done.stderr.split())


def test_an_editor_shakes_hands_before_anything_heavy_is_loaded() -> None:
    # It leaves without a word, and the rest is never loaded.
    program = "import sys; from bullpen.cli import main\nmain(['acp', '--trust'])\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], input="", capture_output=True, text=True, check=True)

    assert "bullpen.cli.editor.handshake" in done.stderr
    assert not {"asyncio", "msgspec", "pathlib", "typing", "logging"} & set(done.stderr.split())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain 你好 😀\n\ttab", "plain 你好 😀\n\ttab"),
        ("\x1b[31mred\x1b]0;title\x07", "\ufffd[31mred\ufffd]0;title\ufffd"),
        ("a\u202eb\u2066c", "a\ufffdb\ufffdc"),
        ("\x9b31m\x85\x08\r", "\ufffd31m\ufffd\ufffd\ufffd"),
    ],
)
def test_what_reaches_the_terminal_is_text(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize("words", [["sessions"], ["sessions", "show", "last"], ["sessions", "search", "x"]])
def test_looking_at_conversations_loads_only_what_it_needs(words: list[str], database: Path) -> None:
    program = f"import sys; from bullpen.cli import main\nmain({words!r})\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    loaded = set(done.stderr.split())
    if "show" in words:
        # What a turn without a reply did is read from what its CLI wrote.
        loaded.remove("bullpen.agents.registry")
    assert not {"textual", "starlette", "bullpen.conversation.conversation", "bullpen.agents.registry"} & loaded


def test_the_plain_chat_loads_only_what_it_needs_before_the_first_key() -> None:
    program = (
        "import sys; from bullpen.cli import command_parser\ncommand_parser('chat')\n"
        "import bullpen.cli.plain.terminal_chat\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    unneeded = {
        "rich.console",
        "importlib.metadata",
        "ctypes",
        "tempfile",
        "secrets",
        "html",
        "difflib",
        "logging.handlers",
    }
    assert not (unneeded | {"textual", "bullpen.exchange.files"}) & set(done.stdout.split())


@pytest.mark.parametrize(
    ("error", "most"),
    [
        (OSError(errno.EMFILE, "Too many open files", "/usr/lib/python3/thread.py"), 1024),
        (StoreReadOnly("a.db", "or its folder is not writable (unable to open database file)"), 12),
        (ExceptionGroup("several", [ValueError("x"), OSError(errno.ENFILE, "Too many open files")]), 12),
    ],
)
def test_who_may_not_open_more_files_is_told_what_to_do(
    error: Exception, most: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        raise BullpenError("It cannot be opened.") from error

    monkeypatch.setattr("bullpen.cli.completion.run", run)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))

    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err == (
        f"bullpen: This process may have {most:,} files open at once, and needs more. Raise that first: "
        "ulimit -n 1024\n"
    )


def test_another_error_is_not_about_open_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(_: object) -> int:
        raise StoreReadOnly("a.db", "or its folder is not writable (unable to open database file)")

    monkeypatch.setattr("bullpen.cli.completion.run", run)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))

    assert main(["completion", "bash"]) == 1
    assert capsys.readouterr().err.startswith("bullpen: a.db or its folder is not writable")
