"""What a child may know of our environment: little."""

import os
from collections.abc import Mapping

from bullpen.agents.spec import AgentSpec

# Without these a program does not find its files, its language, its certificates or its way out.
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
    """Return the environment for a CLI: the basics, what it documents, its settings, and what the caller names."""
    patterns = ALWAYS_PASSED + spec.environment
    passed = {name: value for name, value in ours.items() if matches(name, patterns)}
    return {"TERM": "dumb", **passed, **spec.settings, **(extra or {})}


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Tell whether the name of a variable is one of these; a trailing * stands for any ending."""
    return any(name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern for pattern in patterns)
