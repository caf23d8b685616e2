"""Text from elsewhere, made safe for a terminal."""

import re

# Control characters could move the cursor, change colors or titles; bidi controls could reorder what people read; half
# an emoji, or a file name that is not UTF-8, could not be printed at all.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """Return the text with every character that a terminal would act on replaced by U+FFFD."""
    return _UNSAFE.sub("\ufffd", text)
