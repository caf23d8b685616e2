"""JSON with the C half of the standard library's json: the Python half imports re and enum, a third of our start-up."""

from _json import encode_basestring, make_encoder, make_scanner

# Type checkers treat this name as true. Importing it from typing would cost more than the rest of the program.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any


class _Settings:
    """The settings that json.loads passes to its scanner."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = parse_constant = float
    parse_int = int


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_settings: "Any" = _Settings
_scan = make_scanner(_settings)
_encode = make_encoder(None, _refuse, encode_basestring, None, ":", ",", False, False, True)


def from_json(text: str) -> object:
    """Return the value of a JSON text; raise ValueError if it is not one."""
    value: object
    try:
        value, end = _scan(text.strip(), 0)
        if end == len(text.strip()):
            return value
    except (StopIteration, SystemError, ValueError):
        # The C half alone can find an error but not report it.
        pass
    import json

    return json.loads(text)


def to_json(value: object) -> str:
    """Return a value on one line, without spaces and without escaping Unicode, as all three CLIs do."""
    return "".join(_encode(value, 0))
