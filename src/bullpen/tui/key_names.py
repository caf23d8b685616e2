"""The keys of bindings, as people call them."""

from collections.abc import Iterable

from textual.binding import Binding, BindingType

NAMES = {
    "up": "↑",
    "down": "↓",
    "escape": "esc",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "shift+up": "shift+↑",
    "shift+down": "shift+↓",
}


def rows(bindings: Iterable[BindingType]) -> list[tuple[str, str]]:
    """Return the keys of each action, and what it does: in full where the footer has only a word for it."""
    found: dict[str, tuple[list[str], str]] = {}
    for binding in bindings:
        if isinstance(binding, Binding):
            keys, _ = found.setdefault(binding.action, ([], binding.tooltip or binding.description))
            keys += [_name(key) for key in binding.key.split(",")]
    return [(" ".join(keys), description) for keys, description in found.values()]


def _name(key: str) -> str:
    name = NAMES.get(key, key)
    return name.upper() if name[0] == "f" and name[1:].isdigit() else name
