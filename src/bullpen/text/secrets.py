"""Keys and passwords in a program's error output: removed before it is stored, shown or exported.

Known secrets are always removed: the values of environment variables whose names contain KEY, TOKEN and the like. Other
secrets can only be recognised by their form or by the word before them.
"""

import os
import re
from collections.abc import Mapping

from bullpen.text.patterns import pattern

MASK = "[secret]"
SHORTEST_SECRET = 8
"""Shorter values would be found in ordinary words."""

_SECRET_NAME = pattern(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE", re.IGNORECASE)
_WORD = r"(?:api[_-]?key|(?:access|auth|refresh|secret)[_-]?(?:key|token)|token|secret|passw(?:or)?d|passphrase)"
# Each starts where it cannot be part of a longer word, so that no text is scanned twice.
_FORMS = pattern(
    r"(?<![\w-])(?:"
    r"sk-[\w-]{8,}+|[sr]k_(?:live|test)_\w{8,}+|gh[a-z]_\w{16,}+|github_pat_\w{16,}+|glpat-[\w-]{8,}+"
    r"|xox[a-z]-[\w-]{8,}+|A(?:KIA|SIA)[A-Z0-9]{12,}+|AIza[\w-]{20,}+|ya29\.[\w-]{16,}+|hf_\w{16,}+|npm_\w{16,}+"
    r"|eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?"
    r")"
)
_ANNOUNCED = rf"""{_WORD}["']?[ \t]{{0,3}}[=:][ \t]{{0,3}}["']?|(?:bearer|basic)[ \t]{{1,3}}"""
_AFTER_WORD = pattern(rf"""(?<![a-z0-9])({_ANNOUNCED})([^\s"',;&]{{6,}}+)""", re.IGNORECASE)
_IN_ADDRESS = pattern(r"(?<=://)([^\s/:@]{1,200}+):([^\s/@]{1,200}+)(?=@)")
_PRIVATE_KEY = pattern(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?")


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text with everything that is or looks like a key or a password replaced."""
    if not text:
        return text
    for value in _secret_values(environment):
        text = text.replace(value, MASK)
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _FORMS.sub(MASK, text)
    text = _IN_ADDRESS.sub(rf"\1:{MASK}", text)
    return _AFTER_WORD.sub(lambda found: f"{found[1]}{MASK}", text)


def _secret_values(environment: Mapping[str, str]) -> list[str]:
    """Return the values to look for, the longest first, since one may be part of another."""
    values = {value for name, value in environment.items() if _SECRET_NAME.search(name) and _may_be_secret(value)}
    return sorted(values, key=len, reverse=True)


def _may_be_secret(value: str) -> bool:
    # A variable may also name the file with the key; that is not a secret, and error messages need it.
    return len(value) >= SHORTEST_SECRET and not value.startswith(("/", "~", "."))
