"""Running git on a repository of ours: with nobody's settings, hooks, filters or programs but its own."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from bullpen.config import program_path
from bullpen.files.time_limit import limited

MOST_SECONDS = 600.0
LONGEST_REASON = 300
CHUNK_BYTES = 1024 * 1024
CANNOT_OPEN = re.compile(rb"^warning: could not open directory '(.*?)/?': ", re.MULTILINE | re.DOTALL)
# The repository is ours and says the same; here it cannot be forgotten.
ALWAYS = (
    *("--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false", "-c", "core.attributesFile=/dev/null", "-c", "gc.auto=0"),
)
CLEAN = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "LC_ALL": "C",
}


class GitFailed(Exception):
    """What git could not do, in its own words."""


def find_git() -> str | None:
    """Return the path of git; never one in a folder that depends on where we are."""
    return shutil.which("git", path=program_path())


def persons_setting(program: str, git_dir: Path, name: str) -> str:
    """Return a path that a person has set for all their repositories; reading it runs nothing."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = [program, "config", "--type=path", "--get", name]
    try:
        done = subprocess.run(
            command,
            cwd=git_dir,
            env=environment | {"GIT_DIR": str(git_dir)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=MOST_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(done.stdout).rstrip("\n")


class Git:
    """git, for one repository, one folder, and one index: the repository's own, if none is named."""

    def __init__(
        self, program: str, git_dir: Path, *, root: Path, index: Path | None = None, borrowed: Sequence[Path] = ()
    ) -> None:
        self.cannot_open: set[bytes] = set()
        """The folders that could not be looked into."""
        self.inherited: tuple[int, ...] = ()
        """Open files that git gets, too."""
        self._program = program
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | CLEAN
        self._environment |= {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(root)}
        if index is not None:
            self._environment["GIT_INDEX_FILE"] = str(index)
        if borrowed:
            self._environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(map(_quoted, borrowed))

    def run(self, *arguments: str, given: bytes | IO[bytes] = b"") -> bytes:
        """Return what git prints; raises GitFailed."""
        with self.started(*arguments, given=given) as output:
            return output.read()

    @contextmanager
    def started(self, *arguments: str, given: bytes | IO[bytes] = b"") -> Iterator[IO[bytes]]:
        """Run git while its output is read; who stops reading before its end ends it. Raises GitFailed."""
        # Not needed before the first turn, and slow to import.
        from tempfile import TemporaryFile

        with TemporaryFile() as words, TemporaryFile() as stdin:
            if isinstance(given, bytes):
                stdin.write(given)
                stdin.seek(0)
            with self._process(arguments, stdin if isinstance(given, bytes) else given, words) as process:
                try:
                    with limited(process, MOST_SECONDS):
                        output = cast("IO[bytes]", process.stdout)
                        yield output
                        is_read = not output.read(1)
                        if not is_read:
                            process.kill()
                        code = process.wait()
                finally:
                    process.kill()
            words.seek(0)
            # Another thread may have noted some meanwhile, so they are never set back.
            self.cannot_open.update(CANNOT_OPEN.findall(words.read(CHUNK_BYTES)))
            if is_read and code:
                raise GitFailed(f"git {_command(arguments)}: {_reason(words, code)}")

    def _process(self, arguments: Sequence[str], stdin: IO[bytes], words: IO[bytes]) -> "subprocess.Popen[bytes]":
        command = [self._program, *ALWAYS, *arguments]
        try:
            return subprocess.Popen(
                command,
                # Not in the folder, in which there may be anything, nor below it, where git would not see the rest.
                cwd="/",
                env=self._environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=words,
                start_new_session=True,
                pass_fds=self.inherited,
            )
        except OSError as error:
            raise GitFailed(f"git could not be started: {error.strerror}") from error


def _command(arguments: Sequence[str]) -> str:
    return arguments[2] if arguments[0] == "-c" else arguments[0]


def _reason(words: IO[bytes], code: int) -> str:
    words.seek(0)
    lines = words.read(CHUNK_BYTES).decode(errors="replace").strip().splitlines()
    fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))] or lines
    return fatal[-1].partition(": ")[2][:LONGEST_REASON] if fatal else f"exit code {code}"


def _quoted(path: Path) -> str:
    """Return a path as a list of object folders has it."""
    text = str(path)
    if not any(character in text for character in ':"\n\\'):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
