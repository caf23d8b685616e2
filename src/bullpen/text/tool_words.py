"""What a tool was asked to do, in the words that tell most."""

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any

# The arguments that say most about a call, in this order.
TELLING = ("command", "cmd", "file_path", "pattern", "path", "absolute_path", "query", "url", "prompt", "description")

# Codex tells every command so.
_IN_A_SHELL = re.compile(r"\A/bin/(?:ba|z|da)?sh -l?c '([^']*)'\Z")


def asked_of(values: Mapping[str, Any]) -> str:
    """Return the words that tell most about what a tool is to do; nothing if it was given nothing."""
    for name in TELLING:
        if said := _words(values.get(name)):
            return _IN_A_SHELL.sub(r"\1", said)
    if isinstance(changes := values.get("changes"), list):
        paths = [str(change["path"]) for change in changes if isinstance(change, dict) and "path" in change]
        if paths:
            return ", ".join(paths)
    if len(values) == 1 and (said := _words(next(iter(values.values())))):
        return said
    return json.dumps(values, ensure_ascii=False, default=str) if values else ""


def _words(value: object) -> str:
    """Return a text as it is, and a list of words as a shell takes it; nothing of anything else."""
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return shlex.join(value)
    return value if isinstance(value, str) else ""
