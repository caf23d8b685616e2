"""Settings of CLIs that a folder brings along: where they are, and how a CLI is started without them.

A cloned repository may hold them, and they run programs. They are looked for in the folder and in the folders above it,
as the CLIs do, up to the user's own home, or to a folder in which everybody may write, such as /tmp.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from bullpen.permissions import Permission

CLAUDE = (
    *(".claude/settings.json", ".claude/settings.local.json", ".mcp.json"),
    *(".claude/agents/*", ".claude/commands/*", ".claude/skills/*/*"),
)
CODEX = (".codex/config.toml", ".codex/hooks.json", ".codex/rules/*")
GEMINI_TRUSTED = (".env", ".gemini/.env", ".gemini/policies/*", ".gemini/agents/*", ".gemini/skills/*/*")
"""What Gemini reads in each folder that it trusts."""
GEMINI = (
    *(".gemini/settings.json", ".gemini/commands/*", ".gemini/extensions/*/gemini-extension.json"),
    *GEMINI_TRUSTED,
)
QWEN = (
    *(".qwen/settings.json", ".qwen/settings.local.json", ".qwen/.env", ".env", ".mcp.json"),
    *(".qwen/agents/*", ".qwen/commands/*", ".qwen/skills/*/*", ".qwen/extensions/*/qwen-extension.json"),
)
COPILOT = (
    *(".github/hooks/*", ".github/copilot/*", ".github/extensions/*/*", ".github/mcp.json", ".github/lsp.json"),
    *(".mcp.json", ".claude/settings.json", ".claude/settings.local.json"),
)
OPENCODE = (
    *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
    *(f".opencode/{kind}{many}/*" for kind in ("plugin", "tool", "agent", "command", "mode") for many in ("", "s")),
    ".opencode/package.json",
)
PI_SETTINGS = ".pi/settings.json"
PI = (PI_SETTINGS, ".pi/extensions/*", ".pi/extensions/*/*")
VIBE = (
    *(".vibe/config.toml", ".vibe/hooks.toml", ".vibe/.env", ".vibe/tools/*", ".vibe/agents/*", ".vibe/skills/*/*"),
    ".vibe/plugins/*/*",
)
ALL_SETTINGS = tuple(sorted({*CLAUDE, *CODEX, *GEMINI, *QWEN, *COPILOT, *OPENCODE, *PI, *VIBE}))
"""The settings of every CLI, as patterns below a folder."""
MOST_FILES = 500
MOST_BYTES = 4 * 1024 * 1024
UNREADABLE = "unreadable"


class SettingsFile(Struct, frozen=True, order=True):
    """A settings file as it is now."""

    name: str
    """Its path, as seen from the folder."""
    digest: str
    """Of its content. UNREADABLE: it cannot be agreed to."""

    @property
    def mark(self) -> str:
        """What an agreement to it is kept as."""
        return f"{self.digest} {self.name}"


class FolderSettings(Struct, frozen=True, kw_only=True):
    """What a CLI reads of a folder's settings, and how it is started without them."""

    files: tuple[str, ...] = ()
    """Patterns below a folder."""
    always_read: tuple[str, ...] = ()
    """Those of them that it reads however it is started: it is started only if a person has agreed to them."""
    why: str = "it has no option to leave them out"
    """Why it reads these."""
    arguments: Callable[[Path], tuple[str, ...]] = lambda _: ()
    """Returns the arguments with which it leaves out the others in a folder."""
    reading_arguments: Callable[[Path], tuple[str, ...]] = lambda _: ()
    """Returns the arguments with which it reads them, if it would not by itself."""
    environment: Mapping[str, str] = {}
    """The variables with which it leaves them out."""
    permissions: Mapping[Permission, tuple[str, ...]] = {}
    """What takes the place of the arguments for these permissions meanwhile."""
    obstacle: Callable[[Mapping[str, str]], str] = lambda _: ""
    """Returns why it cannot be started without them in an environment, if so."""


NO_SETTINGS = FolderSettings()
ANY_PROGRAM = FolderSettings(
    files=ALL_SETTINGS, always_read=ALL_SETTINGS, why="bullpen does not know what this program reads"
)
"""For an agent that bullpen does not know."""


class Reading(Struct, frozen=True, kw_only=True):
    """Which settings of a folder a CLI would read, if people agree, and which it is started without in any case."""

    reads: tuple[SettingsFile, ...] = ()
    must: tuple[SettingsFile, ...] = ()
    """Those of them that it cannot be started without."""
    left_out: tuple[SettingsFile, ...] = ()

    @property
    def marks(self) -> frozenset[str]:
        """What people have to agree to."""
        return frozenset(file.mark for file in self.reads)

    def not_agreed(self, agreed: Collection[str]) -> tuple[SettingsFile, ...]:
        """Return what it would read without anybody's agreement."""
        return tuple(file for file in self.reads if file.digest == UNREADABLE or file.mark not in agreed)


def reading(settings: FolderSettings, permission: Permission, folder: Path) -> Reading:
    """Return what a CLI would read in a folder: with full permissions only, since others would not hold."""
    found = settings_in(folder, settings.files)
    must_names = {file.name for file in settings_in(folder, settings.always_read)} if found else set()
    must = tuple(file for file in found if file.name in must_names)
    reads = found if permission == "full" else must
    return Reading(reads=reads, must=must, left_out=tuple(file for file in found if file not in reads))


def settings_in(folder: Path, patterns: Sequence[str]) -> tuple[SettingsFile, ...]:
    """Return the settings files for a folder, in a fixed order."""
    if not patterns:
        return ()
    found = {
        os.path.relpath(path, folder): path
        for place in places_of(folder)
        for pattern in patterns
        for path in islice(_matching(place, pattern), MOST_FILES)
    }
    return tuple(SettingsFile(name, _digest(path)) for name, path in sorted(found.items()))


def places_of(folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, links resolved. In the user's home are the user's own settings."""
    home, folder = (Path(os.path.realpath(path)) for path in (Path.home(), folder))
    for place in (folder, *folder.parents):
        if place == home or (place != folder and _is_everybodys(place)):
            return
        yield place


def _is_everybodys(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & stat.S_IWOTH)
    except OSError:
        return False


def _matching(place: Path, pattern: str) -> Iterator[Path]:
    if "*" in pattern:
        yield from (path for path in place.glob(pattern) if not path.is_dir())
    elif os.path.lexists(place / pattern):
        yield place / pattern


def content_of(path: Path) -> bytes | None:
    """Return what is in a settings file; None if it cannot be read, is too large, or a pipe: nobody may write to it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        content = file.read(MOST_BYTES + 1)
    return content if len(content) <= MOST_BYTES else None


def _digest(path: Path) -> str:
    """Return the hash of a file."""
    content = content_of(path)
    return UNREADABLE if content is None else hashlib.sha256(content).hexdigest()
