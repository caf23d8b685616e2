"""Keys and passwords in a program's error output: removed before it is stored, shown or exported.

Known secrets are always removed: the values of environment variables whose names say that they hold one, and passwords
in addresses that any variable holds. Other secrets can only be recognised by their form or by the word before them.
docs/agents.md has the rule as people read it.
"""

import os
import re
from binascii import a2b_base64
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus, unquote

from bullpen.text.patterns import pattern

MASK = "[secret]"
SHORTEST_SECRET = 8
"""Shorter values would be found within ordinary words."""
SHORTEST_WORD = 6
"""Values of this length are removed where they are words of their own. Shorter ones are too often ordinary words."""
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
_ANNOUNCED = rf"{_WORD}{_IS}|(?<![a-z0-9])(?:authorization{_IS}(?:{_SCHEME})?|bearer[ \t]{{1,3}})"
# "Basic" is a word of English as well, so what follows is looked at: "Basic terminal detected" is not a secret.
_BASIC = pattern(r"""(?<![a-z0-9])(basic[ \t]{1,3}[\\"']{0,4})([a-z0-9+/_-]{4,}+)={0,2}""", re.IGNORECASE)
_OPAQUE = pattern(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z]).{16}", re.DOTALL)
# Within quotation marks it ends with them, else where the word does: a password may contain any other character. The
# marks themselves are part of it after a backslash, or after three if the first mark has one, as in JSON within JSON.
_AFTER_MARK = r"(?:[\s,;:&)}\]\\]|\Z)|\n|\Z"
_ESCAPED = rf"""(?<=\\)(["'])((?:\\{{3}}[^\n]|(?!\2)[^\n])++)(?=\2{_AFTER_MARK})"""
_QUOTED = rf"""(?<!\\)(["'])((?:\\[^\n]?+|(?!\4)[^\n\\])++)(?=\4{_AFTER_MARK})"""
_AFTER_WORD = pattern(rf"({_ANNOUNCED})(?:{_ESCAPED}|{_QUOTED}|(\S++))", re.IGNORECASE)
_AFTER_A_SENTENCE = ".,;:!?)]}>\"'"
# All up to the last "@" is the password, since one with "/" or "@" is not always written as %2F or %40. What looks like
# a host with its port is one. No text is scanned twice: an address ends where the next begins.
_HOST_AND_PORT = r"(?:[\w.-]*(?:\.[\w-]+|localhost)|\[[\da-f:.]*\]):\d{1,5}[/?#]"
_IN_ADDRESS = pattern(
    rf"""(?<=://)(?!{_HOST_AND_PORT})([^\s/?#:@"<>]{{0,200}}+):((?:(?:(?!://)[^\s"<>@])*+@)+)""", re.IGNORECASE
)
# A web address needs no name before its password. Other kinds have one there: ssh://git@…
_TOKEN_IN_ADDRESS = pattern(rf"""(https?://)([^\s/?#:@"<>]{{{SHORTEST_SECRET},}}+)@""", re.IGNORECASE)
_BORDER_OF_KEY = r"-{{4,5}} ?{} [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)? ?-{{4,5}}"
_BEGIN_OF_KEY, _END_OF_KEY = pattern(_BORDER_OF_KEY.format("BEGIN")), pattern(_BORDER_OF_KEY.format("END"))
# Up to the end of the text if its own end is missing.
_PRIVATE_KEY = pattern(rf"{_BORDER_OF_KEY.format('BEGIN')}.*?(?:{_BORDER_OF_KEY.format('END')}|\Z)", re.DOTALL)
# A word of which only the end may be there, and lines such as those of a private key.
_CUT_WORD_AND_LINES = pattern(r"\S*+\s*+(?:[A-Za-z0-9+/=]{40,76}+(?!\S)\s*+)*+")

_FOR_ADDRESSES = str.maketrans("-_", "+/")

_PERCENT = pattern("%[0-9A-F]{2}")


