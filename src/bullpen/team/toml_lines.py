"""The line number of each key in a TOML text: the standard library's parser does not report it."""

import re
from collections import Counter

# Long strings and comments may contain lines that look like keys. The text is known to be valid TOML.
_NO_KEYS = re.compile(
    r'"""(?:\\.|[^\\])*?"""' + r"|'''.*?'''" + r"|#[^\n]*" + r'|"(?:\\.|[^"\\\n])*"' + r"|'[^'\n]*'", re.DOTALL
)
_PART = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_TABLE = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]")
_KEY = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")

Path = tuple[str | int, ...]


class TomlLines:
    """The line of every table and key, by its path: ("member", 1, "model") is in the second [[member]]."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        self._lists: Counter[Path] = Counter()
        table: Path = ()
        for number, line in enumerate(_NO_KEYS.sub(_blanked, text).split("\n"), start=1):
            if header := _TABLE.match(line):
                table = self._table(_parts(header[2]), is_list=header[1] == "[[")
                self._lines.setdefault(table, number)
            elif key := _KEY.match(line):
                self._lines.setdefault((*table, *_parts(key[1])), number)

    def line_of(self, path: Path) -> int | None:
        """Return the line of a key, or of the nearest table around it. A member's key may be in [defaults]."""
        places = [path[:length] for length in range(len(path), 0, -1)]
        if path[:1] == ("member",):
            inherited = ("defaults", *path[2:])
            defaults = [inherited[:length] for length in range(len(inherited), 1, -1)]
            places = [*places[:-2], *defaults, *places[-2:]]
        found = (self._lines.get(place) or self._lines.get((*place, 0)) for place in places)
        return next(filter(None, found), None)

    def has(self, path: Path) -> bool:
        """Return whether the text itself has this key."""
        return path in self._lines

    def _table(self, parts: Path, *, is_list: bool) -> Path:
        """Return the path of a table; one inside a list belongs to the list's last entry."""
        path: Path = ()
        for part in parts[:-1]:
            path = (*path, part)
            if path in self._lists:
                path = (*path, self._lists[path] - 1)
        path = (*path, parts[-1])
        if not is_list:
            return path
        self._lists[path] += 1
        return (*path, self._lists[path] - 1)


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _blanked(match: re.Match[str]) -> str:
    token = match[0]
    if token.startswith(("#", '"""', "'''")):
        return "\n" * token.count("\n")
    return token
