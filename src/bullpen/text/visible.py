"""Text of which nothing is hidden: what a terminal or a page would act on, or not show, is written out."""

import re

# Control characters but for line feed and tab, marks of direction, what has no width, what is blank, and every space
# but the usual one, which a shell does not take for a space.
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\xa0\u00ad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"
    r"\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc"
    r"\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff\ud800-\udfff]"
)


def visible(text: str) -> str:
    """Return a text with everything written out that would not be seen."""
    return _HIDDEN.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{{{code:x}}}"
