"""Which team files may run their commands, and what they would run.

A team file names programs, and it may come with a stranger's repository. So a person is shown what it runs, once and
again after every change. Trust covers the file's text only, not what the programs and files it names do.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bullpen import config
from bullpen.agents.registry import is_restricted, spec_for
from bullpen.errors import BullpenError, InvalidTeam, TeamProblem
from bullpen.permissions import Permission
from bullpen.team.team import Check, Member, Team

FOLDER_MODE = 0o700
FILE_MODE = 0o600


class Runs(Struct, frozen=True, kw_only=True):
    """What one member of a team would run."""

    member: str
    """Its name; of a check, "check: " and its name, which no member can have."""
    command: tuple[str, ...]
    """The program and its arguments, except those that depend on the turn."""
    folder: Path
    """Absolute, with links resolved."""
    permissions: Permission
    allow: tuple[str, ...] = ()
    """Beginnings of the commands that its CLI lets it run without being asked."""
    restricted: bool
    """Whether the program is run with options that enforce its permissions; only known CLIs have them."""
    own_arguments: tuple[str, ...] = ()
    """The arguments that come from the team file; they may change what the CLI is allowed to do."""
    environment: tuple[str, ...] = ()
    """Environment variables passed on beyond the usual ones; a trailing * matches any ending."""
    instruction_file: Path | None = None
    """None: the CLI's usual one, or none at all."""
    when: str = ""
    """When it runs, if not when somebody asks it."""


def what_it_runs(team: Team, root: Path) -> tuple[Runs, ...]:
    """Return what every agent of a team in this folder would run, and every check."""
    return (*(_runs(member, root) for member in team.agents), *(_check(check, root) for check in team.checks))


def _check(check: Check, root: Path) -> Runs:
    returns = f", and returns to its agent up to {check.most_returns} times if it is red"
    return Runs(
        member=f"check: {check.name}",
        command=check.command,
        folder=Path(os.path.realpath(root / check.cwd)),
        permissions="full",
        restricted=False,
        when=f"after every turn that changes files there{returns if check.on_red == 'return' else ''}",
    )


def _runs(member: Member, root: Path) -> Runs:
    spec = spec_for(member.agent, member.command)
    try:
        arguments = spec.arguments(member.permissions, member.model, member.allow)
    except ValueError as error:
        raise InvalidTeam([TeamProblem(str(error), key=member.name)]) from error
    return Runs(
        member=member.name,
        command=(spec.program, *arguments, *member.arguments, *spec.last_arguments),
        folder=Path(os.path.realpath(root / member.cwd)),
        permissions=member.permissions,
        allow=member.allow if spec.allow_arguments(member.permissions, member.allow) else (),
        restricted=is_restricted(member.agent),
        own_arguments=member.arguments,
        environment=(*spec.environment, *member.env),
        instruction_file=root / member.instruction_file if member.instruction_file else None,
    )


class Trust:
    """The team files that a person has agreed to run, each with the hash of its text."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or config.trust_file()

    def knows(self, path: Path, text: str) -> bool:
        """Return whether this exact text is trusted at this path. If the record cannot be read, nothing is."""
        return self._hashes().get(str(path.absolute())) == _hash_of(text)

    def remember(self, path: Path, text: str) -> None:
        """Trust this text at this path from now on."""
        try:
            _make_folder(self._file.parent)
            with self._locked():
                self._replace(self._hashes() | {str(path.absolute()): _hash_of(text)})
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise BullpenError(f"{self._file} {reason}. Fix that, or set BULLPEN_HOME to another folder.") from error

    def _hashes(self) -> dict[str, str]:
        try:
            hashes = json.loads(self._file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        is_valid = isinstance(hashes, dict) and all(isinstance(value, str) for value in hashes.values())
        return hashes if is_valid else {}

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from writing until we have, or one would lose the other's change."""
        handle = os.open(self._file.with_name(f"{self._file.name}.lock"), os.O_CREAT | os.O_RDWR, FILE_MODE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _replace(self, hashes: dict[str, str]) -> None:
        draft = self._file.with_name(f".{self._file.name}.{os.urandom(8).hex()}.new")
        try:
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
            with os.fdopen(handle, "w", encoding="ascii") as file:
                os.fchmod(handle, FILE_MODE)
                json.dump(hashes, file, indent=1)
                file.flush()
                os.fsync(handle)
            draft.replace(self._file)
        finally:
            draft.unlink(missing_ok=True)


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _make_folder(folder: Path) -> None:
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Not in mkdir, where the umask would apply.
        folder.chmod(FOLDER_MODE)
