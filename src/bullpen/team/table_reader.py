"""Tables of a TOML file: the values of their keys, and everything that is wrong with them, each with its line."""

import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from typing import Any

from bullpen.errors import TeamProblem
from bullpen.team.keys import Kind
from bullpen.team.toml_lines import TomlLines
from bullpen.text.names import nearest
from bullpen.text.plain_commands import is_plain_command

Path = tuple[str | int, ...]


def read_toml(text: str) -> tuple[dict[str, Any], TeamProblem | None]:
    """Return the document in a text, or why there is none."""
    try:
        return tomllib.loads(text), None
    # A plain ValueError: a number with more digits than Python reads.
    except (ValueError, RecursionError) as error:
        place = re.search(r"at line (\d+)", str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        return {}, TeamProblem(f"this is not valid TOML: {error}", line=line)


class TableReader:
    """Reads tables and collects every problem."""

    def __init__(self, lines: TomlLines) -> None:
        self._lines = lines
        self.problems: list[TeamProblem] = []

    def values(
        self,
        table: Mapping[str, Any],
        keys: Mapping[str, Kind],
        path: Path,
        *,
        others: Mapping[str, Kind] | None = None,
        elsewhere: str = "",
        skip: Mapping[str, object] | None = None,
    ) -> dict[str, Any]:
        """Return the values of a table; an unknown key or a wrong value is a problem. Others belong elsewhere."""
        values = {}
        for key, value in table.items():
            if key in (skip or {}):
                continue
            if key not in keys:
                self.problem((*path, key), elsewhere if key in (others or {}) else _unknown(key, keys))
                continue
            try:
                values[key] = keys[key].read(value)
            except ValueError:
                instead = "" if keys[key].may_be_secret else f", not {shown(value)}"
                self.problem((*path, key), f"must be {keys[key].words}{instead}{_as_list(key, value)}")
        return values

    def problem(self, path: Path, text: str) -> None:
        """Note what is wrong with a key, or with a table."""
        key = ".".join(str(part + 1) if isinstance(part, int) else part for part in path)
        self.problems.append(TeamProblem(text, line=self._lines.line_of(path), key=key))


def _unknown(key: str, keys: Mapping[str, Kind]) -> str:
    return f"there is no such key.{suggestion(key, keys)}"


def suggestion(word: str, known: Any) -> str:
    """Return what was probably meant, or all that is known."""
    close = nearest(word, known)
    return f" Did you mean {' or '.join(close)}?" if close else f" Known: {', '.join(known)}." if known else ""


def _as_list(key: str, value: object) -> str:
    """Return the list that a command line in one string was probably meant to be."""
    if key == "allow" and isinstance(value, str) and is_plain_command(value):
        return f". Try: allow = {json.dumps([value], ensure_ascii=False)}"
    if key not in ("command", "arguments") or not isinstance(value, str) or not value.strip():
        return ""
    try:
        words = shlex.split(value)
    except ValueError:
        return ""
    return f". Try: {key} = {json.dumps(words, ensure_ascii=False)}"


def shown(value: Any) -> str:
    """Return a value as the file has it: true, not True."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
