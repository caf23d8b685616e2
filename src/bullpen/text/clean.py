"""Text as bytes: cleaning it on entry, measuring it, and cutting it between characters."""

import re

REPLACEMENT_CHARACTER = "\ufffd"
SYMBOL_FOR_NULL = "\u2400"

LINE_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Everything that starts a new line somewhere: str.splitlines() knows the same list."""

WHITE_SPACE = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
WHITE_SPACE += "\u2028\u2029\u202f\u205f\u3000\ufeff"
"""What JavaScript's trim() removes, as in the specification. Python's list is different."""

INVISIBLE = "\u200b\u200c\u200d\u2060\xad"
"""Invisible characters that are not white space."""

# A cluster may be very long (a letter with a thousand accents), so the search for its start is limited.
LONGEST_CLUSTER = 64

_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_BREAK_RUN = re.compile(f"[{LINE_BREAKS}]+")


def clean_text(text: str) -> str:
    """Return the text so that every program can read it: no lone surrogates, no NUL."""
    if "\0" in text:
        text = text.replace("\0", SYMBOL_FOR_NULL)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub(REPLACEMENT_CHARACTER, text)
    return text


def clean_json(value: object) -> object:
    """Return a parsed JSON value with every string in it cleaned."""
    match value:
        case str():
            return clean_text(value)
        case list():
            return [clean_json(item) for item in value]
        case dict():
            return {clean_json(key): clean_json(item) for key, item in value.items()}
        case _:
            return value


def trimmed(text: str | None) -> str:
    """Return the text, cleaned, without white space at its ends."""
    return clean_text(text or "").strip(WHITE_SPACE)


def one_line(name: str) -> str:
    """Return the name on one line, so that it cannot pretend to be more than a name."""
    return clean_text(_LINE_BREAK_RUN.sub(" ", name))


def byte_length(text: str) -> int:
    """Return how many bytes the text has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def truncate_to_bytes(text: str, max_bytes: int) -> str:
    """Return the longest beginning of the text within max_bytes of UTF-8, whole characters only.

    What a reader sees as one character (a family emoji, a letter with its accent, a flag) stays whole where possible.
    """
    if max_bytes < 0:
        raise ValueError(f"max_bytes must not be negative, got {max_bytes}")
    # Every character takes at least one byte, so anything after this slice cannot fit.
    head = clean_text(text[: max_bytes + 1])
    encoded = head.encode()
    if len(encoded) <= max_bytes:
        return head
    whole_characters = len(encoded[:max_bytes].decode(errors="ignore"))
    return head[: _cluster_start(head, whole_characters)]


def _cluster_start(text: str, index: int) -> int:
    """Return where the visible character around index starts, or index if that is too far away."""
    for start in range(index, max(index - LONGEST_CLUSTER, 0), -1):
        if not _belong_together(text, start):
            return start
    return index


def _belong_together(text: str, index: int) -> bool:
    """Return whether the characters before and at index are displayed as one."""
    before, after = text[index - 1], text[index]
    if before.isascii() and after.isascii():
        return before == "\r" and after == "\n"
    if before == "\u200d" or _extends(after):
        return True
    if _is_regional_indicator(before) and _is_regional_indicator(after):
        return _regional_indicators_before(text, index) % 2 == 1
    return _is_hangul_jamo(before) and _is_hangul_jamo(after)


def _extends(character: str) -> bool:
    import unicodedata

    return (
        unicodedata.category(character) in ("Mn", "Me", "Mc")
        or character == "\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\U000e0020" <= character <= "\U000e007f"
    )


def _is_regional_indicator(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regional_indicators_before(text: str, index: int) -> int:
    start = index
    while start > max(0, index - LONGEST_CLUSTER) and _is_regional_indicator(text[start - 1]):
        start -= 1
    return index - start


def _is_hangul_jamo(character: str) -> bool:
    return "\u1100" <= character <= "\u11ff"
