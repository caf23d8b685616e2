"""The user's own rules for Codex: one that allows a command lets it run unasked, and they cannot be left out."""

import re
from collections.abc import Mapping
from pathlib import Path

_COMMENT = re.compile(r"#.*")
_RULE = re.compile(r"\bprefix_rule\s*\(")
_IS_STRICT = re.compile(r"""\bdecision\s*=\s*["'](?:prompt|forbidden)["']""")


def why_not_asked(environment: Mapping[str, str]) -> str:
    """Return why some commands would not be asked for; empty if all are."""
    home = environment.get("CODEX_HOME") or str(Path(environment.get("HOME", "~"), ".codex"))
    for file in sorted(Path(home).expanduser().glob("rules/*.rules")):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # Codex cannot read it either
        # A rule allows unless it says something else.
        if not all(_IS_STRICT.search(rule) for rule in _RULE.split(_COMMENT.sub("", text))[1:]):
            return (
                f"a rule in {file} lets Codex run commands without asking. Remove it, so that bullpen is asked: "
                "`allow` in the team file does the same. Or choose other permissions"
            )
    return ""
