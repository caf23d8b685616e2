"""Keys and passwords in a program's error output: removed before it is stored, shown or exported.

Known secrets are always removed: the values of environment variables whose names say that they hold one, and passwords
in addresses that any variable holds. Other secrets can only be recognised by their form or by the word before them.
docs/agents.md has the rule as people read it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

from bullpen.text.patterns import pattern

MASK = "[secret]"
SHORTEST_SECRET = 8
"""Shorter values would be found in ordinary words."""
SHORTEST_ANNOUNCED = 6

# AUTHOR is not AUTH, ASKPASS is a program, and PWD alone is the current folder.
_SECRET_NAME = pattern(
    r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|COOKIE|AUTHORIZATION"
    r"|(?<![A-Z])(?:AUTH|AUTH_CONFIG|PASS)$|[A-Z0-9]_PWD$",
    re.IGNORECASE,
)
_NAME_OF_A_PLACE = pattern(r"(?:FILE|FILENAME|PATH|DIR|DIRECTORY|FOLDER|HOME|SOCK|SOCKET)$", re.IGNORECASE)
_PATH_WITH_A_USUAL_END = pattern(
    r"(?:~|\.{1,2})?(?=/).*(?:\.(?:pem|key|crt|cer|der|p8|p12|pfx|jks|gpg|asc|pub|json|ya?ml|toml|ini|conf|cfg|env|txt)"
    r"|/\.ssh/[^/]+)",
    re.IGNORECASE | re.DOTALL,
)

_WORD = r"(?:api[_-]?key|(?:access|secret)[_-]?key|token|secret|passw(?:or)?d|passphrase|(?<=[_\"-])(?:auth|pass|pwd))"
# Each starts where it cannot be part of a longer word, so that no text is scanned twice.
_FORMS = pattern(
    r"(?<![\w-])(?:"
    r"sk-[\w-]{8,}+|[sr]k_(?:live|test)_\w{8,}+|gh[a-z]_\w{16,}+|github_pat_\w{16,}+|glpat-[\w-]{8,}+"
    r"|xox[a-z]-[\w-]{8,}+|A(?:KIA|SIA)[A-Z0-9]{12,}+|AIza[\w-]{20,}+|ya29\.[\w-]{16,}+|hf_\w{16,}+|npm_\w{16,}+"
    r"|eyJ[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)?"
    r")"
)
_SCHEME = r"(?:basic|bearer|bot|digest|token)[ \t]{1,3}"
_IS = r"""\\{0,3}["']?[ \t]{0,3}[=:][ \t]{0,3}\\{0,3}"""
_ANNOUNCED = rf"{_WORD}{_IS}|(?<![a-z0-9])(?:authorization{_IS}(?:{_SCHEME})?|(?:bearer|basic)[ \t]{{1,3}})"
# Within quotation marks it ends with them, else where the word does: a password may contain any other character.
_QUOTED = r"""(["'])((?:(?!\2)[^\n])++)(?=\2(?:[\s,;:&)}\]\\]|\Z)|\n|\Z)"""
_AFTER_WORD = pattern(rf"({_ANNOUNCED})(?:{_QUOTED}|(\S++))", re.IGNORECASE)
_AFTER_A_SENTENCE = ".,;:!?)]}>\"'"
# All up to the last "@" is the password, since one with "/" or "@" is not always written as %2F or %40. What looks like
# a host with its port is one. No text is scanned twice: an address ends where the next begins.
_HOST_AND_PORT = r"(?:[\w.-]*(?:\.[\w-]+|localhost)|\[[\da-f:.]*\]):\d{1,5}[/?#]"
_IN_ADDRESS = pattern(
    rf"""(?<=://)(?!{_HOST_AND_PORT})([^\s/?#:@"<>]{{0,200}}+):((?:(?:(?!://)[^\s"<>@])*+@)+)""", re.IGNORECASE
)
_PRIVATE_KEY = pattern(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[^-]*+(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?")


def without_secrets(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text with everything that is or looks like a key or a password replaced."""
    if not text:
        return text
    for value in _secret_values(environment):
        text = text.replace(value, MASK)
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _FORMS.sub(MASK, text)
    text = _IN_ADDRESS.sub(rf"\1:{MASK}@", text)
    return _AFTER_WORD.sub(_announced, text)


def _announced(found: re.Match[str]) -> str:
    before, mark, quoted, word = found.groups()
    if quoted is not None:
        return f"{before}{mark}{MASK}" if len(quoted) >= SHORTEST_ANNOUNCED else found[0]
    value = word.rstrip(_AFTER_A_SENTENCE)
    if value.endswith(MASK.rstrip(_AFTER_A_SENTENCE)):
        value = word[: len(value) + 1]
    return f"{before}{MASK}{word[len(value) :]}" if len(value) >= SHORTEST_ANNOUNCED else found[0]


def _secret_values(environment: Mapping[str, str]) -> list[str]:
    """Return the values to look for, the longest first, since one may be part of another."""
    found = {
        spelling
        for name, value in environment.items()
        for secret in _secrets_in(name, value)
        for spelling in _spellings(secret)
        if len(spelling) >= SHORTEST_SECRET
    }
    return sorted(found, key=len, reverse=True)


def _secrets_in(name: str, value: str) -> Iterator[str]:
    """Yield a variable's value if it is a secret, and the password in it if it is an address."""
    if _SECRET_NAME.search(name) and not _is_path(name, value):
        yield value
    if "://" in value:
        yield from (found[2].removesuffix("@") for found in _IN_ADDRESS.finditer(value))


def _is_path(name: str, value: str) -> bool:
    # A variable may also name the file with the key; that is not a secret, and error messages need it.
    begins_as_path = value.startswith(("/", "~", "."))
    return bool((begins_as_path and _NAME_OF_A_PLACE.search(name)) or _PATH_WITH_A_USUAL_END.fullmatch(value))


@lru_cache(maxsize=512)
def _spellings(secret: str) -> frozenset[str]:
    """Return a secret as it is, and as it is written in addresses and within quotation marks."""
    stripped = secret.strip()
    quoted = stripped.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return frozenset({secret, stripped, unquote(stripped), quote(stripped, safe=""), quote(stripped), quoted})
