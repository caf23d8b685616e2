"""A file's part of a patch in ASCII, where names or contents are not UTF-8."""

import zlib
from base64 import b85encode

LINE_BYTES = 52
NAMED = {b"--- ": b"a/", b"+++ ": b"b/", b"rename from ": b"", b"rename to ": b""}
OLD = (b"--- ", b"rename from ")
ESCAPES = {ord(letter): escaped for letter, escaped in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}


def requoted(part: bytes, old: bytes, new: bytes) -> bytes:
    """Return a part with names that every program can read."""
    header, contents = _halves(part)
    lines = [b"diff --git %b %b" % (quoted(b"a/" + old), quoted(b"b/" + new))]
    for line in header.split(b"\n")[1:]:
        word = next((word for word in NAMED if line.startswith(word) and not line.endswith(b" /dev/null")), b"")
        lines.append(word + quoted(NAMED[word] + (old if word in OLD else new)) if word else line)
    return b"\n".join(lines) + contents


def without_lines(part: bytes, old: bytes, new: bytes) -> bytes:
    """Return a part with whole contents instead of lines."""
    header = _halves(part)[0].partition(b"\n--- ")[0].rstrip(b"\n")
    return header + b"\nGIT binary patch\n" + _literal(new) + b"\n" + _literal(old) + b"\n"


def _halves(part: bytes) -> tuple[bytes, bytes]:
    """Return the lines before the contents, and the rest from the line break on."""
    for start in (b"\n@@ ", b"\nGIT binary patch\n"):
        at = part.find(start)
        if at >= 0:
            return part[:at], part[at:]
    return part, b""


def blobs_of(part: bytes) -> tuple[str, str] | None:
    """Return the ids of the contents before and after; None if only names or modes change."""
    words = part.partition(b"\nindex ")[2].partition(b"\n")[0].split(b" ")[0].decode()
    old, dots, new = words.partition("..")
    return (old, new) if dots else None


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data)
    lines = [packed[at : at + LINE_BYTES] for at in range(0, len(packed), LINE_BYTES)]
    return b"literal %d\n" % len(data) + b"".join(_length(line) + b85encode(line, pad=True) + b"\n" for line in lines)


def _length(line: bytes) -> bytes:
    count = len(line)
    return bytes([count + ord("A") - 1 if count <= 26 else count - 27 + ord("a")])


def is_ambiguous(path: bytes) -> bool:
    """Return whether git itself may not find out where a plain path ends."""
    return any(mark in path + b"/" for mark in (b" /", b" a/", b" b/"))


def quoted(path: bytes) -> bytes:
    """Return a path as git writes it where names are not plain."""
    return b'"' + b"".join(map(_escaped, path)) + b'"'


def _escaped(byte: int) -> bytes:
    if byte in ESCAPES:
        return b"\\" + ESCAPES[byte].encode()
    return bytes([byte]) if 0x20 <= byte < 0x7F else b"\\%03o" % byte
