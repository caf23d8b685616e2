"""Looking up what a profile is made of: what is there of a folder, its repository, a home folder and the system."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import bullpen
from bullpen.permissions import Permission
from bullpen.program_files import ProgramFiles, is_noticed, is_program_path, is_team_file
from bullpen.sandbox.profile import Layout
from bullpen.sandbox.rules import OwnFiles, OwnFolder, SandboxRules

SYSTEM_SOCKETS = ("/run", "/var/run")
"""Where docker, the session bus, ssh-agent and others listen."""
NAMES_OF_HOSTS = "/etc/resolv.conf"
SYSTEM_LINKS = ("/run/current-system", "/run/opengl-driver", "/run/wrappers")
"""Of NixOS: its programs."""
MEMORY = "/dev/shm"  # noqa: S108 - to hide it
"""Also where temporary files are. It is empty in a /dev of its own, and Codex' own sandbox fails if more is there."""
SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".config/gcloud", ".config/gh", ".docker", ".kube", ".netrc"),
    *(".git-credentials", ".config/git/credentials", ".pypirc", ".password-store", ".local/share/keyrings"),
)
"""What of a home folder nobody needs who only reads and edits, and who sends it away has a key."""
OF_AGENTS = (".agents", ".claude", ".codex", ".copilot", ".gemini", ".opencode", ".pi", ".qwen", ".vibe")
"""Folders with settings of CLIs, which decide what these may do."""
OF_OTHERS = (".cursor", ".devcontainer", ".husky", ".idea", ".vscode", ".zed")
"""Folders with settings of editors and hooks, which run as soon as a person opens the folder or commits."""
SETTINGS_OF_AGENTS = frozenset({*OF_AGENTS, ".mcp.json", "opencode.json", "opencode.jsonc", "team.toml"})
_OF_GIT = ("config", "hooks", "info", "modules")
"""What in a repository makes programs run."""
_NEW_IN_GIT = ("commondir", "config.worktree")
"""What would, and usually is not there."""


class Surroundings(Struct, frozen=True, kw_only=True):
    """What a program is started with."""

    folder: Path
    command: Sequence[str]
    environment: Mapping[str, str]
    own: OwnFiles
    others: Sequence[OwnFiles] = ()
    """The files of other CLIs, which are nothing to it."""
    ours: Sequence[Path] = ()
    """Folders of bullpen."""
    sockets: Sequence[str] = ()
    """What it is to reach nevertheless."""
    private: Path = Path()
    """An empty folder of its own."""


def layout_of(around: Surroundings, rules: SandboxRules, permission: Permission) -> Layout:
    """Return what is there. Folders that it may write and that are missing are made."""
    folder = os.path.realpath(around.folder)
    home = os.path.realpath(around.environment.get("HOME") or Path.home())
    writes = permission != "read-only"
    git = repository_of(folder) if writes else Repository()
    own = [_Own(one, place) for one in around.own.folders if (place := place_of(one, around.environment, home))]
    added = [path for path in map(_made, _expanded(rules.writable, folder, home)) if path]
    temporary = _temporary(around.environment)
    held = held_in(folder, permission, added) if writes else ()
    settings = [path for one in own for path in one.settings]
    programs = [path for one in own for path in one.programs]
    missing_secrets = {os.path.realpath(f"{home}/{name}") for name in around.own.reads}
    hidden = _hidden(around, home, own, missing_secrets if permission != "ask" else None)
    needed = _needed(around, folder, home, git)
    shown = tuple(_shown(needed, temporary))
    return Layout(
        folder=folder,
        home=home,
        temporary=tuple(path for path in temporary if path != MEMORY or any(MEMORY in one for one, _ in shown)),
        private=str(around.private),
        shown=shown,
        repository=git.written,
        written=(*(one.path for one in own), *added),
        read_only=tuple(
            dict.fromkeys(
                path
                for path in (*git.read_only, *held, *programs, *(one for one in settings if _is_plain(one)))
                if path not in added
            )
        ),
        hidden_folders=(*_socket_folders(), *(path for path in hidden if os.path.isdir(path))),  # noqa: PTH112
        hidden_files=tuple(path for path in hidden if not os.path.isdir(path)),  # noqa: PTH112
        placeholders=placeholders(folder, permission, added) if writes else (),
        copies=tuple(_copies(around, home)),
        must_stay=tuple(
            (path, _link(path)) for path in (*git.new, *settings, *_links(folder, permission)) if not _is_plain(path)
        )
        if writes
        else tuple((path, _link(path)) for path in settings if not _is_plain(path)),
    )


class Repository(Struct, frozen=True, kw_only=True):
    """The repository of git that a folder is in, as far as a commit concerns it."""

    written: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    """What must not come into being there."""


