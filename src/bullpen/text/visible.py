"""Text of which nothing is hidden: what a terminal or a page would act on, or not show, is written out."""

import re

# Control characters but for line feed and tab, marks of direction, and what has no width.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    r"\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    r"\U000e0000-\U000e0fff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Return a text with everything written out that would not be seen."""
    return _HIDDEN.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"
