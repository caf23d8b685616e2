"""Every key that a team file can have, and a worker's file, and what its value must be."""

import math
import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from bullpen.text.plain_commands import is_rule

LONGEST_CHECK_NAME = 40


class Kind(Struct, frozen=True):
    """What a value must be, in words, and how to read it; `read` raises ValueError for anything else."""

    words: str
    read: Callable[[Any], Any]
    may_be_secret: bool = False
    """Whether to leave a wrong value out of messages: it may be a key, written where a variable's name belongs."""


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def _read_text(value: Any) -> str:
    # Arguments and paths cannot contain a NUL.
    _require(isinstance(value, str) and bool(value.strip()) and "\0" not in value)
    return str(value)


def _read_texts(value: Any) -> tuple[str, ...]:
    _require(isinstance(value, list))
    return tuple(_read_text(item) for item in value)


def _read_command(value: Any) -> tuple[str, ...]:
    _require(bool(value))
    return _read_texts(value)


def _read_allowed(value: Any) -> tuple[str, ...]:
    rules = _read_texts(value)
    _require(all(map(is_rule, rules)))
    return rules


def _read_variables(value: Any) -> tuple[str, ...]:
    names = _read_texts(value)
    _require(all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in names))
    return names


def _read_patterns(value: Any) -> tuple[str, ...]:
    names = _read_texts(value)
    _require(all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*\*?", name) for name in names))
    return names


def _read_commands(value: Any) -> tuple[tuple[str, ...], ...]:
    _require(isinstance(value, list))
    return tuple(_read_command(item) for item in value)


def _read_pool(value: Any) -> str:
    # It becomes a part of the name of a channel, of which PostgreSQL takes 63 bytes.
    _require(isinstance(value, str) and re.fullmatch("[a-z0-9][a-z0-9._-]{0,39}", value) is not None)
    return str(value)


def _read_paragraphs(value: Any) -> str:
    return "\n\n".join(_read_texts(value)) if isinstance(value, list) else _read_text(value)


def _read_check_name(value: Any) -> str:
    name = _read_text(value)
    _require(name == check_name(name) and len(name) <= LONGEST_CHECK_NAME)
    return name


def check_name(text: str) -> str:
    """Return a text without what cannot be in the name of a check: it is part of lines, and could open a marker."""
    return "".join(character for character in text if character.isprintable() and character not in "[]［］`").strip()


def _read_file(value: Any) -> str:
    return "" if value is False else _read_text(value)


def _read_flag(value: Any) -> bool:
    _require(isinstance(value, bool))
    return bool(value)


def _read_table(value: Any) -> dict[str, Any]:
    _require(isinstance(value, dict))
    return dict(value)


def _read_note(value: Any) -> bool | str:
    return value if isinstance(value, bool) else _read_text(value)


def _whole(least: int) -> Kind:
    def read(value: Any) -> int:
        _require(isinstance(value, int) and not isinstance(value, bool) and value >= least)
        return int(value)

    return Kind(f"a whole number of at least {least}", read)


def _read_share(value: Any) -> float:
    _require(isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1)
    return float(value)


def _read_price(value: Any) -> float:
    return 0.0 if value in (0, 0.0) and value is not False else _read_positive(value)


def _read_positive(value: Any) -> float:
    _require(isinstance(value, int | float) and not isinstance(value, bool) and value > 0)
    try:
        number = float(value)
    except OverflowError as error:
        raise ValueError from error
    _require(math.isfinite(number))
    return number


def _one_of(*choices: str) -> Kind:
    def read(value: Any) -> str:
        _require(value in choices)
        return str(value)

    return Kind(" or ".join(f'"{choice}"' for choice in choices), read)


_TEXT = Kind("a string", _read_text)
_TEXTS = Kind("a list of strings", _read_texts)
_PARAGRAPHS = Kind("a string or a list of strings", _read_paragraphs)
_FILE = Kind("a file name, or false", _read_file)
_FLAG = Kind("true or false", _read_flag)
_SECONDS = Kind("a number of seconds above 0", _read_positive)
_NUMBER = Kind("a number above 0", _read_positive)
_PRICE = Kind("a number of US dollars for a million tokens, 0 or more", _read_price)
_COMMAND = Kind("a list of strings, the first a program", _read_command)

TEAM_KEYS = {
    "name": _TEXT,
    "lead": _TEXT,
    "task": _TEXT,
    "instruction_file": _FILE,
    "prompts": _one_of("bullpen", "specification"),
    "hand_over_note": Kind("true, false, or the text to use instead", _read_note),
    "outside_files": _FLAG,
}
OLD_TEAM_KEYS = {"message_header": _FLAG, "whitespace": _one_of("preserve", "collapse")}
"""They still work. What they leave out of prompts, prompts = "specification" leaves out with everything else."""
LIMIT_KEYS = {
    "turns_per_message": _whole(1),
    "back_and_forth": _whole(1),
    "identical_replies": _whole(2),
    "minutes": _NUMBER,
    "tokens": _whole(1),
    "cost_usd": _NUMBER,
    "overload_retries": _whole(0),
    "on_interrupted": _one_of("ask", "retry-once"),
}
BUDGET_KEYS = {"turns": _whole(1), "tokens": _whole(1), "cost_usd": _NUMBER, "minutes": _NUMBER}
SUMMARY_KEYS = {"summarizer": _TEXT, "after_bytes": _whole(1)}
PRICE_KEYS = {"input": _PRICE, "output": _PRICE, "cached": _PRICE}
PERSON_KEYS = {
    "name": _TEXT,
    "type": _one_of("human", "ai"),
    "display_name": _TEXT,
    "role": _TEXT,
    "color": _one_of("red", "green", "yellow", "blue", "magenta", "cyan", "white"),
}
POOL = Kind('the name of a pool of workers, such as "gpu-box"', _read_pool)
_PERMISSIONS = _one_of("read-only", "edit", "ask", "full")
_ALLOWED = Kind(
    'a list of commands or tools such as "npm test" or "git diff*", without quotes, commas or shell operators',
    _read_allowed,
)
AGENT_KEYS = PERSON_KEYS | {
    "agent": _TEXT,
    "command": _COMMAND,
    "model": _TEXT,
    "cwd": _TEXT,
    "system_instruction": _PARAGRAPHS,
    "instruction_file": _FILE,
    "arguments": _TEXTS,
    "env": Kind("a list of variable names, without values", _read_variables, may_be_secret=True),
    "stand_in": _TEXTS,
    "stand_in_at": Kind("a share between 0 and 1, such as 0.9", _read_share),
    "permissions": _PERMISSIONS,
    "allow": _ALLOWED,
    "deny": _ALLOWED,
    "ask_timeout": _SECONDS,
    "sandbox": _FLAG,
    "writable": _TEXTS,
    "network": _FLAG,
    "window": _whole(0),
    "window_bytes": _whole(0),
    "visibility": _one_of("all", "addressed"),
    "max_bytes": _whole(1),
    "workspace": _one_of("shared", "own"),
    "reply": _one_of("all", "last"),
    "memory": _one_of("own", "shared"),
    "memory_tokens": _whole(1),
    "pool": POOL,
    "idle_timeout": _SECONDS,
    "total_timeout": _SECONDS,
    "budget": Kind("a table such as { tokens = 500000 }", _read_table),
    "may_address": _TEXTS,
    "tools": _FLAG,
    "may_set_task": _FLAG,
    "may_drop": _FLAG,
    "reviews": _TEXT,
    "until": _one_of("approved"),
    "most_rounds": _whole(1),
}
DEFAULT_KEYS = {
    key: AGENT_KEYS[key]
    for key in (
        *("cwd", "env", "permissions", "allow", "deny", "ask_timeout", "sandbox", "writable"),
        *("window", "window_bytes", "visibility", "max_bytes", "workspace", "reply", "memory", "memory_tokens"),
        *("pool", "idle_timeout", "total_timeout", "budget", "tools", "may_set_task", "may_drop"),
    )
}
"""The keys of [defaults]: for every agent that does not have them itself."""
CHECK_KEYS = {
    "command": _COMMAND,
    "name": Kind(f"a name of at most {LONGEST_CHECK_NAME} characters in one line, without brackets", _read_check_name),
    "cwd": _TEXT,
    "timeout": _SECONDS,
    "on_red": _one_of("ask", "return"),
    "most_returns": _whole(1),
}
_COMMANDS = Kind('a list of commands, each a list of strings, such as [["/opt/tool", "--fast"]]', _read_commands)
WORKER_KEYS = {
    "name": _TEXT,
    "agents": _TEXTS,
    "commands": _COMMANDS,
    "checks": _COMMANDS,
    "permissions": _PERMISSIONS,
    "allow": _ALLOWED,
    "models": _TEXTS,
    "sandbox": _FLAG,
    "writable": _TEXTS,
    "arguments": _TEXTS,
    "env": Kind(
        "a list of variable names, without values; a trailing * matches any ending", _read_patterns, may_be_secret=True
    ),
    "at_once": _whole(1),
}