def repository_of(folder: str) -> Repository:
    """Return what a commit in a folder writes, and what in there makes programs run."""
    top = _top_of(folder)
    if top is None:
        return Repository()
    git = os.path.realpath(f"{top}/.git")
    if os.path.isdir(git):  # noqa: PTH112
        return _main(git)
    return _linked(git, _text(git).removeprefix("gitdir:").strip())


def _top_of(folder: str) -> str | None:
    """Return the top of the repository that a folder is in. A person's whole home does not count."""
    top = next((one for one in (folder, *map(str, Path(folder).parents)) if os.path.lexists(f"{one}/.git")), None)
    return None if top is None or top == os.path.realpath(Path.home()) else top


def _main(git: str) -> Repository:
    if not os.path.isfile(f"{git}/HEAD"):  # noqa: PTH113 - a trap, and no repository
        return Repository(read_only=(git,))
    Path(git, "hooks").mkdir(exist_ok=True)
    others = [f"{git}/worktrees"] if os.path.isdir(f"{git}/worktrees") else []  # noqa: PTH112
    parts = [path for name in _OF_GIT if os.path.lexists(path := f"{git}/{name}")]
    return Repository(written=(git,), read_only=(*parts, *others), new=tuple(f"{git}/{name}" for name in _NEW_IN_GIT))


def _linked(file: str, named: str) -> Repository:
    """Return what a commit writes in a worktree whose repository is elsewhere."""
    own = os.path.realpath(os.path.join(os.path.dirname(file), named))  # noqa: PTH118, PTH120
    if not os.path.isfile(f"{own}/commondir"):  # noqa: PTH113 - a submodule, or what only looks like one
        return Repository(read_only=(file,))
    common = os.path.realpath(os.path.join(own, _text(f"{own}/commondir").strip()))  # noqa: PTH118
    back = os.path.realpath(_text(f"{own}/gitdir").strip())
    if back != file or not own.startswith(f"{common}/worktrees/"):
        # Somebody may have written it to lead elsewhere.
        return Repository(read_only=(file,))
    shared = [path for name in ("objects", "refs", "logs") if os.path.isdir(path := f"{common}/{name}")]  # noqa: PTH112
    return Repository(
        written=(own, *shared),
        read_only=(file, f"{own}/commondir", f"{own}/gitdir"),
        new=(f"{own}/config.worktree",),
    )


def held_in(folder: str, permission: Permission, added: Iterable[str] = ()) -> tuple[str, ...]:
    """Return what is directly in a folder, or named by its git, that makes programs run.

    With `ask`, a person says yes to a change of most of them, and it must work then: the settings of agents are held.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        entries = []
    found = [
        os.path.realpath(entry.path)
        for entry in entries
        if _is_held(entry, permission) and entry.name != ".git" and not entry.is_symlink()
    ]
    if permission != "ask":
        found += ProgramFiles(folder).targets
    known = set(added)
    return tuple(
        path
        for path in dict.fromkeys(found)
        if path.startswith(f"{folder}/") and "/.git/" not in path and path not in known and os.path.lexists(path)
    )


def placeholders(folder: str, permission: Permission, added: Iterable[str] = ()) -> tuple[str, ...]:
    """Return where empty folders are put, so that no folder with settings is made there."""
    names = OF_AGENTS if permission == "ask" else (*OF_AGENTS, *OF_OTHERS)
    known = set(added)
    return tuple(path for name in names if not os.path.lexists(path := f"{folder}/{name}") and path not in known)


def _is_held(entry: "os.DirEntry[str]", permission: Permission) -> bool:
    if entry.name in SETTINGS_OF_AGENTS or is_team_file(entry.path):
        return True
    # Folders are often called as hooks are.
    name = f"{entry.name}/x" if entry.is_dir(follow_symlinks=False) else entry.name
    return permission != "ask" and is_noticed(entry.name) and is_program_path(name)


def _links(folder: str, permission: Permission) -> Iterator[str]:
    """Yield the links in a folder in place of what is held there: a link itself cannot be held."""
    try:
        for entry in os.scandir(folder):
            if _is_held(entry, permission) and entry.is_symlink():
                yield entry.path
    except OSError:
        return


def _is_plain(path: str) -> bool:
    """Return whether something is there that is not a link, so that it can be held."""
    return os.path.lexists(path) and not os.path.islink(path)  # noqa: PTH114


def _link(path: str) -> str | None:
    return os.readlink(path) if os.path.islink(path) else None  # noqa: PTH114, PTH115


class _Own:
    """A folder of its CLI, which is made if it is missing, as the CLI would do."""

    def __init__(self, folder: OwnFolder, place: str) -> None:
        self.path = _made(place)
        self.settings = [f"{self.path}/{name}" for name in folder.settings]
        self.programs = [path for name in folder.programs if _is_plain(path := f"{self.path}/{name}")]


def place_of(folder: OwnFolder, environment: Mapping[str, str], home: str) -> str:
    """Return where a CLI's folder is."""
    elsewhere = environment.get(folder.variable, "") if folder.variable else ""
    if elsewhere:
        return os.path.realpath(os.path.join(elsewhere, folder.within))  # noqa: PTH118
    return os.path.realpath(f"{home}/{folder.path}")