def without_secrets(
    text: str, environment: Mapping[str, str] = os.environ, *, is_cut: bool = False, only_known: bool = False
) -> str:
    """Return the text with everything that is or looks like a key or a password replaced.

    With `is_cut`, its beginning is missing: what may be the rest of a secret there is removed. With `only_known`, only
    secrets of the environment are replaced: what only looks like one may be something else that must be seen.
    """
    if not text:
        return text
    values = _secret_values(environment)
    if is_cut:
        text = _without_rest(text, values)
    for value in values:
        text = text.replace(value, MASK) if len(value) >= SHORTEST_SECRET else _as_word(value).sub(MASK, text)
    if only_known:
        return text
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _FORMS.sub(MASK, text)
    text = _IN_ADDRESS.sub(rf"\1:{MASK}@", text)
    text = _TOKEN_IN_ADDRESS.sub(rf"\1{MASK}@", text)
    text = _BASIC.sub(lambda found: f"{found[1]}{MASK}" if _is_name_and_password(found[2]) else found[0], text)
    return _AFTER_WORD.sub(_announced, text)


def _is_name_and_password(word: str) -> bool:
    """Return whether a word is base64 of "name:password", or looks like a key that somebody sent in its place."""
    whole = word[: len(word) // 4 * 4] if len(word) % 4 == 1 else word + "=" * (-len(word) % 4)
    decoded = a2b_base64(whole.translate(_FOR_ADDRESSES))
    return (b":" in decoded and _is_text(decoded)) or bool(_OPAQUE.match(word))


def _is_text(value: bytes) -> bool:
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _without_rest(text: str, values: list[str]) -> str:
    """Return the text without what may be the rest of a secret at its beginning."""
    cut = _CUT_WORD_AND_LINES.match(text)
    ends = [len(cut[0]) if cut else 0, *(_rest_of(value, text) for value in values)]
    end_of_key = _END_OF_KEY.search(text)
    if end_of_key and not _BEGIN_OF_KEY.search(text, 0, end_of_key.start()):
        ends.append(end_of_key.end())
    return text[max(ends) :]


def _rest_of(value: str, text: str) -> int:
    """Return how many characters of a text are the rest of a value."""
    first = text[:4]
    at = value.find(first, 1)
    while at >= 0:
        rest = value[at : at + len(text)]
        if text.startswith(rest):
            return len(rest)
        at = value.find(first, at + 1)
    return 0


def _announced(found: re.Match[str]) -> str:
    before, first_mark, first_quoted, second_mark, second_quoted, word = found.groups()
    quoted = first_quoted or second_quoted
    if quoted is not None:
        mark = first_mark or second_mark
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
        if len(spelling) >= SHORTEST_WORD
    }
    return sorted(found, key=len, reverse=True)


@lru_cache(maxsize=512)
def _as_word(value: str) -> re.Pattern[str]:
    """Return a pattern that finds a value where it is not a part of a longer word."""
    return re.compile(rf"(?<!\w){re.escape(value)}(?!\w)")


# An agent may ask many questions, and in each of them all of these are looked for.
@lru_cache(maxsize=1024)
def _secrets_in(name: str, value: str) -> tuple[str, ...]:
    """Return a variable's value if it is a secret, and the password or token in it if it is an address."""
    secrets = [value] if _SECRET_NAME.search(name) and not _is_path(name, value) else []
    if "://" in value:
        secrets += (found[2].removesuffix("@") for found in _IN_ADDRESS.finditer(value))
        secrets += (found[2] for found in _TOKEN_IN_ADDRESS.finditer(value))
    return tuple(secrets)


def _is_path(name: str, value: str) -> bool:
    # A variable may also name the file with the key; that is not a secret, and error messages need it.
    begins_as_path = value.startswith(("/", "~", "."))
    return bool((begins_as_path and _NAME_OF_A_PLACE.search(name)) or _PATH_WITH_A_USUAL_END.fullmatch(value))


@lru_cache(maxsize=512)
def _spellings(secret: str) -> frozenset[str]:
    """Return a secret as it is, and as it is written in addresses and within quotation marks."""
    # Only where there are secrets, since it takes long to load.
    from json import dumps

    stripped = secret.strip()
    in_addresses = {quote(stripped, safe=""), quote(stripped), quote_plus(stripped)}
    lower = {_PERCENT.sub(lambda found: found[0].lower(), spelling) for spelling in in_addresses}
    quoted = {dumps(stripped)[1:-1], dumps(stripped, ensure_ascii=False)[1:-1], repr(stripped)[1:-1]}
    with_slashes = {spelling.replace("/", "\\/") for spelling in quoted}
    return frozenset({secret, stripped, unquote(stripped), *in_addresses, *lower, *quoted, *with_slashes})
