"""Where in a TOML text a key stands: the parser of the standard library does not say."""

import re
from collections import Counter

_TABLE = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=""")
_MULTILINE = re.compile(r'"""|' + r"'''")

Path = tuple[str | int, ...]


class TomlLines:
    """The line of every table and key, by its path: ("member", 1, "model") is in the second [[member]]."""

    def __init__(self, text: str) -> None:
        self._lines: dict[Path, int] = {}
        tables: Counter[str] = Counter()
        table: Path = ()
        inside_text = False
        for number, line in enumerate(text.splitlines(), start=1):
            if not inside_text:
                if header := _TABLE.match(line):
                    name = _unquoted(header[2])
                    table = (*name, tables[header[2]]) if header[1] == "[[" else name
                    tables[header[2]] += 1
                    self._lines.setdefault(table, number)
                elif key := _KEY.match(line):
                    self._lines.setdefault((*table, *_unquoted(key[1])), number)
            if len(_MULTILINE.findall(line)) % 2:
                inside_text = not inside_text

    def line_of(self, path: Path) -> int | None:
        """Return the line of a key, or of the nearest table around it."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None


def _unquoted(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
