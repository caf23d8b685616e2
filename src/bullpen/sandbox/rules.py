"""SandboxRules: what a team file says of one member's sandbox; OwnFolder: where a CLI keeps its own files, as data."""

from msgspec import Struct

from bullpen.permissions import Permission


class SandboxRules(Struct, frozen=True, kw_only=True):
    """What a team file says of one member's sandbox."""

    is_on: bool = False
    """Only if the file says so."""
    writable: tuple[str, ...] = ()
    """Folders and files that it may write beside its own folder; they may begin with ~."""
    network: bool = True

    def hold(self, permission: Permission) -> bool:
        """Return whether a program with these permissions is to be held; one that may do everything never is."""
        return self.is_on and permission != "full"


NO_SANDBOX = SandboxRules()


class CannotHold(Exception):
    """A program was not started, since it would not have been held; the text says why."""

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint


class OwnFolder(Struct, frozen=True, kw_only=True):
    """A folder in which a CLI keeps its sessions and its login, and which it may write."""

    path: str
    """In the user's home folder."""
    variable: str = ""
    """The environment variable that names another place for it."""
    within: str = ""
    """Where it is in that other place."""
    settings: tuple[str, ...] = ()
    """What in it makes programs run, directly below: it may be read, and nothing else."""
    programs: tuple[str, ...] = ()
    """Programs that it keeps there and brings itself, directly below: where they are, they may only be read."""


class OwnFiles(Struct, frozen=True, kw_only=True):
    """What of a person's home folder is a CLI's own."""

    folders: tuple[OwnFolder, ...] = ()
    copies: tuple[str, ...] = ()
    """Files in the home folder that it changes in each run and that also hold settings: it gets a copy."""
    reads: tuple[str, ...] = ()
    """Secrets in the home folder that it may need to sign in."""
    fails: str = ""
    """What of it does not work in a sandbox yet, in words for `check`."""


NOTHING_OWN = OwnFiles()
