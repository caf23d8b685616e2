"""Text from elsewhere, made safe for a terminal."""

import re

# Control characters could move the cursor, change colors or titles; bidi controls could reorder what people read; half
# an emoji, or a file name that is not UTF-8, could not be printed at all.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text with every character that a terminal would act on replaced by U+FFFD."""
    return _UNSAFE.sub("\ufffd", text)


# As in ECMA-48: control sequences (CSI), strings (OSC, DCS and similar, up to BEL or ST), and the short ones. All but
# the short ones have an eight-bit form, too. Of a string without an end only the beginning is removed, or one stray
# character would remove the rest of a reply.
_CSI = r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+"
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"
_STRING_END = r"(?:\x07|\x1b\\|\x9c)"
_SEQUENCE = re.compile(rf"{_CSI}[@-~]?+|{_STRING}(?:[^\x07\x1b\x9c]*+{_STRING_END})?+|\x1b[ -/]*+[0-~]?+")
_UNFINISHED = re.compile(rf"{_CSI}\Z|{_STRING}[^\x07\x1b\x9c]*+\x1b?+\Z|\x1b[ -/]*+\Z")
_MAY_BEGIN = re.compile("[\x1b\x90\x98\x9b\x9d-\x9f]")

LONGEST_HELD = 4096
"""How many characters are held back for the end of a sequence, while a reply is streamed."""


def strip_escape_sequences(text: str) -> str:
    """Return a text without escape sequences."""
    return _SEQUENCE.sub("", text) if _MAY_BEGIN.search(text) else text


class EscapeStripper:
    """Removes escape sequences from a streamed text, also those that are split between two pieces."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return the text so far; the beginning of a sequence is held back until its end."""
        if not self._held and "\x1b" not in piece and (piece.isascii() or not _MAY_BEGIN.search(piece)):
            return piece
        text, self._held = self._held + piece, ""
        tail = _UNFINISHED.search(text)
        if tail and len(tail[0]) <= LONGEST_HELD:
            text, self._held = text[: tail.start()], tail[0]
        return strip_escape_sequences(text)

    def finish(self) -> str:
        """Return the text that was still held back."""
        held, self._held = self._held, ""
        return strip_escape_sequences(held)
