"""Which files in a folder the settings of its git repository name: folders of hooks, filters, more settings.

Every value counts, regardless of its use: that may cost a question, but a list of those that run something is long.
"""

import os
import re
from collections.abc import Iterator

MOST_READ = 256 * 1024
MOST_FILES = 20
_SETTING = re.compile(r"^[^\S\n]*(?:\[[^\]\n]*\][^\S\n]*)?([\w-]+)[^\S\n]*=((?:\\\n|[^\n])*)", re.MULTILINE)
_SEPARATORS = re.compile(r"[\s'\"!;&|<>()`$\\=]+")
_OF_PATHS = ("path", "file", "dir")
"""How settings end whose value is a path. In others, the first word is a program, which is looked for elsewhere."""


def git_targets(folder: str) -> Iterator[str]:
    """Yield the real paths that a repository's settings and the user's may name, also of files that do not exist."""
    top, git = _repository(folder)
    home = os.path.expanduser("~")  # noqa: PTH111
    more = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    waiting = [*(f"{one}/{name}" for one in git for name in ("config", "config.worktree"))]
    waiting += [f"{home}/.gitconfig", f"{more}/git/config"]
    seen: set[str] = set()
    while waiting and len(seen) < MOST_FILES:
        file = os.path.realpath(waiting.pop())
        if file in seen:
            continue
        seen.add(file)
        for key, value in _SETTING.findall(_text(file)):
            for word in _paths(key.lower(), value, top):
                # Hooks and filters run at the top; other settings are named from where these are.
                yield os.path.realpath(f"{top}/{word}" if not word.startswith("/") else word)
                if key.lower() == "path":
                    included = os.path.join(os.path.dirname(file), word)  # noqa: PTH118, PTH120
                    yield os.path.realpath(included)
                    waiting.append(included)


def _paths(key: str, value: str, top: str) -> Iterator[str]:
    words = [os.path.expanduser(word) for word in _SEPARATORS.split(value) if word]  # noqa: PTH111
    if key.endswith(_OF_PATHS):
        # Also with blanks in it.
        yield os.path.expanduser(value.strip().strip('"'))  # noqa: PTH111
        yield from words
        return
    for place, word in enumerate(words):
        path = os.path.join(top, word)  # noqa: PTH118
        is_file = os.path.isfile(path) if place else False  # noqa: PTH113
        if is_file or ("/" in word and not os.path.isdir(path)):  # noqa: PTH112
            yield word


def _repository(folder: str) -> tuple[str, list[str]]:
    """Return the top of the repository that a folder is in, and its folders with settings."""
    top = os.path.realpath(folder)
    while not os.path.lexists(f"{top}/.git") and top != "/":
        top = os.path.dirname(top)  # noqa: PTH120
    git = f"{top}/.git"
    if not os.path.lexists(git):
        return os.path.realpath(folder), []
    if named := _text(git).strip().removeprefix("gitdir:").strip():
        git = os.path.join(top, named)  # noqa: PTH118
    common = _text(f"{git}/commondir").strip()
    return top, [git, *([os.path.join(git, common)] if common else [])]  # noqa: PTH118


def _text(file: str) -> str:
    if not os.path.isfile(file):  # noqa: PTH113 - a pipe would be waited for
        return ""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:  # noqa: PTH123
            return opened.read(MOST_READ)
    except (OSError, ValueError):
        return ""