def _made(path: str) -> str:
    try:
        if not os.path.lexists(path):
            Path(path).mkdir(mode=0o700, parents=True)
    except OSError:
        return ""
    return os.path.realpath(path) if os.path.exists(path) else ""  # noqa: PTH110


def _expanded(paths: Iterable[str], folder: str, home: str) -> Iterator[str]:
    for path in paths:
        whole = f"{home}{path[1:]}" if path == "~" or path.startswith("~/") else path
        yield os.path.realpath(os.path.join(folder, whole))  # noqa: PTH118


def _temporary(environment: Mapping[str, str]) -> tuple[str, ...]:
    import tempfile

    usual = ("/tmp", "/var/tmp", MEMORY, tempfile.gettempdir(), environment.get("TMPDIR") or "/tmp")  # noqa: S108 - to hide them
    return tuple(dict.fromkeys(os.path.realpath(path) for path in usual if os.path.isdir(path)))  # noqa: PTH112


def _socket_folders() -> tuple[str, ...]:
    return tuple({os.path.realpath(path) for path in SYSTEM_SOCKETS if os.path.isdir(path)})  # noqa: PTH112


def _hidden(around: Surroundings, home: str, own: Sequence[_Own], needs: set[str] | None) -> list[str]:
    """Return what is nothing to it: bullpen's data, the sessions of other CLIs, and secrets unless it may ask."""
    found = [os.path.realpath(path) for path in around.ours]
    mine = {one.path for one in own}
    for other in around.others:
        places = (place_of(one, around.environment, home) for one in other.folders)
        found += [place for place in places if place not in mine and place != home]
    if needs is not None:
        found += [path for name in SECRETS if (path := os.path.realpath(f"{home}/{name}")) not in needs]
    folder = os.path.realpath(around.folder)
    return [path for path in dict.fromkeys(found) if os.path.lexists(path) and path not in (folder, home, "/")]


def _needed(around: Surroundings, folder: str, home: str, git: Repository) -> Iterator[str]:
    """Yield what it needs to read wherever that is: its folder, its home, programs, and what it is told of."""
    yield from (folder, _top_of(folder) or folder, home, *git.written, *around.sockets)
    yield from (os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, Path(bullpen.__file__).parents[1]))
    for entry in around.environment.get("PATH", "").split(os.pathsep):
        # Programs are often links to what is beside their folder.
        parent = os.path.dirname(entry.rstrip("/"))  # noqa: PTH120
        yield parent if parent not in ("", "/", *_temporary(around.environment)) else entry
    for word in (*around.command, *around.environment.values()):
        if word.startswith("/"):
            yield word


def _shown(paths: Iterable[str], temporary: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield those that are below what is hidden otherwise, and where each really is."""
    hidden = (*temporary, *_socket_folders())
    for path in (*paths, *SYSTEM_LINKS, os.path.dirname(os.path.realpath(NAMES_OF_HOSTS))):  # noqa: PTH120
        real, written = os.path.realpath(path), os.path.normpath(path)
        if (
            written != real
            and real not in hidden
            and any(written.startswith(f"{one}/") for one in hidden)
            and not _is_hidden(real)
        ):
            yield written, real
        is_below = any(real.startswith(f"{one}/") for one in hidden)
        if is_below and real not in hidden and os.path.exists(real) and not _is_hidden(real):  # noqa: PTH110
            yield real, real


def _is_hidden(path: str) -> bool:
    """Return whether a path is what is hidden in any case: a folder of sockets of this user, or somebody's socket."""
    if any(path.startswith(f"{folder}/user") for folder in _socket_folders()):
        return True
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return True


def _copies(around: Surroundings, home: str) -> Iterator[tuple[str, str]]:
    for number, name in enumerate(around.own.copies):
        file = os.path.realpath(f"{home}/{name}")
        if os.path.isfile(file):  # noqa: PTH113
            yield file, f"{around.private.parent}/copy-{number}"


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:  # noqa: PTH123
            return opened.read(4096)
    except OSError:
        return ""
