"""A file's part of a patch in ASCII, where contents or names are not UTF-8."""

import zlib
from base64 import b85encode

LINE_BYTES = 52
ESCAPES = {ord(letter): escaped for letter, escaped in zip('\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True)}


def header_of(part: bytes, old: bytes, new: bytes) -> bytes:
    """Return the lines of a part before its contents, with names that every program can read."""
    lines = [b"diff --git %b %b" % (quoted(b"a/" + old), quoted(b"b/" + new))]
    for line in part.split(b"\n")[1:]:
        if line.startswith((b"--- ", b"GIT binary patch")):
            break
        if line.startswith(b"rename from "):
            lines.append(b"rename from " + quoted(old))
        elif line.startswith(b"rename to "):
            lines.append(b"rename to " + quoted(new))
        elif line:
            lines.append(line)
    return b"\n".join(lines) + b"\n"


def blobs_of(part: bytes) -> tuple[str, str] | None:
    """Return the ids of the contents before and after; None if only names or modes change."""
    words = part.partition(b"\nindex ")[2].partition(b"\n")[0].split(b" ")[0].decode()
    old, dots, new = words.partition("..")
    return (old, new) if dots else None


def contents_of(old: bytes, new: bytes) -> bytes:
    """Return contents as a binary patch has them, for both directions."""
    return b"GIT binary patch\n" + _literal(new) + b"\n" + _literal(old) + b"\n"


def _literal(data: bytes) -> bytes:
    packed = zlib.compress(data)
    lines = [packed[at : at + LINE_BYTES] for at in range(0, len(packed), LINE_BYTES)]
    return b"literal %d\n" % len(data) + b"".join(_length(line) + b85encode(line, pad=True) + b"\n" for line in lines)


def _length(line: bytes) -> bytes:
    count = len(line)
    return bytes([count + ord("A") - 1 if count <= 26 else count - 27 + ord("a")])


def quoted(path: bytes) -> bytes:
    """Return a path as git writes it where names are not plain."""
    return b'"' + b"".join(map(_escaped, path)) + b'"'


def _escaped(byte: int) -> bytes:
    if byte in ESCAPES:
        return b"\\" + ESCAPES[byte].encode()
    return bytes([byte]) if 0x20 <= byte < 0x7F else b"\\%03o" % byte
