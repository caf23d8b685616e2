"""A profile as the arguments of bubblewrap, which makes it true on Linux: https://github.com/containers/bubblewrap.

Namespaces of processes and of System V IPC, no capabilities, no new privileges by setuid programs, and no terminal.
"""

from collections.abc import Iterator

from bullpen.sandbox.profile import Place, Profile

PROGRAM = "bwrap"
# In its own session, so that signals reach the program and not bubblewrap, which would end it without any grace.
_ALONE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
# Who is root in it may be root in a sandbox within it, such as Codex' own. Root could set the bit of setuid anyway.
_AS_ROOT = ("--cap-add", "CAP_SETFCAP")
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
# Who is root out there may write settings of the kernel, such as the program that it runs for each crash.
KERNEL = ("/proc/sys", "/proc/sysrq-trigger")


def arguments(profile: Profile, program: str, *, is_root: bool) -> tuple[str, ...]:
    """Return what comes before the command that is to be held."""
    return (
        *(program, *_ALONE, *(_AS_ROOT if is_root else ())),
        *(() if profile.network else ("--unshare-net",)),
        *_SYSTEM,
        *(word for path in KERNEL for word in ("--ro-bind-try", path, path)),
        *(word for place in profile.places for word in _words(place)),
        *("--chdir", profile.folder, "--"),
    )


def probe(program: str, *, is_root: bool) -> tuple[str, ...]:
    """Return a command that succeeds where bubblewrap can do what is asked of it."""
    places = (Place(path="/run", access="nothing"),)
    return (*arguments(Profile(folder="/", places=places), program, is_root=is_root), "true")


def _words(place: Place) -> Iterator[str]:
    match place.access:
        case "write":
            yield from ("--bind", place.path, place.path)
        case "read":
            yield from ("--ro-bind", place.source or place.path, place.path)
        case "instead":
            yield from ("--bind", place.source, place.path)
        case "nothing" if place.is_folder:
            yield from ("--perms", "0555", "--tmpfs", place.path)
        case "nothing":
            yield from ("--ro-bind", "/dev/null", place.path)
