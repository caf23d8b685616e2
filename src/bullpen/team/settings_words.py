"""What a settings file of a CLI would run or allow, in a few words for the person who is asked."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from bullpen.agents.folder_settings import content_of

MOST_WORDS = 12
MOST_LENGTH = 300
PROGRAMS = frozenset({".cjs", ".js", ".mjs", ".mts", ".py", ".sh", ".ts"})
KINDS = (
    ("hook", re.compile(r"hook", re.IGNORECASE)),
    ("MCP server", re.compile(r"^(mcp|mcp_?servers|servers|serverCommand)$", re.IGNORECASE)),
    ("extension", re.compile(r"^(plugins?|packages|extensions|enabledPlugins|extraKnownMarketplaces)$")),
    ("allow rule", re.compile(r"allow|approv|^permissions?$|^trust|^bypass|sandbox|^coreTools$|^core$", re.IGNORECASE)),
    ("variable", re.compile(r"^(env|environment|shell_environment_policy)$")),
    ("program", re.compile(r"(?i)command|helper|notify|^shell|refresh|export|^lsp|formatter|status|^(bash|cmd|exec)$")),
)
"""The meaning of a key in a settings file, by its name; the first that fits."""
SAY_NOTHING = frozenset({"description", "enabled", "matcher", "name", "timeout", "timeoutSec", "type", "version"})
"""Keys of a hook or a server that run nothing."""
UNREADABLE = ("it cannot be read, so it may run anything",)
# What never ends is taken to the end, so that no part of a text is read twice.
_COMMENT = re.compile(r'("(?:\\(?:.|\Z)|[^"\\])*+(?:"|\Z))|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_VARIABLE = re.compile(r"^[ \t]*+(?:export[ \t]++)?+(\w++)[ \t]*+=", re.MULTILINE)


def settings_words(file: Path) -> tuple[str, ...]:
    """Return what is in a settings file that runs something or lets something run, each in one phrase."""
    try:
        content = content_of(file)
        if content is None:
            return UNREADABLE
        found = list(dict.fromkeys(_words(file, content.decode("utf-8-sig"))))
    except (OSError, ValueError, RecursionError):
        return UNREADABLE
    more = len(found) - MOST_WORDS
    return (*found[:MOST_WORDS], f"and {more} more") if more > 0 else tuple(found)


def _words(file: PurePath, text: str) -> Iterator[str]:
    if file.name.endswith(".env"):
        yield from (f"variable {name}" for name in _VARIABLE.findall(text))
    elif file.suffix in (".json", ".jsonc"):
        yield from _leaves(_json(text), "", "")
    elif file.suffix == ".toml":
        yield from _leaves(tomllib.loads(text), "", "allow rule" if "policies" in file.parts else "")
    elif file.suffix == ".md":
        yield "instructions, which may name tools and hooks"
    else:
        kind = "allow rules" if file.suffix == ".rules" else "program"
        yield f"{'a program' if file.suffix in PROGRAMS else kind} that it loads"


def _json(text: str) -> Any:
    """Return what is in a file of JSON, in which CLIs allow comments."""
    plain = _COMMENT.sub(lambda found: found[1] or "", text)
    return json.loads(_TRAILING_COMMA.sub(r"\1", plain))


def _leaves(value: Any, path: str, kind: str) -> Iterator[str]:
    """Yield a phrase for every value below a key that runs or allows something."""
    match value:
        case {"command": str() | list() as command} if kind:
            yield _phrase(kind, path, " ".join([_line(command), _line(value.get("args", ""))]))
            yield from _leaves({key: one for key, one in value.items() if key not in ("command", "args")}, path, kind)
        case dict():
            for key, below in value.items():
                if kind and key in SAY_NOTHING:
                    continue
                own = kind or next((word for word, fits in KINDS if fits.search(str(key))), "")
                yield from _leaves(below, f"{path}.{key}" if path else str(key), own)
        case list() if any(isinstance(one, dict) for one in value):
            for one in value:
                yield from _leaves(one, path, kind)
        case _ if kind and value not in (None, "", False, []):
            yield _phrase(kind, path, _line(value))


def _line(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _phrase(kind: str, path: str, said: str) -> str:
    return f"{kind} {path}: {' '.join(said.split())}"[:MOST_LENGTH]
