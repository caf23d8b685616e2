"""The environment of a child: only the variables that it needs."""

import os
from collections.abc import Mapping

from bullpen.agents.spec import AgentSpec
from bullpen.config import program_path

# Without these a program does not find its files, its language, its certificates or its proxy.
ALWAYS_PASSED = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "XDG_*",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "SYSTEMROOT",
)


def child_environment(
    spec: AgentSpec, extra: Mapping[str, str] | None = None, ours: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment for a CLI: the basics, its documented variables, its settings, and `extra`."""
    patterns = ALWAYS_PASSED + spec.environment
    # As `matches` does, ten times as fast: this is done several times in each turn.
    exact, beginnings = frozenset(patterns), tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    passed = {name: value for name, value in ours.items() if name in exact or name.startswith(beginnings)}
    given = {"TERM": "dumb", **passed, **spec.settings, **(extra or {})}
    # What it starts by itself, such as node and git, must not come from its folder either.
    return {**given, "PATH": program_path(given["PATH"]) or os.defpath} if given.get("PATH") else given


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a variable's name matches one of these; a trailing * matches any ending."""
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
