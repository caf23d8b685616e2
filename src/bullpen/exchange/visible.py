"""Making text from elsewhere visible: characters that would hide, reorder or vanish in a page are shown."""

import re

# Controls except tab and line feed; bidi controls; zero-width characters; the invisible tag characters.
# U+200D is kept: emoji sequences and correct Persian need it.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
CONTROL_PICTURES = 0x2400
DELETE, SYMBOL_FOR_DELETE = "\x7f", "\u2421"


def visible(text: str) -> str:
    """Return the text with every invisible character replaced by a visible symbol."""
    # A Windows line end is harmless.
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub(_symbol, text.replace("\r\n", "\n"))


def _symbol(found: re.Match[str]) -> str:
    character = found[0]
    if character == DELETE:
        return SYMBOL_FOR_DELETE
    if character < " ":
        return chr(CONTROL_PICTURES + ord(character))
    return f"⟨U+{ord(character):04X}⟩"
