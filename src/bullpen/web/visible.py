"""Text from elsewhere, made visible: what would hide, reorder or vanish in a page is shown as what it is."""

import re

# Controls but tab and line feed; marks that reorder text; characters of no width; the invisible alphabet of tags.
# U+200D stays: families of emoji are made with it, and so is correct Persian.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
CONTROL_PICTURES = 0x2400
DELETE, SYMBOL_FOR_DELETE = "\x7f", "\u2421"


def visible(text: str) -> str:
    """Return the text with every character that people could not see replaced by a sign for it."""
    # A Windows line end is no trick.
    return text if text.isascii() and text.isprintable() else _INVISIBLE.sub(_sign, text.replace("\r\n", "\n"))


def _sign(found: re.Match[str]) -> str:
    character = found[0]
    if character == DELETE:
        return SYMBOL_FOR_DELETE
    if character < " ":
        return chr(CONTROL_PICTURES + ord(character))
    return f"⟨U+{ord(character):04X}⟩"
